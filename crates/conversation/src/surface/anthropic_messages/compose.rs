//! Replies and errors of our own.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{block, edit::MessageBlocks};
use crate::{
    surface::{
        Answer, ErrorBody, Reply, ToolCall,
        blocks::{Block, edit::BlockForm as _},
        fields,
    },
    trajectory::Usage,
};

pub(super) fn whole(reply: &Reply) -> Bytes {
    let answer = reply.answers.first();
    let content = answer.map(blocks).unwrap_or_default();
    Bytes::from(message(reply, &content, stop_reason(answer), reply.usage.unwrap_or_default()).to_string())
}

pub(super) fn stream(reply: &Reply) -> Vec<Bytes> {
    let answer = reply.answers.first();
    let usage = reply.usage.unwrap_or_default();
    let began = message(reply, &[], None, Usage { output: 1, ..usage });
    let mut events = vec![json!({"type": "message_start", "message": began}), json!({"type": "ping"})];
    for (index, block) in answer.map(blocks).unwrap_or_default().into_iter().enumerate() {
        events.extend(block_events(index, block));
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(frame).map(Bytes::from).collect()
}

pub(super) fn error(error: &ErrorBody<'_>) -> Bytes {
    Bytes::from(json!({"type": "error", "error": {"type": error.kind, "message": error.message}}).to_string())
}

/// An event as it is sent.
pub(super) fn frame(event: &Value) -> String {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {kind}\ndata: {event}\n\n")
}

/// The events of one block.
pub(super) fn block_events(index: usize, mut block: Value) -> Vec<Value> {
    let (said, kind, key) = if let Some(text) = block.get("text").and_then(Value::as_str) {
        (text.to_owned(), "text_delta", "text")
    } else {
        let input = block.get_mut("input").map(|input| std::mem::replace(input, json!({})));
        (input.unwrap_or_default().to_string(), "input_json_delta", "partial_json")
    };
    if let Some(text) = block.get_mut("text") {
        *text = "".into();
    }
    let delta =
        |piece: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}});
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    events.extend(fields::words(&said).map(delta));
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

fn message(reply: &Reply, content: &[Value], stop_reason: Option<&str>, usage: Usage) -> Value {
    let serial = reply.id.split_once(['-', '_']).map_or(reply.id.as_str(), |(_, serial)| serial);
    json!({
        "id": format!("msg_{serial}"),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "output_tokens": usage.output,
        },
    })
}

fn stop_reason(answer: Option<&Answer>) -> Option<&str> {
    answer.and_then(|answer| answer.finish_reason.as_deref()).map(block::stop_reason)
}

/// The blocks of an answer: its text, then its calls.
fn blocks(answer: &Answer) -> Vec<Value> {
    let text = answer.message.text();
    let said = (!text.is_empty()).then(|| text_block(&text));
    said.into_iter().chain(answer.message.tool_calls.iter().map(called)).collect()
}

/// A new block: a text or a call.
pub(super) fn block(block: &Block) -> Value {
    MessageBlocks.made(block)
}

/// A text block.
pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A tool use block. Arguments that are no JSON become an empty object: the API has no other place for them.
pub(super) fn called(call: &ToolCall) -> Value {
    let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
}
