//! Replies and errors of our own.

use bytes::Bytes;
use serde_json::{Value, json};

use super::step;
use crate::{
    surface::{Answer, ErrorBody, Reply, Role, blocks::Block, fields, splice::encode_string},
    trajectory::Usage,
};

pub(super) fn whole(reply: &Reply, created: u64) -> Bytes {
    let answer = reply.answers.first();
    let steps: Vec<Value> = answer.map(blocks).unwrap_or_default().iter().map(step_of).collect();
    Bytes::from(interaction(reply, status(answer), Some(steps), reply.usage, created).to_string())
}

/// An interaction while it is made.
pub(super) fn unfinished(reply: &Reply, created: u64, status: &str) -> Bytes {
    Bytes::from(interaction(reply, status, Some(Vec::new()), None, created).to_string())
}

pub(super) fn stream(reply: &Reply, created: u64) -> Vec<Bytes> {
    let answer = reply.answers.first();
    let begun = interaction(reply, "in_progress", None, None, created);
    let mut events = vec![json!({"event_type": "interaction.created", "interaction": begun})];
    for (index, block) in answer.map(blocks).unwrap_or_default().iter().enumerate() {
        events.extend(step_events(index, block));
    }
    let ended = interaction(reply, status(answer), None, reply.usage, created);
    events.push(json!({"event_type": "interaction.completed", "interaction": ended}));
    let frames = events.iter().map(frame).map(Bytes::from);
    frames.chain([Bytes::from_static(b"event: done\ndata: [DONE]\n\n")]).collect()
}

/// An event as it is sent.
pub(super) fn frame(event: &Value) -> String {
    let kind = event.get("event_type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {kind}\ndata: {event}\n\n")
}

/// The events of one step.
pub(super) fn step_events(index: usize, block: &Block) -> Vec<Value> {
    let (start, deltas): (Value, Vec<Value>) = match block {
        Block::Text(text) => {
            let delta = |word: &str| json!({"type": "text", "text": word});
            (json!({"type": "model_output"}), fields::words(text).map(delta).collect())
        }
        Block::Call(call) => {
            let start = json!({"type": "function_call", "id": call.id, "name": call.name, "arguments": {}});
            let delta = |piece: &str| json!({"type": "arguments_delta", "arguments": piece});
            let arguments = step::function_call(call).get("arguments").map(Value::to_string).unwrap_or_default();
            (start, fields::words(&arguments).map(delta).collect())
        }
        Block::Result { .. } | Block::Other(_) => return Vec::new(),
    };
    let started = json!({"event_type": "step.start", "index": index, "step": start});
    let deltas = deltas.into_iter().map(|delta| json!({"event_type": "step.delta", "index": index, "delta": delta}));
    let stopped = json!({"event_type": "step.stop", "index": index});
    std::iter::once(started).chain(deltas).chain([stopped]).collect()
}

fn interaction(reply: &Reply, status: &str, steps: Option<Vec<Value>>, usage: Option<Usage>, created: u64) -> Value {
    let serial = reply.id.split_once(['-', '_']).map_or(reply.id.as_str(), |(_, serial)| serial);
    let at = i64::try_from(created).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let at = at.unwrap_or_default().to_string();
    let mut made = json!({
        "id": format!("v1_{serial}"), "object": "interaction", "model": reply.model, "status": status,
        "created": at, "updated": at,
    });
    if let Some(made) = made.as_object_mut() {
        if let Some(steps) = steps {
            made.insert("steps".to_owned(), steps.into());
        }
        if let Some(Usage { input, output }) = usage {
            let counts =
                json!({"total_input_tokens": input, "total_output_tokens": output, "total_tokens": input + output});
            made.insert("usage".to_owned(), counts);
        }
    }
    made
}

fn status(answer: Option<&Answer>) -> &str {
    answer.and_then(|answer| answer.finish_reason.as_deref()).map_or("completed", step::status)
}

/// The blocks of an answer: its text, then its calls.
fn blocks(answer: &Answer) -> Vec<Block> {
    let text = Some(answer.message.text()).filter(|text| !text.is_empty()).map(Block::Text);
    text.into_iter().chain(answer.message.tool_calls.iter().cloned().map(Block::Call)).collect()
}

fn step_of(block: &Block) -> Value {
    match block {
        Block::Text(text) => step::output(Role::Assistant, text),
        Block::Call(call) => step::function_call(call),
        Block::Result { .. } | Block::Other(_) => Value::Null,
    }
}

/// The code of an error is the word of its status, in small letters.
pub(super) fn error(error: &ErrorBody<'_>) -> Bytes {
    let code = error.kind.to_lowercase();
    Bytes::from(json!({"error": {"code": code, "message": error.message}}).to_string())
}

pub(super) fn error_frame(error: &ErrorBody<'_>) -> Bytes {
    let (code, message) = (encode_string(&error.kind.to_lowercase()), encode_string(error.message));
    let data = format!("{{\"event_type\":\"error\",\"error\":{{\"code\":{code},\"message\":{message}}}}}");
    Bytes::from(format!("event: error\ndata: {data}\n\n"))
}
