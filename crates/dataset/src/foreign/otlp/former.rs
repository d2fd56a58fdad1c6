//! Former GenAI conventions, which instrumentations still write: messages at numbered names (`gen_ai.prompt.0.content`), as
//! events of a span or log records that name it (`gen_ai.user.message`, `gen_ai.choice`), and whole in one attribute
//! (`gen_ai.prompt`, `gen_ai.completion`) of the span or an event.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::{
        ForeignCall, TraceAccount,
        account::CallAccount,
        fields::{as_text, call as made, role, silent, text, usage},
        held::{self, TraceValue},
        messages, parts,
    },
    convention::{Convention, fill, request},
    genai,
    span::{SpanEvent, SpanOf, TraceSpan},
};
use crate::surface::{Answer, Message, Part, Role, Tool, ToolCall};

/// Reads what the conventions were before.
#[derive(Debug)]
pub(super) struct FormerGenAi;

/// Attributes below a number, by what follows it.
pub(super) type Numbered<'a> = BTreeMap<&'a str, &'a Value>;

impl Convention for FormerGenAi {
    fn span_kind(&self, span: &TraceSpan) -> Option<SpanOf> {
        match span.text("llm.request.type") {
            Some("chat" | "completion") => Some(SpanOf::Call),
            Some("embedding") => Some(SpanOf::Vectors),
            Some(_) => Some(SpanOf::Other),
            None => {
                let is_asked = span.has_prefix("gen_ai.prompt.0.") && span.has_prefix("gen_ai.completion.0.");
                is_asked.then_some(SpanOf::Call)
            }
        }
    }

    fn read(&self, span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
        call.usage = call.usage.or_else(|| {
            usage(span.whole_number("llm.usage.prompt_tokens"), span.whole_number("llm.usage.completion_tokens"))
        });
        numbered(span, call, account);
        events(span, call, account);
        let whole = span.events.iter().filter(|event| event.name.starts_with("gen_ai.content."));
        let inside = |name| {
            let told = whole.clone().find_map(|event| event.attributes.get(name)).or_else(|| span.value(name))?;
            Some(TraceValue::at(name, told))
        };
        fill(call, inside("gen_ai.prompt"), inside("gen_ai.completion"), account);
        // `Pydantic AI` once wrote the events into one attribute.
        if let Some(Value::Array(told)) = span.json("events") {
            let is_answer = |event: &&Value| text(event, "event.name") == Some("gen_ai.choice");
            let asked: Value = told.iter().filter(|event| !is_answer(event)).cloned().collect();
            let answered: Value = told.iter().filter(is_answer).cloned().collect();
            let answered = answered.as_array().is_some_and(|all| !all.is_empty()).then_some(&answered);
            let at = |value| TraceValue::at("events", value);
            fill(call, Some(at(&asked)), answered.map(at), account);
        }
    }
}

/// Messages at numbered names.
fn numbered(span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
    let asked = span.numbered("gen_ai.prompt.");
    if call.request.is_none() && !asked.is_empty() {
        let told = asked
            .iter()
            .flat_map(|(at, fields)| {
                read_message(&format!("gen_ai.prompt.{at}.content"), fields, Role::User, &mut account.request)
            })
            .collect();
        call.request = request(told, tools(span));
    }
    let answers = span.numbered("gen_ai.completion.");
    if call.answer.is_none() && !answers.is_empty() {
        let reason =
            answers.values().next().and_then(|fields| fields.get("finish_reason")?.as_str().map(str::to_owned));
        let alternatives = answers.values().filter(|fields| fields.contains_key("finish_reason")).count() > 1;
        let told = answers
            .iter()
            .flat_map(|(at, fields)| {
                read_message(&format!("gen_ai.completion.{at}.content"), fields, Role::Assistant, &mut account.reply)
            })
            .collect();
        call.finish_reason = call.finish_reason.take().or(reason);
        let message = messages::together(told, alternatives, &mut account.reply);
        call.answer = message.map(|message| Answer { index: 0, message, finish_reason: call.finish_reason.clone() });
    }
}

/// A message of its numbered attributes; its content stands at `place`.
fn read_message(place: &str, fields: &Numbered<'_>, default: Role, account: &mut TraceAccount) -> Vec<Message> {
    let text = |name: &str| fields.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
    let mut message = silent(text("role").map_or(default, role));
    message.answers_call = text("tool_call_id").map(str::to_owned);
    message.name = text("name").map(str::to_owned);
    message.tool_calls = below(fields, "tool_calls.").values().map(called).collect();
    if let Some(name) = text("function_call.name") {
        message.tool_calls.push(made(None, Some(name), text("function_call.arguments").unwrap_or_default().to_owned()));
    }
    let content = fields
        .get("content")
        .map(|content| content.as_str().map_or_else(|| (*content).clone(), messages::content_of_text));
    match content {
        Some(Value::Array(all)) => {
            let read = parts::parts(&all, message, account);
            held::hold(TraceValue::at(place, &Value::Array(all)), &read, account);
            read
        }
        Some(content) => {
            let said = as_text(&content);
            message.parts.extend((!said.is_empty() && !content.is_null()).then_some(Part::Text(said)));
            vec![message]
        }
        None => vec![message],
    }
}

