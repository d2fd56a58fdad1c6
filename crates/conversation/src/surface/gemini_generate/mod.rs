//! Gemini: `POST …/models/MODEL:generateContent`, and `:streamGenerateContent` (<https://ai.google.dev/api/generate-content>).
//!
//! The path names the model, and says whether the reply is a stream. A content is a list of parts: text, calls, results, signed
//! thoughts. `part` reads one, `partial` a call in pieces; `request` and `edit` read and edit a request, `reply` and `changes` a reply: whole it is one
//! chunk, streamed several. `spelling` knows that each name has two; `compose` makes replies of our own.

mod account;
mod changes;
mod compose;
mod edit;
mod part;
mod partial;
mod refusal;
mod reply;
mod request;
mod spelling;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;

use super::{
    Conversation, ErrorBody, PathParameters, Reply, StreamForm, Surface, SurfaceError,
    account::{ReadAccount, StreamState},
    fields, finish,
    splice::{Node, Splices, encode_string},
    sse,
};
use crate::trajectory::Usage;

/// What ends the path of a request for a whole reply.
const WHOLE: &str = ":generateContent";
/// What ends the path of a request for a stream.
const STREAMED: &str = ":streamGenerateContent";

/// The API of generateContent.
#[derive(Debug)]
pub struct GeminiGenerate;

/// The model that a path names, and whether it asks for a stream.
fn split(path: &str) -> Option<(&str, bool)> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let whole = || Some((path.strip_suffix(WHOLE)?, false));
    let (before, is_stream) = path.strip_suffix(STREAMED).map(|before| (before, true)).or_else(whole)?;
    let model = before.rsplit('/').next().filter(|model| !model.is_empty())?;
    Some((model, is_stream))
}

impl Surface for GeminiGenerate {
    fn name(&self) -> &'static str {
        "gemini_generate"
    }

    fn path(&self) -> &'static str {
        "/v1beta/models/gemini-3-flash-preview:generateContent"
    }

    fn path_for_stream(&self) -> &'static str {
        "/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse"
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        method == "POST" && split(path).is_some()
    }

    fn path_parameters(&self, target: &str) -> PathParameters {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some((model, is_stream)) = split(path) else { return PathParameters::default() };
        let are_events = query.split('&').any(|pair| pair == "alt=sse" || pair == "$alt=sse");
        let form = if are_events { StreamForm::Events } else { StreamForm::List };
        PathParameters { model: Some(model.to_owned()), stream: is_stream.then_some(form) }
    }

    fn has_path_parameters(&self) -> bool {
        true
    }

    fn read_request(&self, body: &[u8]) -> Result<Conversation, SurfaceError> {
        request::read(body)
    }

    fn write_request(&self, body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
        edit::write(body, before, after)
    }

    fn blank_request(&self) -> &'static [u8] {
        br#"{"contents":[]}"#
    }

    fn read_reply(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        reply::read(body, false)
    }

    fn write_reply(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        changes::write(body, false, before, after)
    }

    fn read_stream(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        reply::read(body, true)
    }

    fn write_stream(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        changes::write(body, true, before, after)
    }

    fn account_for_request(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::request(root, account);
    }

    fn account_for_reply(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::whole_reply(root, account);
    }

    fn account_for_event(&self, event: &Node<'_>, _: &mut StreamState, account: &mut ReadAccount) {
        account::chunk(event, true, account);
    }

    fn usage(&self, body: &[u8], streamed: bool) -> Option<Usage> {
        reply::usage_of(body, streamed)
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

    fn refusal(&self, status: u16, code: Option<&str>) -> ErrorBody<'static> {
        refusal::refusal(status, code)
    }

    /// The API says nothing of what is left.
    fn limit_headers(&self, _: u32, _: u32, _: Duration) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn answer_members(&self) -> &'static [&'static str] {
        reply::ANSWERS
    }

    fn is_plainly_finished(&self, body: &[u8], _streamed: bool) -> bool {
        matches!(finish::last_word(body, "finishReason"), Some(b"STOP" | b"MAX_TOKENS"))
    }

    fn is_finished(&self, chunk: &[u8]) -> bool {
        fields::says_string(chunk, b"finishReason")
    }

    fn write_model(&self, body: &[u8], streamed: bool, model: &str) -> Result<Bytes, SurfaceError> {
        let source = fields::source(body, reply::EXPECTED)?;
        let source = if streamed { sse::single_lines(source) } else { source.into() };
        let mut splices = Splices::default();
        for chunk in reply::chunks(&source, streamed)? {
            if let Some(place) = spelling::named(&chunk.members(), "modelVersion") {
                splices.replace(place.span(), encode_string(model));
            }
        }
        if splices.is_empty() {
            return Err(SurfaceError::NoPlace("the reply names no model".to_owned()));
        }
        Ok(splices.apply(body))
    }
}
