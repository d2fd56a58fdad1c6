//! A request body that passes as it comes, and is given up where it stalls.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::{
    proxy::{lock::locked, waiting::Patience},
    recording::StreamedRequest,
};

/// The body of a request on its way to the upstream.
pub type SentBody = Either<Full<Bytes>, Upload>;

/// A request body on its way through.
#[derive(Debug)]
pub struct Upload {
    /// What was taken in of it before it began to pass.
    begun: VecDeque<Frame<Bytes>>,
    body: Incoming,
    patience: Patience,
    stalled: Arc<AtomicBool>,
    /// What is kept of it for the record.
    prefix: Option<Arc<UploadPrefix>>,
}

/// What is kept of an upload: its beginning, and how long it is.
#[derive(Debug)]
pub(in crate::proxy) struct UploadPrefix {
    most: usize,
    so_far: Mutex<(Vec<u8>, u64)>,
}

impl UploadPrefix {
    /// Keeps at most so many bytes.
    pub(in crate::proxy) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, so_far: Mutex::default() })
    }

    fn pass(&self, chunk: &[u8]) {
        let (kept, length) = &mut *locked(&self.so_far);
        let room = self.most.saturating_sub(kept.len()).min(chunk.len());
        kept.extend_from_slice(chunk.get(..room).unwrap_or_default());
        *length += chunk.len() as u64;
    }

    /// What has passed so far.
    pub(in crate::proxy) fn so_far(&self) -> StreamedRequest {
        let (kept, length) = &*locked(&self.so_far);
        StreamedRequest { prefix: Bytes::copy_from_slice(kept), length: *length }
    }
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
        let upload = Self {
            begun: VecDeque::new(),
            body,
            patience: Patience::new(limit),
            stalled: Arc::clone(&stalled),
            prefix: None,
        };
        (upload, Stall(stalled))
    }

    /// The same, with what was taken in of it already, kept as it passes.
    pub(in crate::proxy) fn begun(self, begun: VecDeque<Frame<Bytes>>, kept: Arc<UploadPrefix>) -> Self {
        Self { begun, prefix: Some(kept), ..self }
    }

    fn keep(&self, frame: &Frame<Bytes>) {
        if let (Some(kept), Some(chunk)) = (&self.prefix, frame.data_ref()) {
            kept.pass(chunk);
        }
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
        if let Some(frame) = self.begun.pop_front() {
            self.keep(&frame);
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.patience.reset();
            if let Some(Ok(frame)) = &frame {
                self.keep(frame);
            }
            return Poll::Ready(frame.map(|frame| Ok(frame?)));
        }
        let limit = ready!(self.patience.poll(context));
        self.stalled.store(true, Ordering::Release);
        Poll::Ready(Some(Err(UploadError::Stalled(limit))))
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let begun: usize = self.begun.iter().filter_map(Frame::data_ref).map(Bytes::len).sum();
        let rest = self.body.size_hint();
        let mut whole = SizeHint::new();
        if let Some(upper) = rest.upper() {
            whole.set_upper(upper.saturating_add(begun as u64));
        }
        whole.set_lower(rest.lower().saturating_add(begun as u64));
        whole
    }
}
