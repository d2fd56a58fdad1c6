//! Requests, replies and errors of our own.

use bytes::Bytes;
use serde_json::{Value, json};

use super::message;
use crate::surface::{Answer, Conversation, ErrorBody, Reply, RequiredFormat, fields};

/// A request of our own. What the conversation leaves open is left to the backend.
pub(super) fn request(conversation: &Conversation, temperature: Option<f64>) -> Bytes {
    let mut body = serde_json::Map::new();
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    set("model", conversation.model.as_str().into());
    set("messages", conversation.messages.iter().map(message::make).collect());
    if let Some(temperature) = temperature {
        set("temperature", temperature.into());
    }
    if let Some(tokens) = conversation.max_tokens {
        set("max_completion_tokens", tokens.into());
    }
    if let Some(seed) = conversation.sampling.seed {
        set("seed", seed.into());
    }
    match &conversation.format {
        RequiredFormat::Text => {}
        RequiredFormat::JsonObject => {
            set("response_format", json!({"type": "json_object"}));
        }
        RequiredFormat::JsonSchema { name, schema } => {
            let schema = json!({"name": name, "strict": true, "schema": schema});
            set("response_format", json!({"type": "json_schema", "json_schema": schema}));
        }
    }
    Bytes::from(Value::Object(body).to_string())
}

pub(super) fn whole_reply(reply: &Reply, created: u64) -> Bytes {
    let choice = |answer: &Answer| json!({"index": answer.index, "message": assistant(answer), "logprobs": null, "finish_reason": answer.finish_reason});
    let body = json!({
        "id": reply.id,
        "object": "chat.completion",
        "created": created,
        "model": reply.model,
        "choices": reply.answers.iter().map(choice).collect::<Vec<_>>(),
        "usage": usage(reply),
    });
    Bytes::from(body.to_string())
}

pub(super) fn stream(reply: &Reply, created: u64, with_usage: bool) -> Vec<Bytes> {
    let frame = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": reply.id, "object": "chat.completion.chunk", "created": created, "model": reply.model, "choices": choices,
        });
        if with_usage && let Some(object) = chunk.as_object_mut() {
            object.insert("usage".to_owned(), usage);
        }
        Bytes::from(format!("data: {chunk}\n\n"))
    };
    let mut frames = Vec::new();
    for answer in &reply.answers {
        for (delta, finish) in deltas(answer) {
            let choice = json!({"index": answer.index, "delta": delta, "logprobs": null, "finish_reason": finish});
            frames.push(frame(json!([choice]), Value::Null));
        }
    }
    if with_usage {
        frames.push(frame(json!([]), usage(reply)));
    }
    frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
    frames
}

/// The error body of this and the other APIs of the same provider.
pub(in crate::surface) fn error(error: &ErrorBody<'_>) -> Bytes {
    let body =
        json!({"error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}});
    Bytes::from(body.to_string())
}

/// The deltas of one answer: role, words, tool calls in pieces, finish.
fn deltas(answer: &Answer) -> Vec<(Value, Option<&str>)> {
    let calls = &answer.message.tool_calls;
    let silent = answer.message.parts.is_empty() && !calls.is_empty();
    let opening = if silent { Value::Null } else { "".into() };
    let mut deltas = vec![(json!({"role": "assistant", "content": opening, "refusal": null}), None)];
    deltas.extend(fields::words(&answer.message.text()).map(|piece| (json!({"content": piece}), None)));
    for (index, call) in calls.iter().enumerate() {
        let mut opening = message::make_call(call);
        if let Some(arguments) = opening.pointer_mut("/function/arguments") {
            *arguments = "".into();
        }
        if let Some(object) = opening.as_object_mut() {
            object.insert("index".to_owned(), index.into());
        }
        deltas.push((json!({"tool_calls": [opening]}), None));
        let more = |piece: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
        deltas.extend(fields::words(&call.arguments).map(|piece| (more(piece), None)));
    }
    deltas.push((json!({}), answer.finish_reason.as_deref()));
    deltas
}

fn assistant(answer: &Answer) -> Value {
    let mut message = message::make(&answer.message);
    if let Some(object) = message.as_object_mut() {
        object.insert("refusal".to_owned(), Value::Null);
    }
    message
}

/// The `usage` object.
pub(in crate::surface) fn usage(reply: &Reply) -> Value {
    let usage = reply.usage.unwrap_or_default();
    json!({"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output})
}
