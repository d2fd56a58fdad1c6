//! Responses: `POST …/responses` (<https://platform.openai.com/docs/api-reference/responses>).
//!
//! A response is a list of items: messages, tool calls, reasoning. `item` reads and edits one, `request` and `reply`
//! the bodies around them, `stream` the same reply sent as events, `compose` makes replies of our own.

mod compose;
mod item;
mod reply;
mod request;
mod stream;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::{Conversation, ErrorBody, Outline, Reply, Surface, SurfaceError, openai_chat};
use crate::trajectory::Usage;

/// The responses API.
#[derive(Debug)]
pub struct OpenaiResponses;

impl Surface for OpenaiResponses {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        method == "POST" && path.strip_suffix('/').unwrap_or(path).ends_with("/responses")
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

    fn ends_of_stream(&self) -> &'static [&'static [u8]] {
        &[b"event: response.completed", b"event: response.incomplete", b"event: response.failed", b"event: error"]
    }

    fn compose(&self, reply: &Reply, created: u64) -> Bytes {
        compose::whole(reply, created)
    }

    fn compose_stream(&self, reply: &Reply, created: u64, _: bool) -> Vec<Bytes> {
        compose::stream(reply, created)
    }

    fn error_body(&self, error: &ErrorBody<'_>) -> Bytes {
        openai_chat::error_body(error)
    }
}
