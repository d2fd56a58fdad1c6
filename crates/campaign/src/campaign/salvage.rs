//! What an interrupted run has already paid for: its complete replies, given again to the same requests.

use std::{
    collections::{HashMap, VecDeque},
    path::Path,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use hyper::{Response, StatusCode, header};

use crate::{
    proxy::{model, upstream::ReceivedBody},
    recording::{self, RecordingError},
    surface::sse,
};

/// Replies by what was asked. Each is given once: equal requests may have had different answers.
#[derive(Debug, Default)]
pub(super) struct Salvage(Mutex<HashMap<[u8; 32], VecDeque<Paid>>>);

#[derive(Debug)]
struct Paid {
    status: u16,
    streamed: bool,
    body: Bytes,
}

impl Salvage {
    /// Reads the recordings of interrupted runs, oldest first. One that cannot be read holds nothing that could be
    /// used again.
    pub(super) fn read(dirs: &[std::path::PathBuf]) -> Self {
        let salvage = Self::default();
        for dir in dirs {
            if let Err(error) = salvage.add(dir) {
                tracing::warn!(%error, "an interrupted run cannot be read: its calls are made anew");
            }
        }
        salvage
    }

    fn add(&self, dir: &Path) -> Result<(), RecordingError> {
        let recording = recording::read(dir)?;
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for step in &recording.trajectory.steps {
            let sent = step.request_sent.as_ref().unwrap_or(&step.request);
            let path = step.path.split('?').next().unwrap_or_default();
            for attempt in &step.attempts {
                // Refusals were not paid for, and what redaction touched is not what was said.
                let Some(status) = attempt.status.filter(|status| (200..300).contains(status)) else { continue };
                // A stream that broke off, or said an error under way, is asked again.
                if attempt.is_answered() && attempt.exact && !attempt.reply.is_empty() {
                    let paid = Paid { status, streamed: attempt.streamed, body: attempt.reply.clone() };
                    replies.entry(key(path, sent)).or_default().push_back(paid);
                }
            }
        }
        for asked in recording.manipulator_questions.iter().filter(|asked| !asked.answer.is_empty()) {
            let paid = Paid { status: 200, streamed: false, body: asked.answer.clone() };
            replies.entry(key(model::PATH, &asked.question)).or_default().push_back(paid);
        }
        Ok(())
    }

    /// The reply to a request, if it is paid for.
    pub(super) fn take(&self, path: &str, body: &[u8]) -> Option<Response<ReceivedBody>> {
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if replies.is_empty() {
            return None;
        }
        let paid = replies.get_mut(&key(path, body))?.pop_front()?;
        drop(replies);
        Some(paid.response())
    }
}

impl Paid {
    fn response(self) -> Response<ReceivedBody> {
        let kind = if self.streamed { "text/event-stream; charset=utf-8" } else { "application/json" };
        let frames: VecDeque<Bytes> = if self.streamed {
            sse::events(&self.body).into_iter().map(|event| self.body.slice(event.span)).collect()
        } else {
            VecDeque::from([self.body])
        };
        let mut response = Response::new(ReceivedBody::Made(frames));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
        response
    }
}

fn key(path: &str, body: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(path.len() as u64).to_le_bytes()).update(path.as_bytes()).update(body);
    hasher.finalize().into()
}
