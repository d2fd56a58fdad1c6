//! What Langfuse's own SDK writes as spans: `langfuse.observation.*`.

use serde_json::Value;

use super::{
    super::{ForeignAgent, ForeignCall, account::CallAccount, fields::usage},
    convention::{Convention, fill, named},
    langgraph,
    span::{SpanOf, TraceSpan},
};
use crate::foreign::fields::whole_number;

/// Reads observations.
#[derive(Debug)]
pub(super) struct Langfuse;

impl Convention for Langfuse {
    fn span_kind(&self, span: &TraceSpan) -> Option<SpanOf> {
        Some(match span.text("langfuse.observation.type")? {
            "generation" => SpanOf::Call,
            "embedding" => SpanOf::Vectors,
            "tool" => SpanOf::Tool,
            "agent" => SpanOf::Agent,
            _ => SpanOf::Other,
        })
    }

    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        let is_agent = span.text("langfuse.observation.type") == Some("agent");
        let name =
            Some(span.name.as_str()).filter(|name| is_agent && *name != langgraph::UNNAMED && *name != "agent")?;
        named(name, "the name", span)
    }

    fn read(&self, span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
        if call.model.is_empty() {
            span.text("langfuse.observation.model.name").unwrap_or_default().clone_into(&mut call.model);
        }
        let counts = span.json("langfuse.observation.usage_details").unwrap_or_default();
        let count = |names: [&str; 3]| names.iter().find_map(|name| counts.get(*name)).and_then(whole_number);
        let counted = usage(
            count(["input", "prompt_tokens", "input_tokens"]),
            count(["output", "completion_tokens", "output_tokens"]),
        );
        call.usage = call.usage.or(counted);
        fill(call, span.at("langfuse.observation.input"), span.at("langfuse.observation.output"), account);
    }

    fn input_of_span(&self, span: &TraceSpan) -> Option<Value> {
        ["langfuse.trace.input", "langfuse.observation.input"].iter().find_map(|name| span.value(name)).cloned()
    }
}
