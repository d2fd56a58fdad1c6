//! `MLflow`'s spans: their kind, inputs and outputs, each as JSON.

use serde_json::Value;

use super::{
    super::{
        ForeignAgent, ForeignCall,
        account::CallAccount,
        fields::{text, usage, whole_number},
        held::TraceValue,
    },
    convention::{Convention, fill, named},
    span::{SpanOf, TraceSpan},
};

/// Reads its spans.
#[derive(Debug)]
pub(super) struct MlFlow;

fn kind(span: &TraceSpan) -> Option<&str> {
    Some(span.text("mlflow.spanType")?.trim_matches('"'))
}

impl Convention for MlFlow {
    fn span_kind(&self, span: &TraceSpan) -> Option<SpanOf> {
        Some(match kind(span)? {
            "CHAT_MODEL" | "LLM" => SpanOf::Call,
            "EMBEDDING" => SpanOf::Vectors,
            "TOOL" => SpanOf::Tool,
            "AGENT" => SpanOf::Agent,
            "WORKFLOW" => SpanOf::Workflow,
            _ => SpanOf::Other,
        })
    }

    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        (kind(span) == Some("AGENT")).then(|| named(&span.name, "the name", span))?
    }

    fn read(&self, span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
        let (asked, answered) = (span.json("mlflow.spanInputs"), span.json("mlflow.spanOutputs"));
        if call.model.is_empty() {
            let own = span.text("mlflow.llm.model").map(|model| model.trim_matches('"'));
            let asked = asked.as_ref().and_then(|asked| text(asked, "model"));
            own.or(asked).unwrap_or_default().clone_into(&mut call.model);
        }
        let counts = span.json("mlflow.chat.tokenUsage").unwrap_or_default();
        let count = |name: &str| counts.get(name).and_then(whole_number);
        call.usage = call.usage.or_else(|| usage(count("input_tokens"), count("output_tokens")));
        let asked = asked.as_ref().map(|value| TraceValue::at("mlflow.spanInputs", value));
        let answered = answered.as_ref().map(|value| TraceValue::at("mlflow.spanOutputs", value));
        fill(call, asked, answered, account);
    }

    fn input_of_span(&self, span: &TraceSpan) -> Option<Value> {
        span.json("mlflow.spanInputs")
    }
}
