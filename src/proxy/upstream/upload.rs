//! A request body that passes as it comes, and is given up where it stalls.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::proxy::waiting::Patience;

/// The body of a request on its way to the upstream.
pub type SentBody = Either<Full<Bytes>, Upload>;

/// A request body on its way through.
#[derive(Debug)]
pub struct Upload {
    body: Incoming,
    patience: Patience,
    stalled: Arc<AtomicBool>,
}

/// Why an upload broke off.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The client's connection broke.
    #[error(transparent)]
    Client(#[from] hyper::Error),
    /// The client sent nothing for so long.
    #[error("the client sent nothing of its body for {0:?}")]
    Stalled(Duration),
}

/// Tells whether an upload stalled, once it is somebody else's.
#[derive(Debug)]
pub(in crate::proxy) struct Stall(Arc<AtomicBool>);

impl Upload {
    /// A body that may be silent for so long.
    pub(in crate::proxy) fn new(body: Incoming, limit: Duration) -> (Self, Stall) {
        let stalled = Arc::new(AtomicBool::new(false));
        (Self { body, patience: Patience::new(limit), stalled: Arc::clone(&stalled) }, Stall(stalled))
    }
}

impl From<Incoming> for Upload {
    /// A body that is waited for, however long.
    fn from(body: Incoming) -> Self {
        Self::new(body, Duration::MAX).0
    }
}

impl Stall {
    pub(in crate::proxy) fn has_come(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.patience.heard();
            return Poll::Ready(frame.map(|frame| Ok(frame?)));
        }
        let limit = ready!(self.patience.poll(context));
        self.stalled.store(true, Ordering::Release);
        Poll::Ready(Some(Err(UploadError::Stalled(limit))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
