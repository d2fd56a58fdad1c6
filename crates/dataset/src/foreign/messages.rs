//! Messages as tracers, SDKs and logs write them: lists of parts, chat completions, `LangChain`'s own, the AI SDK's, Gemini's,
//! Bedrock's; bare, as JSON in a text, or in an envelope around them. One reader for all, so that a form which one tracer
//! writes is read wherever it stands.

use serde_json::{Map, Value};

use super::{
    TraceAccount,
    fields::{REASONING, as_text, list, role, silent, text, tool},
    held::{self, TraceValue},
    parts::{called, is_part, parts},
};
use crate::surface::{Answer, Message, Part, Role, Tool};

/// How deep envelopes may lie in each other.
const DEEPEST: usize = 12;
/// Fields that hold messages, in an object that is none itself.
const ENVELOPES: &[&str] = &[
    "messages",
    "message",
    "choices",
    "generations",
    "candidates",
    "contents",
    "input",
    "inputs",
    "output",
    "outputs",
    "prompt",
    "prompts",
    "request",
    "response",
    "result",
    "text",
    "answer",
    "body",
    "data",
    "model_output",
    "completion",
    "history",
];

/// The messages of a value; none where it holds nothing of the kind. `default`: who speaks where nothing says it. What of
/// the value stands in none of them, the account names.
pub(super) fn messages(from: TraceValue<'_>, default: Role, account: &mut TraceAccount) -> Vec<Message> {
    let read = unheld(from.value, default, account);
    held::hold(from, &read, account);
    read
}

/// The messages of a value that the caller holds against what was read.
pub(super) fn unheld(value: &Value, default: Role, account: &mut TraceAccount) -> Vec<Message> {
    below(value, default, account, 0)
}

/// The answer of a value: its first choice, or all pieces of it together. `None` where it holds nothing of the kind.
pub(super) fn answer(from: TraceValue<'_>, account: &mut TraceAccount) -> Option<Answer> {
    let read = messages(from, Role::Assistant, account);
    let inner = from.value.as_str().and_then(held::json);
    let value = inner.as_ref().unwrap_or(from.value);
    let (reason, alternatives) = (finish_reason(value, 0), choices(value, 0) > 1);
    together(read, alternatives, account).map(|message| Answer { index: 0, message, finish_reason: reason })
}

/// The tools that a request offers beside its messages.
pub(super) fn offered(asked: &Value) -> Vec<Tool> {
    let inner = asked.as_str().and_then(held::json);
    list(inner.as_ref().unwrap_or(asked), "tools").iter().filter_map(tool).collect()
}

/// One message of the pieces of an answer; of `alternatives` the first.
pub(super) fn together(read: Vec<Message>, alternatives: bool, account: &mut TraceAccount) -> Option<Message> {
    let mut said = read.into_iter().filter(|message| message.role != Role::Tool);
    let first = said.next()?;
    let mut whole = Message { role: Role::Assistant, ..first };
    for more in said {
        if alternatives {
            account.leave_out("further choices of a reply", 1);
        } else {
            whole.parts.extend(more.parts);
            whole.tool_calls.extend(more.tool_calls);
        }
    }
    Some(whole)
}

/// How many alternatives a reply holds: messages that each say how they ended.
fn choices(value: &Value, depth: usize) -> usize {
    match value {
        Value::Array(all) => all.iter().filter(|one| text(one, "finish_reason").is_some()).count(),
        Value::Object(fields) if depth < DEEPEST => ["choices", "response", "outputs", "output"]
            .iter()
            .filter_map(|name| fields.get(*name))
            .map(|inner| choices(inner, depth + 1))
            .max()
            .unwrap_or_default(),
        _ => 0,
    }
}

