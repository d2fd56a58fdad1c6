//! A streamed chat reply put together as an SDK does it: by the rules of the API's reference, with nothing of the
//! project's own reader.

use serde_json::{Value, json};

use crate::scripted::{Act, chunk, http, last_chunk, stream_head};

/// The object that an SDK builds from a stream: strings concatenate, tool calls join by index, the last usage counts.
pub fn assembled(stream: &str) -> Value {
    let mut object = json!({"choices": {}});
    for frame in stream.split("\n\n").filter_map(|event| event.trim().strip_prefix("data: ")) {
        if frame == "[DONE]" {
            break;
        }
        let frame: Value = serde_json::from_str(frame).unwrap_or_else(|error| panic!("{error}: {frame}"));
        for key in ["id", "model", "created"] {
            object[key] = frame[key].clone();
        }
        if let Some(usage) = frame.get("usage").filter(|usage| !usage.is_null()) {
            object["usage"] = usage.clone();
        }
        for choice in frame["choices"].as_array().into_iter().flatten() {
            let index = choice["index"].to_string();
            if object["choices"].get(&index).is_none() {
                object["choices"][&index] =
                    json!({"message": {"content": null, "tool_calls": []}, "finish_reason": null});
            }
            join(&mut object["choices"][&index], choice);
        }
    }
    object
}

fn join(so_far: &mut Value, choice: &Value) {
    if !choice["finish_reason"].is_null() {
        so_far["finish_reason"] = choice["finish_reason"].clone();
    }
    let delta = &choice["delta"];
    let message = &mut so_far["message"];
    for key in ["role", "content", "refusal"] {
        append(&mut message[key], &delta[key]);
    }
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let index = usize::try_from(call["index"].as_u64().expect("an index")).expect("small");
        let calls = message["tool_calls"].as_array_mut().expect("a list");
        assert!(index <= calls.len(), "tool call {index} before its forerunner");
        if index == calls.len() {
            calls.push(json!({"function": {}}));
        }
        for key in ["id", "type"] {
            append(&mut calls[index][key], &call[key]);
        }
        for key in ["name", "arguments"] {
            append(&mut calls[index]["function"][key], &call["function"][key]);
        }
    }
}

fn append(so_far: &mut Value, more: &Value) {
    if let Some(more) = more.as_str() {
        *so_far = format!("{}{more}", so_far.as_str().unwrap_or_default()).into();
    }
}

/// The same object from a reply sent whole.
pub fn whole(body: &str) -> Value {
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let mut object = json!({"choices": {}, "id": body["id"], "model": body["model"], "created": body["created"]});
    object["usage"] = body["usage"].clone();
    for choice in body["choices"].as_array().into_iter().flatten() {
        let message = &choice["message"];
        let mut kept = json!({"content": message["content"], "role": message["role"]});
        kept["tool_calls"] = message.get("tool_calls").cloned().unwrap_or_else(|| json!([]));
        object["choices"][&choice["index"].to_string()] =
            json!({"message": kept, "finish_reason": choice["finish_reason"]});
    }
    object
}

/// Without what a stream says by leaving it out.
pub fn normal(mut object: Value) -> Value {
    for choice in object["choices"].as_object_mut().expect("choices").values_mut() {
        let message = choice["message"].as_object_mut().expect("a message");
        message.remove("refusal");
        if message.get("content").is_some_and(|content| content == "") {
            message.insert("content".to_owned(), Value::Null);
        }
        if message.get("tool_calls").is_none_or(Value::is_null) {
            message.insert("tool_calls".to_owned(), json!([]));
        }
    }
    object
}

/// One reply of these choices, each a text and tool calls `(name, arguments)`, in both forms: sent whole and streamed.
pub fn both(choices: &[(&str, &[(&str, &str)])]) -> (Vec<Act>, Vec<Act>) {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17});
    let head = json!({"id": "chatcmpl-9", "created": 9, "model": "m"});
    let with = |fields: Value| {
        let mut object = head.clone();
        object.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        object
    };
    let frame = |choices: Value| {
        let body = with(json!({"object": "chat.completion.chunk", "choices": choices, "usage": null}));
        chunk(format!("data: {body}\n\n"))
    };
    let (mut wholes, mut frames) = (Vec::new(), vec![stream_head()]);
    let say = |index: usize, delta: Value| {
        frame(json!([{"index": index, "delta": delta, "logprobs": null, "finish_reason": null}]))
    };
    for (index, _) in choices.iter().enumerate() {
        frames.push(say(index, json!({"role": "assistant", "content": "", "refusal": null})));
    }
    for (index, (text, calls)) in choices.iter().enumerate() {
        let letters: Vec<char> = text.chars().collect();
        frames.extend(letters.chunks(3).map(|piece| say(index, json!({"content": piece.iter().collect::<String>()}))));
        let mut list = Vec::new();
        for (at, (name, arguments)) in calls.iter().enumerate() {
            let id = format!("call_{index}_{at}");
            list.push(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}));
            let first = json!({"index": at, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
            frames.push(say(index, json!({"tool_calls": [first]})));
            let letters: Vec<char> = arguments.chars().collect();
            frames.extend(letters.chunks(4).map(|piece| {
                let piece: String = piece.iter().collect();
                say(index, json!({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}))
            }));
        }
        let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
        frames.push(frame(json!([{"index": index, "delta": {}, "logprobs": null, "finish_reason": reason}])));
        let content = if text.is_empty() { Value::Null } else { json!(text) };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !list.is_empty() {
            message["tool_calls"] = json!(list);
        }
        wholes.push(json!({"index": index, "message": message, "logprobs": null, "finish_reason": reason}));
    }
    let last = with(json!({"object": "chat.completion.chunk", "choices": [], "usage": usage}));
    frames.extend([chunk(format!("data: {last}\n\n")), chunk("data: [DONE]\n\n"), last_chunk()]);
    let body =
        with(json!({"object": "chat.completion", "choices": wholes, "usage": usage, "system_fingerprint": "fp"}));
    (vec![http("200 OK", "application/json", &body.to_string())], frames)
}
