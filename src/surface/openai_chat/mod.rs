//! Chat completions: `POST …/chat/completions` (<https://platform.openai.com/docs/api-reference/chat>).
//!
//! `message` reads and edits one message, `request` and `reply` the bodies around it, `stream` the same reply sent as
//! frames, `compose` makes replies of our own.

mod compose;
mod message;
mod reply;
mod request;
mod stream;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::{Conversation, ErrorBody, Outline, Reply, Surface, SurfaceError};
use crate::trajectory::Usage;

/// The chat completions API.
#[derive(Debug)]
pub struct OpenaiChat;

impl OpenaiChat {
    /// Composes a request of our own: messages, model, format and longest answer; `temperature` where it is given.
    pub fn compose_request(conversation: &Conversation, temperature: Option<f64>) -> Bytes {
        compose::request(conversation, temperature)
    }
}

impl Surface for OpenaiChat {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        method == "POST" && path.strip_suffix('/').unwrap_or(path).ends_with("/chat/completions")
    }

    fn outline<'a>(&self, body: &'a [u8]) -> Result<Outline<'a>, SurfaceError> {
        request::outline(body)
    }

    fn read_request(&self, body: &[u8]) -> Result<Conversation, SurfaceError> {
        request::read(body)
    }

    fn write_request(&self, body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
        request::write(body, before, after)
    }

    fn read_reply(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        reply::read(body)
    }

    fn write_reply(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        reply::write(body, before, after)
    }

    fn read_stream(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        stream::read(body)
    }

    fn write_stream(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        stream::write(body, before, after)
    }

    fn usage(&self, body: &[u8], streamed: bool) -> Option<Usage> {
        reply::usage_of(body, streamed)
    }

    fn end_of_stream(&self) -> &'static [u8] {
        b"data: [DONE]"
    }

    fn compose(&self, reply: &Reply, created: u64) -> Bytes {
        compose::whole(reply, created)
    }

    fn compose_stream(&self, reply: &Reply, created: u64, with_usage: bool) -> Vec<Bytes> {
        compose::stream(reply, created, with_usage)
    }

    fn error_body(&self, error: &ErrorBody<'_>) -> Bytes {
        compose::error(error)
    }
}

/// The error for a body that is no `expected`.
fn unreadable(expected: &'static str, detail: impl Into<String>) -> SurfaceError {
    SurfaceError::Unreadable { expected, detail: detail.into() }
}
