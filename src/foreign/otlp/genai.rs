//! The GenAI conventions of OpenTelemetry (semantic-conventions-genai, in development, state of November 2026): spans of
//! model calls and of agents, messages as lists of parts.

use std::sync::Arc;

use serde_json::Value;

use super::{
    super::{
        ForeignAgent, ForeignCall, ForeignRequest,
        fields::{MEDIA, REASONING, arguments, as_text, call, list, role, silent, text, tool, usage},
    },
    span::TraceSpan,
};
use crate::surface::{Answer, Message, Part, Role};

/// Operations that are model calls.
const CALLS: &[&str] = &["chat", "text_completion", "generate_content"];

/// Whether the span is a model call; `None` where it says nothing in these conventions.
pub(super) fn is_call(span: &TraceSpan) -> Option<bool> {
    Some(CALLS.contains(&span.text("gen_ai.operation.name")?))
}

/// Whether it asks for vectors.
pub(super) fn is_embedding(span: &TraceSpan) -> bool {
    span.text("gen_ai.operation.name") == Some("embeddings")
}

/// The agent that the span is of, or names.
pub(super) fn agent(span: &TraceSpan) -> Option<ForeignAgent> {
    let said = |name: &str, what: &str| ForeignAgent {
        name: name.to_owned(),
        evidence: format!("{what} of the span `{}`", span.name),
    };
    if let Some(name) = span.text("gen_ai.agent.name") {
        return Some(said(name, "gen_ai.agent.name"));
    }
    let invoked = span.text("gen_ai.operation.name") == Some("invoke_agent");
    let name = span.name.strip_prefix("invoke_agent ").filter(|name| invoked && !name.is_empty())?;
    Some(said(name, "the name"))
}

/// What a span of a model call says; also what of it has no place.
pub(super) fn read(span: &TraceSpan, call: &mut ForeignCall) -> Vec<&'static str> {
    let mut left_out = Vec::new();
    let model = span.text("gen_ai.request.model").or_else(|| span.text("gen_ai.response.model"));
    model.unwrap_or_default().clone_into(&mut call.model);
    call.reply_model = span.text("gen_ai.response.model").map(str::to_owned);
    span.text("gen_ai.response.id").unwrap_or_default().clone_into(&mut call.reply_id);
    let counted = |names: [&str; 2]| names.into_iter().find_map(|name| span.whole(name));
    call.usage = usage(
        counted(["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]),
        counted(["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]),
    );
    let reasons = span.json("gen_ai.response.finish_reasons");
    call.finish_reason = reasons.and_then(|reasons| reasons.get(0)?.as_str().map(str::to_owned));
    let tools = span.json("gen_ai.tool.definitions").unwrap_or_default();
    let tools = tools.as_array().into_iter().flatten().filter_map(tool).collect();
    let prompt = span.json("gen_ai.system_instructions");
    let asked = span.json("gen_ai.input.messages");
    if prompt.is_some() || asked.is_some() {
        let mut messages = Vec::new();
        if let Some(parts) = prompt {
            let parts = if parts.is_array() { parts } else { Value::from(vec![parts]) };
            messages.extend(self::parts(
                Role::System,
                None,
                parts.as_array().map_or(&[], Vec::as_slice),
                &mut left_out,
            ));
        }
        for message in asked.iter().filter_map(|asked| asked.as_array()).flatten() {
            messages.extend(said(message, &mut left_out));
        }
        call.request =
            Some(ForeignRequest { messages: messages.into_iter().map(Arc::new).collect(), tools: Arc::new(tools) });
    }
    let answers = span.json("gen_ai.output.messages");
    if let Some(answered) = answers.as_ref().and_then(|answers| answers.get(0)) {
        let reason = text(answered, "finish_reason").map(str::to_owned).or_else(|| call.finish_reason.clone());
        let message = said(answered, &mut left_out).into_iter().next().unwrap_or_else(|| silent(Role::Assistant));
        call.answer =
            Some(Answer { index: 0, message: Message { role: Role::Assistant, ..message }, finish_reason: reason });
    }
    left_out
}

/// A message: one of ours, or one for each tool result in it.
fn said(message: &Value, left_out: &mut Vec<&'static str>) -> Vec<Message> {
    let role = role(text(message, "role").unwrap_or("user"));
    let parts = list(message, "parts");
    if let (true, Some(content)) = (parts.is_empty(), message.get("content")) {
        let mut said = silent(role);
        left_out.extend(super::super::fields::content(content, &mut said));
        return vec![said];
    }
    self::parts(role, text(message, "name"), parts, left_out)
}

fn parts(role: Role, name: Option<&str>, parts: &[Value], left_out: &mut Vec<&'static str>) -> Vec<Message> {
    let mut own = Message { name: name.map(str::to_owned), ..silent(role) };
    let mut results = Vec::new();
    for part in parts {
        match text(part, "type").unwrap_or_default() {
            "text" => own.parts.push(Part::Text(part.get("content").map(as_text).unwrap_or_default())),
            "tool_call" => {
                let arguments = arguments(part.get("arguments"));
                own.tool_calls.push(call(text(part, "id"), text(part, "name"), arguments));
            }
            "tool_call_response" => {
                let response = ["response", "result"].iter().find_map(|name| part.get(*name));
                let result = Message::text_of(Role::Tool, response.map(as_text).unwrap_or_default());
                let answers = text(part, "id").map(str::to_owned);
                results.push(Message { answers_call: answers, name: name.map(str::to_owned), ..result });
            }
            "reasoning" | "thinking" => left_out.push(REASONING),
            _ => left_out.push(MEDIA),
        }
    }
    let is_silent = own.parts.is_empty() && own.tool_calls.is_empty();
    let own = (!is_silent || results.is_empty()).then_some(own);
    results.into_iter().chain(own).collect()
}
