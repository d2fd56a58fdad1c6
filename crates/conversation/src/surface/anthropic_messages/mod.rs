//! Messages: `POST …/v1/messages` (<https://docs.anthropic.com/en/api/messages>).
//!
//! A message is a list of content blocks: text, tool use, tool results, signed thinking. `block` reads one; `request`
//! and `edit` read and edit a request, `reply` and `changes` a whole reply, `stream` the same sent as events; `compose` makes replies of our own.

mod account;
mod block;
mod changes;
mod compose;
mod edit;
mod refusal;
mod reply;
mod request;
mod stream;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;

use super::{
    Conversation, ErrorBody, Outline, Reply, Surface, SurfaceError,
    account::{ReadAccount, StreamState},
    fields, finish,
    splice::Node,
    sse,
};
use crate::trajectory::Usage;

/// The messages API.
#[derive(Debug)]
pub struct AnthropicMessages;

impl Surface for AnthropicMessages {
    fn name(&self) -> &'static str {
        "anthropic_messages"
    }

    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        let path = path.strip_suffix('/').unwrap_or(path);
        // Another API keeps its threads' messages at a like path.
        method == "POST" && path.ends_with("/messages") && !path.contains("/threads/")
    }

    fn outline<'a>(&self, body: &'a [u8]) -> Result<Outline<'a>, SurfaceError> {
        request::outline(body)
    }

    fn read_request(&self, body: &[u8]) -> Result<Conversation, SurfaceError> {
        request::read(body)
    }

    fn write_request(&self, body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
        edit::write(body, before, after)
    }

    fn blank_request(&self) -> &'static [u8] {
        br#"{"model":"m","max_tokens":4096,"messages":[]}"#
    }

    fn read_reply(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        reply::read(body)
    }

    fn write_reply(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        changes::write(body, before, after)
    }

    fn read_stream(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        stream::EVENTS.read(body)
    }

    fn write_stream(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        stream::write(body, before, after)
    }

    fn account_for_request(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::request(root, account);
    }

    fn account_for_reply(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::whole_reply(root, account);
    }

    fn account_for_event(&self, event: &Node<'_>, state: &mut StreamState, account: &mut ReadAccount) {
        account::event(event, state, account);
    }

    fn usage(&self, body: &[u8], streamed: bool) -> Option<Usage> {
        reply::usage_of(body, streamed)
    }

    fn ends_of_stream(&self) -> &'static [&'static [u8]] {
        &[b"event: message_stop", b"event: error"]
    }

    fn last_frame(&self) -> &'static [u8] {
        b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    }

    fn compose(&self, reply: &Reply, _: u64) -> Bytes {
        compose::whole_reply(reply)
    }

    fn compose_stream(&self, reply: &Reply, _: u64, _: bool) -> Vec<Bytes> {
        compose::stream(reply)
    }

    fn error_body(&self, error: &ErrorBody<'_>) -> Bytes {
        compose::error(error)
    }

    fn error_frame(&self, error: &ErrorBody<'_>) -> Bytes {
        Bytes::from([b"event: error\ndata: ", &self.error_body(error)[..], b"\n\n"].concat())
    }

    fn refusal(&self, status: u16, code: Option<&str>) -> ErrorBody<'static> {
        refusal::refusal(status, code)
    }

    fn limit_headers(&self, limit: u32, left: u32, reset: Duration) -> Vec<(&'static str, String)> {
        refusal::limit_headers(limit, left, reset)
    }

    fn answer_members(&self) -> &'static [&'static str] {
        &["content", "type"]
    }

    fn is_plainly_finished(&self, body: &[u8], _streamed: bool) -> bool {
        let word = finish::last_word(body, "stop_reason");
        matches!(word, Some(b"end_turn" | b"tool_use" | b"max_tokens" | b"stop_sequence" | b"pause_turn"))
    }

    fn is_end_marker(&self, data: &[u8]) -> bool {
        let kind = || Node::parse(data).ok()?.get("type")?.string();
        sse::is_done(data) || kind().is_some_and(|kind| kind == "message_stop")
    }

    fn is_finished(&self, chunk: &[u8]) -> bool {
        fields::says_string(chunk, b"stop_reason")
    }
}
