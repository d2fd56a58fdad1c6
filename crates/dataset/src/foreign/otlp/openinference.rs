//! `OpenInference`'s attributes (Arize): kinds of spans, and messages spread over numbered names.

use serde_json::Value;

use super::{
    super::{
        ForeignAgent, ForeignCall, TraceAccount,
        account::CallAccount,
        fields::{MEDIA, REASONING, as_text, call as made, role, silent, text, tool, usage},
        held::TraceValue,
        messages,
    },
    convention::{Convention, fill, named, request},
    former::{Numbered, below},
    langgraph,
    span::{SpanOf, TraceSpan},
};
use crate::surface::{Answer, Message, Part, Tool, ToolCall};

/// Reads kinds and messages.
#[derive(Debug)]
pub(super) struct OpenInference;

impl Convention for OpenInference {
    fn span_kind(&self, span: &TraceSpan) -> Option<SpanOf> {
        Some(match span.text("openinference.span.kind")? {
            "LLM" => SpanOf::Call,
            "EMBEDDING" => SpanOf::Vectors,
            "TOOL" => SpanOf::Tool,
            "AGENT" if span.name == langgraph::UNNAMED => SpanOf::Workflow,
            "AGENT" => SpanOf::Agent,
            _ => SpanOf::Other,
        })
    }

    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        if let Some(name) = span.text("agent.name") {
            return named(name, "agent.name", span);
        }
        if self.span_kind(span) != Some(SpanOf::Agent) {
            return None;
        }
        if let Some(node) = span.text("graph.node.id") {
            return named(node, "graph.node.id", span);
        }
        // smolagents' spans are methods of the agent that has the name; a node of a loop is nobody.
        let name = span.name.strip_suffix(".run").filter(|_| span.has_prefix("smolagents.")).unwrap_or(&span.name);
        (name != "agent").then(|| named(name, "the name", span))?
    }

    fn read(&self, span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
        read(span, call, account);
    }

    fn input_of_span(&self, span: &TraceSpan) -> Option<Value> {
        let is_json = span.text("input.mime_type") == Some("application/json");
        let input = span.value("input.value")?;
        let inner =
            input.as_str().and_then(|said| serde_json::from_str::<Value>(said).ok()).filter(|inner| !inner.is_null());
        if is_json || inner.as_ref().is_some_and(|inner| inner.is_object() || inner.is_array()) {
            inner
        } else {
            Some(input.clone())
        }
    }
}

/// What a span of a model call says. What is known already stays.
fn read(span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
    let parameters = span.json("llm.invocation_parameters").unwrap_or_default();
    if call.model.is_empty() {
        let model = span.text("llm.model_name").or_else(|| text(&parameters, "model"));
        model.unwrap_or_default().clone_into(&mut call.model);
    }
    let counted = usage(span.whole_number("llm.token_count.prompt"), span.whole_number("llm.token_count.completion"));
    call.usage = call.usage.or(counted);
    call.finish_reason = call.finish_reason.take().or_else(|| span.text("llm.finish_reason").map(str::to_owned));
    let asked = span.numbered("llm.input_messages.");
    if call.request.is_none() && !asked.is_empty() {
        let told = asked.values().map(|fields| read_message(fields, "user", &mut account.request)).collect();
        call.request = request(told, tools(span));
    }
    let answers = span.numbered("llm.output_messages.");
    if call.answer.is_none() && !answers.is_empty() {
        let told = answers.values().map(|fields| read_message(fields, "assistant", &mut account.reply)).collect();
        let message = messages::together(told, false, &mut account.reply);
        call.answer = message.map(|message| Answer { index: 0, message, finish_reason: call.finish_reason.clone() });
    }
    // Completions are told by their texts, and where nothing else is told, by what went in and came out.
    let text_of = |names: [&str; 2], field: &str| -> Option<Value> {
        let numbered = names.iter().map(|name| span.numbered(name)).find(|numbered| !numbered.is_empty())?;
        numbered.values().filter_map(|fields| fields.get(field)).map(|said| (*said).clone()).next()
    };
    let prompt =
        text_of(["llm.prompts.", "llm.prompts."], "prompt.text").or_else(|| span.value("llm.prompts").cloned());
    let completion = text_of(["llm.choices.", "llm.completions."], "completion.text");
    let whole = |name| span.at(name).filter(|said| !said.value.is_null());
    let prompt = prompt.as_ref().map(|prompt| TraceValue::at("llm.prompts", prompt));
    let completion = completion.as_ref().map(|completion| TraceValue::at("llm.completions", completion));
    fill(call, prompt.or_else(|| whole("input.value")), completion.or_else(|| whole("output.value")), account);
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
fn read_message(fields: &Numbered<'_>, default: &str, account: &mut TraceAccount) -> Message {
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
            (Some("reasoning"), _) => account.leave_out(REASONING, 1),
            _ => account.leave_out(MEDIA, 1),
        }
    }
    message.tool_calls = below(fields, "message.tool_calls.").values().map(called).collect();
    message
}

fn called(fields: &Numbered<'_>) -> ToolCall {
    let text = |name: &str| fields.get(name).and_then(|value| value.as_str());
    let arguments = fields.get("tool_call.function.arguments").map(|value| as_text(value)).unwrap_or_default();
    made(text("tool_call.id"), text("tool_call.function.name"), arguments)
}
