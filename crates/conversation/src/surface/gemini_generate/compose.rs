//! Replies and errors of our own.

use bytes::Bytes;
use serde_json::{Value, json};

use super::part;
use crate::surface::{Answer, ErrorBody, Reply, fields};

pub(super) fn whole_reply(reply: &Reply) -> Bytes {
    let candidate = |answer: &Answer| {
        let said = text(answer).map(|text| part::text_part(&text));
        let parts: Vec<Value> = said.into_iter().chain(calls(answer)).collect();
        candidate(answer.index, &parts, answer.finish_reason.as_deref())
    };
    let candidates: Vec<Value> = reply.answers.iter().map(candidate).collect();
    Bytes::from(chunk(reply, &candidates, true).to_string())
}

/// One event a word or a call, and one that says why the model stopped.
pub(super) fn stream(reply: &Reply) -> Vec<Bytes> {
    let mut frames = Vec::new();
    for (number, answer) in reply.answers.iter().enumerate() {
        let is_last = number + 1 == reply.answers.len();
        let said = text(answer).unwrap_or_default();
        let words = fields::words(&said).map(part::text_part);
        for part in words.chain(calls(answer)) {
            frames.push(frame(&chunk(reply, &[candidate(answer.index, &[part], None)], false)));
        }
        let nothing = answer.message.tool_calls.is_empty().then(|| part::text_part(""));
        let ended = candidate(answer.index, nothing.as_slice(), answer.finish_reason.as_deref());
        frames.push(frame(&chunk(reply, &[ended], is_last)));
    }
    frames
}

fn frame(chunk: &Value) -> Bytes {
    Bytes::from(format!("data: {chunk}\r\n\r\n"))
}

fn chunk(reply: &Reply, candidates: &[Value], is_counted: bool) -> Value {
    let serial = reply.id.split_once(['-', '_']).map_or(reply.id.as_str(), |(_, serial)| serial);
    let mut chunk = json!({"candidates": candidates, "modelVersion": reply.model, "responseId": serial});
    if let (Some(usage), Some(chunk)) = (reply.usage.filter(|_| is_counted), chunk.as_object_mut()) {
        let counts = json!({
            "promptTokenCount": usage.input, "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output,
        });
        chunk.insert("usageMetadata".to_owned(), counts);
    }
    chunk
}

fn candidate(index: u32, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": index});
    if let (Some(finish), Some(candidate)) = (finish, candidate.as_object_mut()) {
        candidate.insert("finishReason".to_owned(), part::finish_reason(finish).into());
    }
    candidate
}

fn text(answer: &Answer) -> Option<String> {
    Some(answer.message.text()).filter(|text| !text.is_empty())
}

fn calls(answer: &Answer) -> impl Iterator<Item = Value> {
    answer.message.tool_calls.iter().map(part::call_part)
}

/// The status of an error is a word, with a number beside it.
pub(super) fn error(error: &ErrorBody<'_>) -> Bytes {
    let (status, code) = super::refusal::status(error.kind);
    Bytes::from(json!({"error": {"code": code, "message": error.message, "status": status}}).to_string())
}
