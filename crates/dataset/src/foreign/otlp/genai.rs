//! The GenAI conventions of OpenTelemetry, v0.1.0 of semantic-conventions-genai: spans of model calls, of agents and of
//! workflows, messages as lists of parts.

use serde_json::Value;

use super::{
    super::{
        ForeignAgent, ForeignCall,
        account::CallAccount,
        fields::{tool, usage},
        held::TraceValue,
        messages,
    },
    convention::{Convention, named, request},
    langgraph, openllmetry,
    span::{SpanOf, TraceSpan},
};
use crate::surface::{Answer, Message, Part, Role, Tool};

/// Where messages stand.
const INSTRUCTIONS: &str = "gen_ai.system_instructions";
const INPUT: &str = "gen_ai.input.messages";
const OUTPUT: &str = "gen_ai.output.messages";

/// Reads what has a name of its own in the conventions.
#[derive(Debug)]
pub(super) struct GenAi;

impl Convention for GenAi {
    fn span_kind(&self, span: &TraceSpan) -> Option<SpanOf> {
        let is_graph = span.json("gen_ai.workflow.nodes").is_some_and(|nodes| langgraph::is_graph(&nodes));
        Some(match span.text("gen_ai.operation.name")? {
            "chat" | "text_completion" | "generate_content" => SpanOf::Call,
            "embeddings" => SpanOf::Vectors,
            "execute_tool" => SpanOf::Tool,
            "invoke_workflow" => SpanOf::Workflow,
            "invoke_agent" if is_graph || span.text("gen_ai.agent.name") == Some(langgraph::UNNAMED) => {
                SpanOf::Workflow
            }
            "invoke_agent" => SpanOf::Agent,
            _ => SpanOf::Other,
        })
    }

    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        let own = span.text("gen_ai.agent.name").filter(|name| *name != langgraph::UNNAMED);
        if let Some(name) = own {
            return named(name, "gen_ai.agent.name", span);
        }
        // A task between the program and its call is somebody's, but where it is a piece of a framework.
        let task = span.text("gen_ai.task.name").filter(|name| !openllmetry::is_machinery(name));
        if let Some(name) = task.filter(|_| span.text("gen_ai.operation.name") == Some("execute_task")) {
            return named(name, "gen_ai.task.name", span);
        }
        let is_agent = span.text("gen_ai.operation.name") == Some("invoke_agent");
        let name = span.name.strip_prefix("invoke_agent ").filter(|name| is_agent && *name != langgraph::UNNAMED)?;
        named(name, "the name", span)
    }

    fn read(&self, span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
        let model = span.text("gen_ai.request.model").or_else(|| span.text("gen_ai.response.model"));
        model.unwrap_or_default().clone_into(&mut call.model);
        call.reply_model = span.text("gen_ai.response.model").map(str::to_owned);
        span.text("gen_ai.response.id").unwrap_or_default().clone_into(&mut call.reply_id);
        let counted = |names: [&str; 2]| names.into_iter().find_map(|name| span.whole_number(name));
        call.usage = usage(
            counted(["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]),
            counted(["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]),
        );
        let reasons = span.json("gen_ai.response.finish_reasons");
        call.finish_reason = reasons.and_then(|reasons| reasons.get(0)?.as_str().map(str::to_owned));
        let prompt = span.value(INSTRUCTIONS).map(structured);
        let asked = span.value(INPUT).map(structured);
        if prompt.is_some() || asked.is_some() {
            let mut told = Vec::new();
            for (name, value, speaker) in [(INSTRUCTIONS, &prompt, Role::System), (INPUT, &asked, Role::User)] {
                let value = value.as_ref().map(|value| TraceValue::at(name, value));
                told.extend(
                    value.into_iter().flat_map(|value| messages::messages(value, speaker, &mut account.request)),
                );
            }
            call.request = request(told, tools(span));
        }
        if let Some(answered) = span.value(OUTPUT).map(structured) {
            call.answer = messages::answer(TraceValue::at(OUTPUT, &answered), &mut account.reply).map(|answer| {
                Answer { finish_reason: answer.finish_reason.or_else(|| call.finish_reason.clone()), ..answer }
            });
            // A reply of nothing but reasoning is still a reply.
            let is_list = answered.as_array().is_some_and(|all| !all.is_empty());
            if call.answer.is_none() && is_list {
                let message =
                    Message { parts: vec![Part::Text(String::new())], ..Message::text_of(Role::Assistant, "") };
                call.answer = Some(Answer { index: 0, message, finish_reason: call.finish_reason.clone() });
            }
        }
    }

    fn input_of_span(&self, span: &TraceSpan) -> Option<Value> {
        span.value(INPUT).map(structured)
    }
}

/// The tools on offer.
pub(super) fn tools(span: &TraceSpan) -> Vec<Tool> {
    let tools = span.json("gen_ai.tool.definitions").unwrap_or_default();
    tools.as_array().into_iter().flatten().filter_map(tool).collect()
}

/// A structured attribute, written as JSON in a text or as values. A text that is no JSON is words.
fn structured(value: &Value) -> Value {
    let inner = value.as_str().and_then(|said| serde_json::from_str::<Value>(said).ok());
    inner.filter(|inner| inner.is_array() || inner.is_object()).unwrap_or_else(|| value.clone())
}
