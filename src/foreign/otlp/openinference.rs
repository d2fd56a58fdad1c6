//! `OpenInference`'s attributes (Arize): kinds of spans, and messages spread over numbered names.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    super::{
        ForeignAgent, ForeignCall, ForeignRequest,
        fields::{MEDIA, REASONING, as_text, call, role, silent, tool, usage},
    },
    span::TraceSpan,
};
use crate::surface::{Answer, Message, Part, Role, Tool, ToolCall};

/// Attributes below a number, by what follows it.
type Numbered<'a> = BTreeMap<&'a str, &'a Value>;

/// Whether the span is a model call; `None` where it says nothing in these conventions.
pub(super) fn is_call(span: &TraceSpan) -> Option<bool> {
    Some(kind(span)? == "LLM")
}

/// Whether it asks for vectors.
pub(super) fn is_embedding(span: &TraceSpan) -> bool {
    kind(span) == Some("EMBEDDING")
}

fn kind(span: &TraceSpan) -> Option<&str> {
    span.text("openinference.span.kind")
}

/// The agent that the span is of, or names.
pub(super) fn agent(span: &TraceSpan) -> Option<ForeignAgent> {
    let said = |name: &str, what: &str| ForeignAgent {
        name: name.to_owned(),
        evidence: format!("{what} of the span `{}`", span.name),
    };
    if let Some(name) = span.text("agent.name") {
        return Some(said(name, "agent.name"));
    }
    if kind(span) != Some("AGENT") {
        return None;
    }
    match span.text("graph.node.id") {
        Some(node) => Some(said(node, "graph.node.id")),
        None => (!span.name.is_empty()).then(|| said(&span.name, "the name")),
    }
}

/// What a span of a model call says; also what of it has no place. What is known already stays.
pub(super) fn read(span: &TraceSpan, call: &mut ForeignCall) -> Vec<&'static str> {
    let mut left_out = Vec::new();
    if call.model.is_empty() {
        span.text("llm.model_name").unwrap_or_default().clone_into(&mut call.model);
    }
    let counted = usage(span.whole("llm.token_count.prompt"), span.whole("llm.token_count.completion"));
    call.usage = call.usage.or(counted);
    call.finish_reason = call.finish_reason.take().or_else(|| span.text("llm.finish_reason").map(str::to_owned));
    let asked = span.numbered("llm.input_messages.");
    if call.request.is_none() && !asked.is_empty() {
        let messages = asked.values().map(|fields| Arc::new(said(fields, "user", &mut left_out)));
        call.request = Some(ForeignRequest { messages: messages.collect(), tools: Arc::new(tools(span)) });
    }
    let answers = span.numbered("llm.output_messages.");
    if let (None, Some(fields)) = (&call.answer, answers.values().next()) {
        let message = Message { role: Role::Assistant, ..said(fields, "assistant", &mut left_out) };
        call.answer = Some(Answer { index: 0, message, finish_reason: call.finish_reason.clone() });
    }
    left_out
}

fn tools(span: &TraceSpan) -> Vec<Tool> {
    let schemas = span.numbered("llm.tools.");
    let read = |fields: &Numbered<'_>| {
        let schema = fields.get("tool.json_schema")?;
        match schema {
            Value::String(text) => tool(&serde_json::from_str(text).ok()?),
            other => tool(other),
        }
    };
    schemas.values().filter_map(read).collect()
}

/// A message of its numbered attributes.
fn said(fields: &Numbered<'_>, default: &str, left_out: &mut Vec<&'static str>) -> Message {
    let text = |name: &str| fields.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
    let mut message = silent(role(text("message.role").unwrap_or(default)));
    message.name = text("message.name").map(str::to_owned);
    message.answers_call = text("message.tool_call_id").map(str::to_owned);
    if let Some(content) = fields.get("message.content").filter(|content| !content.is_null()) {
        message.parts.push(Part::Text(as_text(content)));
    }
    for part in below(fields, "message.contents.").values() {
        let part = |name: &str| part.get(name).and_then(|value| value.as_str());
        match (part("message_content.type"), part("message_content.text")) {
            (None | Some("text"), Some(text)) => message.parts.push(Part::Text(text.to_owned())),
            (Some("reasoning"), _) => left_out.push(REASONING),
            _ => left_out.push(MEDIA),
        }
    }
    message.tool_calls = below(fields, "message.tool_calls.").values().map(called).collect();
    message
}

fn called(fields: &Numbered<'_>) -> ToolCall {
    let text = |name: &str| fields.get(name).and_then(|value| value.as_str());
    let arguments = fields.get("tool_call.function.arguments").map(|value| as_text(value)).unwrap_or_default();
    call(text("tool_call.id"), text("tool_call.function.name"), arguments)
}

/// The attributes below a further number.
fn below<'a>(fields: &Numbered<'a>, prefix: &str) -> BTreeMap<u32, Numbered<'a>> {
    let mut numbered: BTreeMap<u32, Numbered<'a>> = BTreeMap::new();
    for (name, value) in fields {
        let rest = name.strip_prefix(prefix).and_then(|rest| rest.split_once('.'));
        if let Some((number, rest)) = rest.and_then(|(number, rest)| Some((number.parse().ok()?, rest))) {
            numbered.entry(number).or_default().insert(rest, value);
        }
    }
    numbered
}
