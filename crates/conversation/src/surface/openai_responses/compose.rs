//! Responses of our own.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::surface::{Answer, ErrorBody, Reply, ToolCall, fields};

pub(super) fn whole_reply(reply: &Reply, created: u64) -> Bytes {
    Bytes::from(response(reply, created, Some(output(reply))).to_string())
}

/// A response that is being made in the background: without what it says.
pub(super) fn unfinished(reply: &Reply, created: u64, status: &str) -> Bytes {
    let mut object = response(reply, created, None);
    if let Some(object) = object.as_object_mut() {
        object.insert("status".to_owned(), status.into());
        object.insert("background".to_owned(), true.into());
    }
    Bytes::from(object.to_string())
}

pub(super) fn stream(reply: &Reply, created: u64) -> Vec<Bytes> {
    let began = response(reply, created, None);
    let mut events = vec![
        json!({"type": "response.created", "response": began}),
        json!({"type": "response.in_progress", "response": began}),
    ];
    for (index, item) in output(reply).into_iter().enumerate() {
        events.extend(item_events(index, &item));
    }
    let ended = response(reply, created, Some(output(reply)));
    let kind =
        if ended.get("status").and_then(Value::as_str) == Some("completed") { "completed" } else { "incomplete" };
    events.push(json!({"type": format!("response.{kind}"), "response": ended}));
    (0..).zip(events).map(|(number, event)| Bytes::from(frame(event, Some(number)))).collect()
}

/// An event as it is sent, numbered if the stream is.
pub(super) fn frame(mut event: Value, number: Option<u64>) -> String {
    if let (Some(number), Some(object)) = (number, event.as_object_mut()) {
        object.insert("sequence_number".to_owned(), number.into());
    }
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {kind}\ndata: {event}\n\n")
}

/// The event of an error. It has no number: it stands for a server that broke.
pub(super) fn error_frame(error: &ErrorBody<'_>) -> Bytes {
    let event = json!({"type": "error", "code": error.code, "message": error.message, "param": error.param});
    Bytes::from(frame(event, None))
}

/// The events of one item, without their numbers.
pub(super) fn item_events(index: usize, item: &Value) -> Vec<Value> {
    let id = item.get("id").cloned().unwrap_or_default();
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut added = item.clone();
    for (pointer, empty) in [("/content", json!([])), ("/arguments", json!("")), ("/status", json!("in_progress"))] {
        if let Some(place) = added.pointer_mut(pointer) {
            *place = empty;
        }
    }
    let mut events = vec![json!({"type": "response.output_item.added", "output_index": index, "item": added})];
    if item.get("type").and_then(Value::as_str) == Some("message") {
        let (said, part) = (text("/content/0/text"), item.pointer("/content/0").cloned().unwrap_or_default());
        let event = |kind: &str, key: &str, value: Value| json!({"type": format!("response.{kind}"), "item_id": id, "output_index": index, "content_index": 0, key: value});
        let scored = |mut event: Value| {
            event.as_object_mut().map(|event| event.insert("logprobs".to_owned(), json!([])));
            event
        };
        let empty = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
        events.push(event("content_part.added", "part", empty));
        events.extend(fields::words(&said).map(|word| scored(event("output_text.delta", "delta", word.into()))));
        events.push(scored(event("output_text.done", "text", said.clone().into())));
        events.push(event("content_part.done", "part", part));
    } else {
        let arguments = text("/arguments");
        let delta = |piece: &str| json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": piece});
        events.extend(fields::words(&arguments).map(delta));
        events.push(json!({
            "type": "response.function_call_arguments.done", "item_id": id, "output_index": index,
            "name": text("/name"), "arguments": arguments,
        }));
    }
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    events
}

/// A response object: under way without its output, ended with it.
fn response(reply: &Reply, created: u64, output: Option<Vec<Value>>) -> Value {
    let cut = reply.answers.first().and_then(|answer| answer.finish_reason.as_deref()) == Some(Answer::CUT);
    let (status, details) = match (&output, cut) {
        (None, _) => ("in_progress", Value::Null),
        (Some(_), false) => ("completed", Value::Null),
        (Some(_), true) => ("incomplete", json!({"reason": "max_output_tokens"})),
    };
    let usage = reply.usage.filter(|_| output.is_some()).map(|usage| {
        json!({
            "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input + usage.output,
        })
    });
    json!({
        "id": format!("resp_{}", serial(reply)),
        "object": "response",
        "created_at": created,
        "status": status,
        "error": null,
        "incomplete_details": details,
        "instructions": null,
        "max_output_tokens": null,
        "model": reply.model,
        "output": output.unwrap_or_default(),
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null},
        "store": true,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
        "user": null,
        "metadata": {},
    })
}

/// The part of a reply's id that is its own.
fn serial(reply: &Reply) -> &str {
    reply.id.split_once(['-', '_']).map_or(reply.id.as_str(), |(_, serial)| serial)
}

/// The items of the first answer: the API knows no alternatives.
fn output(reply: &Reply) -> Vec<Value> {
    let Some(answer) = reply.answers.first() else { return Vec::new() };
    let calls = &answer.message.tool_calls;
    let mut items = Vec::new();
    if calls.is_empty() || !answer.message.parts.is_empty() {
        let status = if answer.finish_reason.as_deref() == Some(Answer::CUT) { "incomplete" } else { "completed" };
        items.push(message_item(&format!("msg_{}", serial(reply)), &answer.message.text(), status));
    }
    items.extend(calls.iter().map(called));
    items
}

/// A message item.
pub(super) fn message_item(id: &str, text: &str, status: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": [part]})
}

/// A function call item; its id is made from the call's.
pub(super) fn called(call: &ToolCall) -> Value {
    let serial = call.id.split_once('_').map_or(call.id.as_str(), |(_, serial)| serial);
    json!({
        "id": format!("fc_{serial}"), "type": "function_call", "status": "completed",
        "call_id": call.id, "name": call.name, "arguments": call.arguments,
    })
}
