//! `OpenLLMetry` (Traceloop): workflows, tasks, agents and tools by `traceloop.span.kind`; calls are in the GenAI
//! conventions, present and former.

use serde_json::Value;

use super::{
    super::ForeignAgent,
    convention::{Convention, named},
    langgraph,
    span::{SpanOf, TraceSpan},
};

/// Steps of chains that are no agents: `LangChain` names them after its classes.
const CLASSES: &[&str] =
    &["Runnable", "ChatPrompt", "Prompt", "LLMChain", "Str", "Json", "Pydantic", "Channel", "Structured"];

/// Reads kinds and names.
#[derive(Debug)]
pub(super) struct OpenLlmetry;

impl Convention for OpenLlmetry {
    fn span_kind(&self, span: &TraceSpan) -> Option<SpanOf> {
        Some(match span.text("traceloop.span.kind")? {
            "workflow" => SpanOf::Workflow,
            "agent" => SpanOf::Agent,
            "tool" => SpanOf::Tool,
            _ => SpanOf::Other,
        })
    }

    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        if let Some(role) = span.text("crewai.agent.role") {
            return named(role, "crewai.agent.role", span);
        }
        let entity = span.text("traceloop.entity.name");
        match (span.text("traceloop.span.kind"), entity) {
            (Some("agent"), Some(name)) if name != langgraph::UNNAMED => named(name, "traceloop.entity.name", span),
            (Some("agent"), None) => named(span.name.trim_end_matches(".agent"), "the name", span),
            (Some("task"), Some(name)) if !is_machinery(name) => named(name, "traceloop.entity.name", span),
            _ => None,
        }
    }

    fn input_of_span(&self, span: &TraceSpan) -> Option<Value> {
        span.json("traceloop.entity.input")
    }
}

/// Whether a task is a piece of a framework, and nobody's.
pub(super) fn is_machinery(name: &str) -> bool {
    let generic = ["agent", "model", "tools", "call_model", "should_continue", "llm"];
    generic.contains(&name) || CLASSES.iter().any(|class| name.starts_with(class)) || name.starts_with('_')
}
