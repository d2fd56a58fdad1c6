//! Replies and errors of our own.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    block::{self, MessageBlocks},
    stream::EVENTS,
};
use crate::{
    surface::{
        Answer, ErrorBody, Reply,
        blocks::{self, edit::BlockForm as _},
    },
    trajectory::Usage,
};

pub(super) fn whole_reply(reply: &Reply) -> Bytes {
    let answer = reply.answers.first();
    let content: Vec<Value> =
        answer.map(blocks::of_answer).unwrap_or_default().iter().map(|block| MessageBlocks.new_block(block)).collect();
    Bytes::from(message(reply, &content, stop_reason(answer), reply.usage.unwrap_or_default()).to_string())
}

pub(super) fn stream(reply: &Reply) -> Vec<Bytes> {
    let answer = reply.answers.first();
    let usage = reply.usage.unwrap_or_default();
    let began = message(reply, &[], None, Usage { output: 1, ..usage });
    let mut events = vec![json!({"type": "message_start", "message": began}), json!({"type": "ping"})];
    let blocks = answer.map(blocks::of_answer).unwrap_or_default();
    events.extend((0..).zip(&blocks).flat_map(|(index, block)| EVENTS.block_events(index, block)));
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(|event| EVENTS.frame(event).into()).collect()
}

pub(super) fn error(error: &ErrorBody<'_>) -> Bytes {
    Bytes::from(json!({"type": "error", "error": {"type": error.kind, "message": error.message}}).to_string())
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
