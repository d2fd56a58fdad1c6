//! What streams between the proxy and an attachment: the messages that it is to get, and the reply to one of them.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::{mpsc, oneshot};

use super::Attachments;
use crate::proxy::upstream::BodyError;

/// The lines that an attachment reads. Dropped when it leaves, which ends it.
#[derive(Debug)]
pub(super) struct AttachedLines {
    reading: mpsc::Receiver<Bytes>,
    attachments: Arc<Attachments>,
    id: String,
}

impl AttachedLines {
    pub(super) fn new(reading: mpsc::Receiver<Bytes>, attachments: Arc<Attachments>, id: String) -> Self {
        Self { reading, attachments, id }
    }
}

impl Drop for AttachedLines {
    fn drop(&mut self) {
        self.attachments.detach(&self.id);
    }
}

impl Body for AttachedLines {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.reading.poll_recv(context).map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}

/// The reply that an attachment hands back. Whoever took it in learns when it has passed, or is no longer wanted.
#[derive(Debug)]
pub(super) struct AttachedReply {
    body: Incoming,
    #[expect(dead_code, reason = "its end is the news")]
    passing: oneshot::Sender<()>,
}

impl AttachedReply {
    pub(super) fn new(body: Incoming, passing: oneshot::Sender<()>) -> Self {
        Self { body, passing }
    }
}

impl Body for AttachedReply {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(BodyError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Events of a reply on their way to the proxy, as they come.
#[derive(Debug)]
pub(super) struct EventBody(pub(super) mpsc::Receiver<Bytes>);

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