fn called(fields: &Numbered<'_>) -> ToolCall {
    let text = |name: &str| fields.get(name).and_then(|value| value.as_str());
    let given = ["arguments", "function.arguments"].iter().find_map(|name| fields.get(name));
    let name = text("name").or_else(|| text("function.name"));
    made(text("id"), name, given.map(|value| as_text(value)).unwrap_or_default())
}

/// The attributes below a further number.
pub(super) fn below<'a>(fields: &Numbered<'a>, prefix: &str) -> BTreeMap<u32, Numbered<'a>> {
    let mut numbered: BTreeMap<u32, Numbered<'a>> = BTreeMap::new();
    for (name, value) in fields {
        let rest = name.strip_prefix(prefix).and_then(|rest| rest.split_once('.'));
        if let Some((number, rest)) = rest.and_then(|(number, rest)| Some((number.parse().ok()?, rest))) {
            numbered.entry(number).or_default().insert(rest, value);
        }
    }
    numbered
}

/// The tools on offer: at numbered names, or as the present conventions write them.
fn tools(span: &TraceSpan) -> Vec<Tool> {
    let read = |fields: &Numbered<'_>| {
        let text = |name: &str| fields.get(name).and_then(|value| value.as_str());
        let parameters = text("parameters").and_then(|parameters| serde_json::from_str(parameters).ok());
        Some(Tool {
            name: text("name")?.to_owned(),
            description: text("description").unwrap_or_default().to_owned(),
            parameters: parameters.unwrap_or_default(),
            origin: None,
        })
    };
    let listed: Vec<Tool> = span.numbered("llm.request.functions.").values().filter_map(read).collect();
    if listed.is_empty() { genai::tools(span) } else { listed }
}

/// Messages as events.
fn events(span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
    let (mut asked, mut answers) = (Vec::new(), Vec::new());
    for event in &span.events {
        let fields = event.fields();
        match event.name.strip_prefix("gen_ai.") {
            Some("system.message") => asked.extend(message(event, &fields, Role::System, &mut account.request)),
            Some("user.message") => asked.extend(message(event, &fields, Role::User, &mut account.request)),
            Some("assistant.message") => asked.extend(message(event, &fields, Role::Assistant, &mut account.request)),
            Some("tool.message") => asked.extend(message(event, &fields, Role::Tool, &mut account.request)),
            Some("choice") => answers.push((event, fields)),
            _ => {}
        }
    }
    if call.request.is_none() {
        call.request = request(asked, genai::tools(span));
    }
    if let (None, Some((event, first))) = (&call.answer, answers.first()) {
        let account = &mut account.reply;
        account.leave_out("further choices of a reply", (answers.len() as u64).saturating_sub(1));
        let inner = first.get("message").cloned().unwrap_or_else(|| first.clone());
        let inner = inner.as_str().map_or_else(|| inner.clone(), messages::content_of_text);
        let mut inner = if inner.is_object() { inner } else { json!({"content": inner}) };
        // Calls may stand beside the message.
        if let (Some(calls), Some(fields)) = (first.get("tool_calls"), inner.as_object_mut()) {
            fields.entry("tool_calls").or_insert_with(|| calls.clone());
        }
        let reason = text(first, "finish_reason").map(str::to_owned).or_else(|| call.finish_reason.clone());
        let told = messages::unheld(&with_role(inner, "assistant"), Role::Assistant, account);
        held::hold(TraceValue::at("gen_ai.choice", first), &told, account);
        held::hold(TraceValue::at("gen_ai.choice", &overridden(event, first)), &told, account);
        let message = messages::together(told, false, account);
        call.answer = message.map(|message| Answer { index: 0, message, finish_reason: reason });
    }
}

/// A message of an event: whose it is stands in the event's name, where nothing else says it.
fn message(event: &SpanEvent, fields: &Value, speaker: Role, account: &mut TraceAccount) -> Vec<Message> {
    let name = event.name.trim_start_matches("gen_ai.").trim_end_matches(".message");
    let mut fields = with_role(fields.clone(), name);
    if let Some(map) = fields.as_object_mut() {
        map.insert("event.name".to_owned(), event.name.as_str().into());
        let content = map.get("content").and_then(Value::as_str).map(messages::content_of_text);
        if let Some(content) = content {
            map.insert("content".to_owned(), content);
        }
        map.entry("content").or_insert(Value::Null);
    }
    let read = messages::messages(TraceValue::at(&event.name, &fields), speaker, account);
    held::hold(TraceValue::at(&event.name, &overridden(event, &fields)), &read, account);
    read
}

/// The attributes of an event in whose place its body, or JSON in another attribute, says something else.
fn overridden(event: &SpanEvent, fields: &Value) -> Value {
    let other = event.attributes.iter().filter(|(name, value)| fields.get(name.as_str()) != Some(value));
    Value::Object(other.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn with_role(mut fields: Value, role: &str) -> Value {
    if let Some(map) = fields.as_object_mut() {
        map.entry("role").or_insert_with(|| role.into());
    }
    fields
}
