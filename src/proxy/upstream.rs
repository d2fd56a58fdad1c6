//! The backend as the exchange sees it: a request in, a reply out. `HttpUpstream`, the simulator and a replayed
//! recording implement it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::{
    Request, Response,
    body::{Body, Frame, SizeHint},
};

pub use super::{
    pool::Live,
    upload::{Upload, UploadError},
};
use crate::trajectory::{Attribution, Call, RunId, StepIndex};

/// Marks a request for the upstream of a model route, by its number in the configuration (0-based).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route(pub usize);

/// Who asks, as far as the line knows when it sends: an upstream that answers from a recording is keyed by it, any
/// other ignores it. It travels in the request's extensions, never on the wire.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The run.
    pub run: RunId,
    /// The step of the run.
    pub step: StepIndex,
    /// The call of the agent instance.
    pub call: Call,
    /// The attempt of the step, 0-based.
    pub attempt: u32,
    /// The agent, and how it is known.
    pub attribution: Attribution,
    /// The body as the client sent it, before any edit.
    pub asked: Bytes,
}

/// The body of a request on its way to the upstream.
pub type SentBody = http_body_util::Either<http_body_util::Full<Bytes>, Upload>;

/// A future that an upstream returns.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<ReceivedBody>, UpstreamError>> + Send + 'a>>;

/// A backend.
pub trait Upstream: Send + Sync + std::fmt::Debug {
    /// What records call it: scheme, host and port, or `simulator`.
    fn name(&self) -> &str;

    /// Sends a request (its URI holds path and query only) and returns the reply as soon as its head is there.
    /// Dropping the future or the body cancels the call.
    fn send(&self, request: Request<SentBody>) -> Answering<'_>;

    /// The agent of a request, where the upstream knows it better than the rules that told it: a recording names
    /// agents as it recorded them. Asked only of a run's own upstream, before the step is opened.
    fn recall(&self, _surface: &str, _asked: &[u8], _told: &Attribution) -> Option<Attribution> {
        None
    }
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection: refused, no such host, TLS failure.
    #[error("cannot reach the upstream")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection ended before a head came.
    #[error("the upstream closed the connection before it answered")]
    Closed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It switched to another protocol than HTTP although nobody had asked for that.
    #[error("the upstream switched to another protocol, which nobody had asked for")]
    Switched,
    /// Its reply can be read in two ways.
    #[error("the upstream's reply has both content-length and transfer-encoding")]
    Framing,
    /// Nothing came in time.
    #[error("the upstream did not answer within {0:?}")]
    Timeout(std::time::Duration),
    /// A replay does not hold an answer to this request: what was asked, and what comes nearest.
    #[error("{0}; nothing is sent anywhere in a strict replay")]
    NotRecorded(String),
    /// The run left the recorded prefix that it was to repeat: where.
    #[error("the run has diverged from its recorded prefix: {0}")]
    Diverged(String),
    /// The budget of the work that this run belongs to is spent.
    #[error("the budget of {limit} live calls is spent")]
    OverBudget {
        /// The budget, in calls.
        limit: u64,
    },
    /// There is to be no answer: the connection closes, as it did when the run was recorded.
    #[error("the connection was closed, as it was when the run was recorded")]
    Hushed,
}

/// Why a reply's body broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection broke.
    #[error(transparent)]
    Connection(#[from] hyper::Error),
    /// HTTP/2: the stream was given up before its end, without an error.
    #[error("the upstream gave up the stream before the end of its reply")]
    Reset,
    /// It broke off here when it was recorded.
    #[error("the reply broke off here when it was recorded")]
    AsRecorded,
}

/// The body of a reply.
#[derive(Debug)]
pub enum ReceivedBody {
    /// From a connection.
    Live(Live),
    /// Made in this process: frames in order.
    Made(std::collections::VecDeque<Bytes>),
    /// Made in this process, with a pace or an end of its own.
    Streamed(http_body_util::combinators::UnsyncBoxBody<Bytes, BodyError>),
    /// Frames that were read before, and what still follows them.
    Resumed(std::collections::VecDeque<Bytes>, Box<ReceivedBody>),
    /// Another, passed on slowly.
    Paced(Box<super::reshape::Paced>),
    /// With somebody who hears it pass.
    Heard(Box<ReceivedBody>, Box<dyn Listener>),
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
            ReceivedBody::Heard(body, listener) => {
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
            ReceivedBody::Heard(body, _) => body.is_end_stream(),
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
            ReceivedBody::Heard(body, _) => body.size_hint(),
        }
    }
}

fn length(frames: &std::collections::VecDeque<Bytes>) -> u64 {
    frames.iter().map(|frame| frame.len() as u64).sum()
}
