//! The body of a reply, wherever it comes from.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::{super::strip::StrippedStream, error::BodyError, paced::Paced, pool::Live};

/// The body of a reply.
#[derive(Debug)]
pub enum ReceivedBody {
    /// From a connection.
    Live(Live),
    /// Made in this process: frames in order.
    Made(VecDeque<Bytes>),
    /// Made in this process, with a pace or an end of its own.
    Streamed(http_body_util::combinators::UnsyncBoxBody<Bytes, BodyError>),
    /// Frames that were read before, and what still follows them.
    Resumed(VecDeque<Bytes>, Box<ReceivedBody>),
    /// Another, passed on slowly.
    Paced(Box<Paced<ReceivedBody>>),
    /// A stream without what only we asked for.
    Stripped(Box<StrippedStream<ReceivedBody>>),
    /// With somebody who hears it pass.
    Observed(Box<ReceivedBody>, Box<dyn Listener>),
}

/// Hears a reply pass. One that is dropped before its end was told hears no more of it.
pub trait Listener: Send + Sync + std::fmt::Debug {
    /// A frame passes.
    fn frame(&mut self, frame: &Bytes);

    /// The reply is whole. It may be told more than once.
    fn end(&mut self);
}

impl Body for ReceivedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            ReceivedBody::Live(body) => Pin::new(body).poll_frame(context),
            ReceivedBody::Streamed(body) => Pin::new(body).poll_frame(context),
            ReceivedBody::Made(frames) => Poll::Ready(frames.pop_front().map(|frame| Ok(Frame::data(frame)))),
            ReceivedBody::Resumed(frames, rest) => match frames.pop_front() {
                Some(frame) => Poll::Ready(Some(Ok(Frame::data(frame)))),
                None => Pin::new(rest.as_mut()).poll_frame(context),
            },
            ReceivedBody::Paced(paced) => paced.poll_piece(context),
            ReceivedBody::Stripped(stream) => stream.poll_events(context),
            ReceivedBody::Observed(body, listener) => {
                let polled = Pin::new(body.as_mut()).poll_frame(context);
                if let Poll::Ready(Some(Ok(frame))) = &polled
                    && let Some(data) = frame.data_ref()
                {
                    listener.frame(data);
                }
                // A reader that knows the length does not ask for what follows the last frame.
                if matches!(polled, Poll::Ready(None)) || body.is_end_stream() {
                    listener.end();
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReceivedBody::Live(body) => body.is_end_stream(),
            ReceivedBody::Streamed(body) => body.is_end_stream(),
            ReceivedBody::Made(frames) => frames.is_empty(),
            ReceivedBody::Resumed(frames, rest) => frames.is_empty() && rest.is_end_stream(),
            ReceivedBody::Paced(paced) => paced.is_over(),
            ReceivedBody::Stripped(stream) => stream.is_over(),
            ReceivedBody::Observed(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReceivedBody::Live(body) => body.size_hint(),
            ReceivedBody::Streamed(body) => body.size_hint(),
            ReceivedBody::Made(frames) => SizeHint::with_exact(length(frames)),
            ReceivedBody::Resumed(frames, rest) => {
                let mut size = rest.size_hint();
                let read = length(frames);
                if let Some(upper) = size.upper() {
                    size.set_upper(upper + read);
                }
                size.set_lower(size.lower() + read);
                size
            }
            ReceivedBody::Paced(paced) => paced.hint(),
            ReceivedBody::Stripped(_) => SizeHint::default(),
            ReceivedBody::Observed(body, _) => body.size_hint(),
        }
    }
}

fn length(frames: &VecDeque<Bytes>) -> u64 {
    frames.iter().map(|frame| frame.len() as u64).sum()
}
