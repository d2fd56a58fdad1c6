//! A request body that passes as it comes, and is given up where it stalls.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::{
    proxy::{error::ProxyError, limits::Limits, lock::locked, waiting::Patience},
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
    ended: Arc<AtomicU8>,
    /// How many bytes more may pass.
    room: usize,
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
    /// It is longer than the client may send.
    #[error("the client sent more than it may")]
    TooLarge,
}

/// The upload stalled.
const STALLED: u8 = 1;
/// The upload was too large.
const TOO_LARGE: u8 = 2;

/// Tells why an upload was given up here, once it is somebody else's.
#[derive(Debug)]
pub(in crate::proxy) struct UploadEnd(Arc<AtomicU8>);

impl Upload {
    /// A body within these limits of silence and length.
    pub(in crate::proxy) fn new(body: Incoming, limits: &Limits) -> (Self, UploadEnd) {
        Self::bounded(body, limits.body_timeout, limits.max_upload_bytes)
    }

    fn bounded(body: Incoming, silence: Duration, room: usize) -> (Self, UploadEnd) {
        let ended = Arc::new(AtomicU8::new(0));
        let upload = Self {
            begun: VecDeque::new(),
            body,
            patience: Patience::new(silence),
            ended: Arc::clone(&ended),
            room,
            prefix: None,
        };
        (upload, UploadEnd(ended))
    }

    /// The same, with what was taken in of it already, kept as it passes.
    pub(in crate::proxy) fn begun(self, begun: VecDeque<Frame<Bytes>>, kept: Arc<UploadPrefix>) -> Self {
        Self { begun, prefix: Some(kept), ..self }
    }

    /// Gives the frame back where the client may send it.
    fn checked_frame(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, UploadError> {
        let Some(room) = self.room.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else {
            self.ended.store(TOO_LARGE, Ordering::Release);
            return Err(UploadError::TooLarge);
        };
        self.room = room;
        self.keep(&frame);
        Ok(frame)
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
        Self::bounded(body, Duration::MAX, usize::MAX).0
    }
}

impl UploadEnd {
    /// Why the upload was given up here, if it was.
    pub(in crate::proxy) fn error(&self, limits: &Limits) -> Option<ProxyError> {
        match self.0.load(Ordering::Acquire) {
            STALLED => Some(ProxyError::BodyTimeout(limits.body_timeout)),
            TOO_LARGE => Some(ProxyError::BodyTooLarge { limit: limits.max_upload_bytes }),
            _ => None,
        }
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
            return Poll::Ready(Some(self.checked_frame(frame)));
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.patience.reset();
            return Poll::Ready(frame.map(|frame| self.checked_frame(frame?)));
        }
        let limit = ready!(self.patience.poll(context));
        self.ended.store(STALLED, Ordering::Release);
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
