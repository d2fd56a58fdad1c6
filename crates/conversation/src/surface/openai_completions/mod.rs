//! Completions, the older API: `POST …/completions` (<https://platform.openai.com/docs/api-reference/completions>).
//!
//! It has one prompt and no roles: each prompt is read as a message of a user, each choice as an answer without tool
//! calls. A whole reply and a stream are the same objects, so both are read by `reply`.

mod account;
mod reply;
mod request;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::{
    Conversation, Reply, Surface, SurfaceError,
    account::{ReadAccount, StreamState},
    fields, finish, logprobs, provider_error,
    splice::Node,
};

/// The completions API.
#[derive(Debug)]
pub struct OpenaiCompletions;

impl Surface for OpenaiCompletions {
    fn name(&self) -> &'static str {
        "openai_completions"
    }

    fn path(&self) -> &'static str {
        "/v1/completions"
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        let path = path.strip_suffix('/').unwrap_or(path);
        // Conversations with a stored agent of Mistral's have messages and no prompt.
        let is_chat = path.ends_with("/chat/completions") || path.ends_with("/agents/completions");
        method == "POST" && path.ends_with("/completions") && !is_chat
    }

    fn read_request(&self, body: &[u8]) -> Result<Conversation, SurfaceError> {
        request::read(body)
    }

    fn write_request(&self, body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
        request::write(body, before, after)
    }

    fn blank_request(&self) -> &'static [u8] {
        br#"{"model":"m","prompt":""}"#
    }

    fn read_reply(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        reply::read(body)
    }

    fn write_reply(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        reply::write(body, before, after)
    }

    fn read_stream(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        reply::read_stream(body)
    }

    fn write_stream(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        reply::write_stream(body, before, after)
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

    fn ends_of_stream(&self) -> &'static [&'static [u8]] {
        &[b"data: [DONE]"]
    }

    fn last_frame(&self) -> &'static [u8] {
        b"data: [DONE]\n\n"
    }

    fn compose(&self, reply: &Reply, created: u64) -> Bytes {
        reply::compose(reply, created)
    }

    fn compose_stream(&self, reply: &Reply, created: u64, with_usage: bool) -> Vec<Bytes> {
        reply::compose_stream(reply, created, with_usage)
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
        logprobs::add_request(body, &[("logprobs", "1")], &["logprobs"])
    }

    fn drop_logprobs(&self, json: &[u8]) -> Option<Bytes> {
        logprobs::dropped(json, logprobs::drop_of_choices)
    }

    fn logprobs(&self, body: &[u8], streamed: bool) -> Vec<f64> {
        logprobs::read(body, streamed, logprobs::of_choices)
    }
}
