//! Gemini's Interactions: `POST …/interactions` (<https://ai.google.dev/api/interactions-api>).
//!
//! An interaction is a list of steps: what the user says, what the model says, calls of functions, their results, thoughts. `step`
//! reads and edits one; `request` and `edit` read and edit a request, `reply` a whole interaction, `stream` the same sent as
//! events; `compose` makes interactions of our own.

mod account;
mod compose;
mod edit;
mod reply;
mod request;
mod step;
mod stored_items;
mod stream;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;

use super::{
    Conversation, ErrorBody, GeminiGenerate, Reply, StoredItems, Surface, SurfaceError,
    account::{ReadAccount, StreamState},
    fields, provider_error,
    splice::Node,
    sse,
};
use crate::trajectory::Usage;

/// The API of interactions.
#[derive(Debug)]
pub struct GeminiInteractions;

/// Statuses of interactions that are over.
const OVER: &[&str] = &["completed", "requires_action", "incomplete", "failed", "cancelled", "budget_exceeded"];

impl Surface for GeminiInteractions {
    fn name(&self) -> &'static str {
        "gemini_interactions"
    }

    fn path(&self) -> &'static str {
        "/v1beta/interactions"
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        method == "POST" && path.strip_suffix('/').unwrap_or(path).ends_with("/interactions")
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
        stream::EVENTS.read(body)
    }

    fn write_stream(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        stream::write(body, before, after)
    }

    fn account_for_request(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::request(root, account);
    }

    fn account_for_reply(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::whole_reply("", root, account);
    }

    fn account_for_event(&self, event: &Node<'_>, state: &mut StreamState, account: &mut ReadAccount) {
        account::event(event, state, account);
    }

    fn usage(&self, body: &[u8], streamed: bool) -> Option<Usage> {
        stream::usage_of(body, streamed)
    }

    fn ends_of_stream(&self) -> &'static [&'static [u8]] {
        &[b"event: done", b"data: [DONE]"]
    }

    fn last_frame(&self) -> &'static [u8] {
        b"event: done\ndata: [DONE]\n\n"
    }

    fn compose(&self, reply: &Reply, created: u64) -> Bytes {
        compose::whole_reply(reply, created)
    }

    fn compose_stream(&self, reply: &Reply, created: u64, _: bool) -> Vec<Bytes> {
        compose::stream(reply, created)
    }

    fn error_body(&self, error: &ErrorBody<'_>) -> Bytes {
        compose::error(error)
    }

    fn error_frame(&self, error: &ErrorBody<'_>) -> Bytes {
        compose::error_frame(error)
    }

    fn refusal(&self, status: u16, code: Option<&str>) -> ErrorBody<'static> {
        GeminiGenerate.refusal(status, code)
    }

    fn limit_headers(&self, limit: u32, left: u32, reset: Duration) -> Vec<(&'static str, String)> {
        GeminiGenerate.limit_headers(limit, left, reset)
    }

    fn stores(&self, asked: &[u8]) -> bool {
        // Kept unless the request says otherwise.
        fields::says_of_itself(asked, "store") != Some(false)
    }

    fn in_background(&self, asked: &[u8]) -> bool {
        memchr::memmem::find(asked, b"\"background\"").is_some()
            && fields::says_of_itself(asked, "background") == Some(true)
    }

    fn in_the_making(&self, reply: &[u8]) -> Option<String> {
        reply::in_the_making(reply)
    }

    fn compose_unfinished(&self, reply: &Reply, created: u64, status: &str) -> Option<Bytes> {
        Some(compose::unfinished(reply, created, status))
    }

    fn fetches(&self, method: &str, path: &str) -> bool {
        // Cancelling answers with the interaction as it then is.
        let cancels =
            method == "POST" && path.contains("/interactions/") && path.trim_end_matches('/').ends_with("/cancel");
        cancels || method == "GET" && path.contains("/interactions/")
    }

    fn stored_items(&self, asked: &[u8], replied: &[u8], streamed: bool) -> Result<StoredItems, SurfaceError> {
        stored_items::stored_items(asked, replied, streamed)
    }

    fn retell(&self, body: &[u8], told: &[String]) -> Result<Bytes, SurfaceError> {
        stored_items::retell(body, told)
    }

    fn answer_members(&self) -> &'static [&'static str] {
        &["steps", "outputs", "status", "interaction", "interaction_id", "step", "delta", "event_type"]
    }

    fn error_part<'a>(&self, json: &Node<'a>) -> Option<Node<'a>> {
        provider_error::find(json, self.answer_members()).or_else(|| {
            let interaction = json.get("interaction").unwrap_or(*json);
            let failed = interaction.get("status").is_some_and(|status| status.raw() == "\"failed\"");
            failed.then(|| interaction.get("errors").filter(provider_error::is_error_value).unwrap_or(interaction))
        })
    }

    fn is_plainly_finished(&self, body: &[u8], streamed: bool) -> bool {
        let says = |word: &str| memchr::memmem::find(body, word.as_bytes()).is_some();
        let ended = if streamed { "\"interaction.completed\"" } else { "\"completed\"" };
        let otherwise = ["failed\"", "incomplete\"", "\"cancelled\"", "budget_exceeded\""];
        says(ended) && !otherwise.into_iter().any(says)
    }

    fn is_end_marker(&self, data: &[u8]) -> bool {
        let kind = || Node::parse(data).ok()?.get("event_type")?.string();
        sse::is_done(data) || kind().is_some_and(|kind| kind == "interaction.completed")
    }

    fn is_finished(&self, chunk: &[u8]) -> bool {
        let says = |word: &str| memchr::memmem::find(chunk, format!("\"{word}\"").as_bytes()).is_some();
        says("interaction.completed") || OVER.iter().any(|status| says(status))
    }
}