/// Why a reply ended, where it says so.
fn finish_reason(value: &Value, depth: usize) -> Option<String> {
    let names = ["finish_reason", "finishReason", "stop_reason", "stopReason"];
    match value {
        Value::Object(fields) => names.iter().find_map(|name| text(value, name)).map(str::to_owned).or_else(|| {
            let inner = ["choices", "candidates", "response", "outputs"].iter().find_map(|name| fields.get(*name))?;
            if depth < DEEPEST { finish_reason(inner, depth + 1) } else { None }
        }),
        Value::Array(all) => all.first().filter(|_| depth < DEEPEST).and_then(|first| finish_reason(first, depth + 1)),
        _ => None,
    }
}

fn below(value: &Value, default: Role, account: &mut TraceAccount, depth: usize) -> Vec<Message> {
    if depth > DEEPEST {
        return Vec::new();
    }
    match value {
        Value::String(said) if said.is_empty() => Vec::new(),
        Value::String(said) => {
            let json = said.trim_start().starts_with(['[', '{']).then(|| serde_json::from_str::<Value>(said).ok());
            let read = json.flatten().filter(is_messages).map(|json| below(&json, default, account, depth + 1));
            read.filter(|read| !read.is_empty()).unwrap_or_else(|| vec![Message::text_of(default, said.clone())])
        }
        Value::Array(all) if all.iter().any(is_part) && !all.iter().any(is_message) => {
            parts(all, silent(default), account)
        }
        Value::Array(all) => all.iter().flat_map(|one| below(one, default, account, depth + 1)).collect(),
        Value::Object(fields) => object(value, fields, default, account, depth),
        _ => Vec::new(),
    }
}

/// Whether JSON in a text is messages, and not words of a model that are JSON.
fn is_messages(value: &Value) -> bool {
    let holds = |inner: &Value| match inner {
        Value::Array(all) => all
            .first()
            .is_some_and(|first| first.is_object() && is_messages(first) || first.is_array() && is_messages(first)),
        other => other.is_object() && is_messages(other),
    };
    match value {
        Value::Array(all) => all.first().is_some_and(|first| is_message(first) || is_part(first) || is_messages(first)),
        Value::Object(fields) => {
            let envelopes =
                ["messages", "message", "choices", "generations", "contents", "candidates", "inputs", "outputs"];
            is_message(value) || is_part(value) || envelopes.iter().any(|name| fields.get(*name).is_some_and(holds))
        }
        _ => false,
    }
}

fn is_message(value: &Value) -> bool {
    let names = |field: &str, known: &[&str]| text(value, field).is_some_and(|kind| known.contains(&kind));
    let speaks = names("type", &["human", "ai", "system", "tool", "function", "developer", "AIMessageChunk"]);
    (text(value, "role").is_some()
        && ["content", "parts", "tool_calls", "text"].iter().any(|name| value.get(*name).is_some()))
        || (speaks && (value.get("content").is_some() || value.get("data").is_some()))
        || value.get("kwargs").is_some_and(Value::is_object)
        || names("type", &["function_call", "function_call_output"])
        || text(value, "event.name").is_some_and(|name| name.starts_with("gen_ai."))
}

