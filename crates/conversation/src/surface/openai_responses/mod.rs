//! Responses: `POST …/responses` (<https://platform.openai.com/docs/api-reference/responses>).
//!
//! A response is a list of items: messages, tool calls, reasoning. `item` reads and edits one; `request` and `edit`
//! read and edit a request, `reply` and `changes` a whole response, `stream` and `rewrite` the same sent as events;
//! `compose` makes responses of our own, and `socket` reads the messages of a WebSocket.

mod account;
mod changes;
mod compose;
mod edit;
mod item;
mod stored_items;
mod reply;
mod request;
mod rewrite;
pub mod socket;
mod stream;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::{
    Conversation, ErrorBody, Outline, Reply, StoredItems, Surface, SurfaceError,
    account::{ReadAccount, StreamState},
    fields, logprobs, openai_chat, provider_error,
    splice::Node,
};

use crate::trajectory::Usage;

/// The responses API.
#[derive(Debug)]
pub struct OpenaiResponses;

impl Surface for OpenaiResponses {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn path(&self) -> &'static str {
        "/v1/responses"
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
        edit::write(body, before, after)
    }

    fn blank_request(&self) -> &'static [u8] {
        br#"{"model":"m","input":[]}"#
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
        rewrite::write(body, before, after)
    }

    fn stores(&self, asked: &[u8]) -> bool {
        // Kept unless the request says otherwise, and by a socket even then.
        fields::says_of_itself(asked, "store") != Some(false) || socket::is_message(asked)
    }

    fn in_background(&self, asked: &[u8]) -> bool {
        // Most requests do not speak of it: one look tells, without reading their members.
        memchr::memmem::find(asked, b"\"background\"").is_some()
            && fields::says_of_itself(asked, "background") == Some(true)
    }

    fn generates(&self, asked: &[u8]) -> bool {
        memchr::memmem::find(asked, b"\"generate\"").is_none()
            || fields::says_of_itself(asked, "generate") != Some(false)
    }

    fn in_the_making(&self, reply: &[u8]) -> Option<String> {
        reply::in_the_making(reply)
    }

    fn compose_unfinished(&self, reply: &Reply, created: u64, status: &str) -> Option<Bytes> {
        Some(compose::unfinished(reply, created, status))
    }

    fn fetches(&self, method: &str, path: &str) -> bool {
        // Cancelling answers with the response as it then is.
        let cancels =
            method == "POST" && path.contains("/responses/") && path.trim_end_matches('/').ends_with("/cancel");
        cancels || method == "GET" && (path.contains("/responses/") || path.contains("/conversations/"))
    }

    fn stored_items(&self, asked: &[u8], replied: &[u8], streamed: bool) -> Result<StoredItems, SurfaceError> {
        stored_items::stored_items(asked, replied, streamed)
    }

    fn retell(&self, body: &[u8], told: &[String]) -> Result<Bytes, SurfaceError> {
        stored_items::retell(body, told)
    }

    fn account_for_request(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::request(root, account);
    }

    fn account_for_reply(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::whole_reply("", root, account);
    }

    fn account_for_event(&self, event: &Node<'_>, _state: &mut StreamState, account: &mut ReadAccount) {
        account::event(event, account);
    }

    fn usage(&self, body: &[u8], streamed: bool) -> Option<Usage> {
        reply::usage_of(body, streamed)
    }

    fn ends_of_stream(&self) -> &'static [&'static [u8]] {
        &[b"event: response.completed", b"event: response.incomplete", b"event: response.failed", b"event: error"]
    }

    fn compose(&self, reply: &Reply, created: u64) -> Bytes {
        compose::whole_reply(reply, created)
    }

    fn compose_stream(&self, reply: &Reply, created: u64, _: bool) -> Vec<Bytes> {
        compose::stream(reply, created)
    }

    fn error_body(&self, error: &ErrorBody<'_>) -> Bytes {
        openai_chat::error_body(error)
    }

    fn error_frame(&self, error: &ErrorBody<'_>) -> Bytes {
        compose::error_frame(error)
    }

    fn answer_members(&self) -> &'static [&'static str] {
        &["output", "response", "type"]
    }

    fn error_part<'a>(&self, json: &Node<'a>) -> Option<Node<'a>> {
        provider_error::find(json, self.answer_members()).or_else(|| {
            let response = json.get("response").filter(Node::is_object).unwrap_or(*json);
            let failed = response.get("status").is_some_and(|status| status.raw() == "\"failed\"");
            let error = response.get("error").filter(provider_error::is_error_value);
            error.or_else(|| (failed || json.get("type")?.raw() == "\"response.failed\"").then_some(response))
        })
    }

    fn is_plainly_finished(&self, body: &[u8], streamed: bool) -> bool {
        let says = |word: &str| memchr::memmem::find(body, word.as_bytes()).is_some();
        let ended = if streamed { "\"response.completed\"" } else { "\"completed\"" };
        let otherwise = ["failed\"", "incomplete\"", "\"cancelled\""];
        says(ended) && !otherwise.into_iter().any(says)
    }

    fn is_finished(&self, chunk: &[u8]) -> bool {
        ["response.completed", "response.incomplete", "response.failed"]
            .iter()
            .any(|kind| memchr::memmem::find(chunk, format!("\"{kind}\"").as_bytes()).is_some())
    }

    fn ask_logprobs(&self, body: &[u8]) -> Option<Bytes> {
        // What is made in the background is fetched by a request of another kind.
        if self.in_background(body) { None } else { request::ask_logprobs(body) }
    }

    fn drop_logprobs(&self, json: &[u8]) -> Option<Bytes> {
        logprobs::dropped(json, |root, _, splices| logprobs::drop_of_parts(root, splices))
    }

    fn logprobs(&self, body: &[u8], streamed: bool) -> Vec<f64> {
        logprobs::read(body, streamed, logprobs::of_parts)
    }
}
