//! Chat completions: `POST …/chat/completions` (<https://platform.openai.com/docs/api-reference/chat>).
//!
//! `message` reads and edits one message, `request` and `reply` the bodies around it, `stream` the same reply sent as
//! frames, `kept` what is stored of them, `compose` makes replies of our own.

mod account;
mod compose;
mod message;
mod refusal;
mod reply;
mod request;
mod stream;
#[cfg(test)]
mod tests;

pub(super) use compose::{error as error_body, usage as usage_object};
pub(super) use refusal::{limit_headers, refusal};
pub(super) use reply::{drop_fields, usage, usage_of};

use bytes::Bytes;

use super::{
    Conversation, ErrorBody, Outline, Reply, Surface, SurfaceError,
    account::{ReadAccount, StreamState},
    fields, finish, logprobs, provider_error,
    splice::Node,
};
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

    fn path(&self) -> &'static str {
        "/v1/chat/completions"
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

    fn blank_request(&self) -> &'static [u8] {
        br#"{"model":"m","messages":[]}"#
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

    fn stores(&self, asked: &[u8]) -> bool {
        // Dropped unless the request says otherwise.
        fields::says_of_itself(asked, "store") == Some(true)
    }

    fn fetches(&self, method: &str, path: &str) -> bool {
        method == "GET" && (path.contains("/chat/completions/") || path.ends_with("/chat/completions"))
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
        &[b"data: [DONE]"]
    }

    fn last_frame(&self) -> &'static [u8] {
        b"data: [DONE]\n\n"
    }

    fn compose(&self, reply: &Reply, created: u64) -> Bytes {
        compose::whole_reply(reply, created)
    }

    fn compose_stream(&self, reply: &Reply, created: u64, with_usage: bool) -> Vec<Bytes> {
        compose::stream(reply, created, with_usage)
    }

    fn error_body(&self, error: &ErrorBody<'_>) -> Bytes {
        compose::error(error)
    }

    fn answer_members(&self) -> &'static [&'static str] {
        &["choices"]
    }

    fn error_part<'a>(&self, json: &Node<'a>) -> Option<Node<'a>> {
        provider_error::find(json, self.answer_members()).or_else(|| provider_error::find_in_choices(json))
    }

    fn is_plainly_finished(&self, body: &[u8], _streamed: bool) -> bool {
        matches!(finish::last_word(body, "finish_reason"), Some(b"stop" | b"length" | b"tool_calls" | b"function_call"))
    }

    fn is_finished(&self, chunk: &[u8]) -> bool {
        fields::says_string(chunk, b"finish_reason")
    }

    fn ask_logprobs(&self, body: &[u8]) -> Option<Bytes> {
        logprobs::add_request(body, &[("logprobs", "true")], &["logprobs", "top_logprobs"])
    }

    fn drop_logprobs(&self, json: &[u8]) -> Option<Bytes> {
        logprobs::dropped(json, logprobs::drop_of_choices)
    }

    fn logprobs(&self, body: &[u8], streamed: bool) -> Vec<f64> {
        logprobs::read(body, streamed, logprobs::of_choices)
    }
}