fn object(
    value: &Value,
    fields: &Map<String, Value>,
    default: Role,
    account: &mut TraceAccount,
    depth: usize,
) -> Vec<Message> {
    // `LangChain` writes a class and its arguments, or a kind and its data.
    if let Some(inner) =
        fields.get("kwargs").or_else(|| fields.get("data")).filter(|inner| inner.get("content").is_some())
    {
        let named = text(value, "type").filter(|kind| *kind != "constructor").or_else(|| text(inner, "type"));
        let class = list(value, "id")
            .last()
            .and_then(Value::as_str)
            .map(|class| class.trim_end_matches("Chunk").trim_end_matches("Message"));
        let speaker = named.or(class).map(speaker);
        return message(inner, speaker.unwrap_or(default), account);
    }
    if is_message(value) {
        let named = text(value, "role").or_else(|| text(value, "type"));
        let event = text(value, "event.name").and_then(|name| name.strip_prefix("gen_ai.")?.strip_suffix(".message"));
        if let (Some("gen_ai.choice"), Some(inner)) = (text(value, "event.name"), fields.get("message")) {
            return below(inner, Role::Assistant, account, depth + 1);
        }
        return message(value, named.or(event).map_or(default, speaker), account);
    }
    if is_part(value) {
        return parts(std::slice::from_ref(value), silent(default), account);
    }
    let mut read = Vec::new();
    for (name, role) in [("system", Role::System), ("instructions", Role::System), ("system_instruction", Role::System)]
    {
        if let Some(said) = fields.get(name) {
            read.extend(below(said, role, account, depth + 1));
        }
    }
    if let Some(content) = fields.get("content") {
        read.extend(message(
            &serde_json::json!({"content": content, "tool_calls": fields.get("tool_calls")}),
            default,
            account,
        ));
        return read;
    }
    if fields.get("tool_calls").is_some_and(|calls| calls.as_array().is_some_and(|calls| !calls.is_empty())) {
        read.extend(message(value, default, account));
        return read;
    }
    for name in ENVELOPES {
        let inner = fields.get(*name).filter(|inner| inner.is_string() || inner.is_array() || inner.is_object());
        let inner = inner.map(|inner| below(inner, default, account, depth + 1)).unwrap_or_default();
        if !inner.is_empty() {
            read.extend(inner);
            break;
        }
    }
    read
}

/// Content that some tracers write as a text: a list of parts, or words as they are.
pub(super) fn content_of_text(said: &str) -> Value {
    match serde_json::from_str::<Value>(said) {
        Ok(Value::Array(all)) if !all.is_empty() && all.iter().all(is_part) => Value::Array(all),
        _ => Value::from(said),
    }
}

/// Who speaks, also by `LangChain`'s classes.
fn speaker(name: &str) -> Role {
    match name {
        "Human" => Role::User,
        "AI" | "AIMessageChunk" | "function_call" => Role::Assistant,
        "System" => Role::System,
        "Tool" | "Function" | "function_call_output" | "tool-response" => Role::Tool,
        other => role(other),
    }
}

/// A message that an object is, or several: one for each tool result in it.
fn message(value: &Value, role: Role, account: &mut TraceAccount) -> Vec<Message> {
    let mut own = silent(role);
    own.name = text(value, "name").filter(|_| role != Role::Tool).map(str::to_owned);
    let answered = ["tool_call_id", "toolCallId", "call_id"].iter().find_map(|name| text(value, name));
    let answered = answered.or_else(|| text(value, "id").filter(|_| value.get("event.name").is_some()));
    own.answers_call = answered.filter(|_| role == Role::Tool).map(str::to_owned);
    let extra = value.get("additional_kwargs").unwrap_or(&Value::Null);
    let made = if list(value, "tool_calls").is_empty() { list(extra, "tool_calls") } else { list(value, "tool_calls") };
    own.tool_calls = made.iter().map(called).collect();
    if let Some(made) =
        value.get("function_call").or_else(|| extra.get("function_call")).filter(|made| made.is_object())
    {
        own.tool_calls.push(called(made));
    }
    if text(value, "type") == Some("function_call") {
        own.tool_calls.push(called(value));
    }
    let reasoned = ["reasoning_content", "reasoning"].iter().any(|name| text(value, name).is_some());
    account.leave_out(REASONING, u64::from(reasoned));
    let content = ["content", "parts", "text", "output"]
        .iter()
        .filter_map(|name| value.get(*name))
        .find(|content| !content.is_null());
    match content {
        Some(Value::String(said)) => {
            own.parts.extend((!said.is_empty()).then(|| Part::Text(said.clone())));
            vec![own]
        }
        Some(Value::Array(all)) => parts(all, own, account),
        Some(Value::Object(inner)) if is_part(&Value::Object(inner.clone())) => {
            parts(std::slice::from_ref(&Value::Object(inner.clone())), own, account)
        }
        Some(Value::Null) | None => vec![own],
        Some(other) => {
            own.parts.push(Part::Text(as_text(other)));
            vec![own]
        }
    }
}
