//! Every way of writing model calls as spans, and what all of them together say of a span.

use super::{
    super::ForeignAgent,
    ai_sdk,
    convention::Convention,
    former, genai, langfuse, langgraph, logfire, mlflow, openinference, openllmetry,
    span::{SpanOf, TraceSpan},
};

/// Every convention, nearest to the standard first: what one has read stays.
pub(super) const ALL: &[&dyn Convention] = &[
    &genai::GenAi,
    &former::FormerGenAi,
    &openinference::OpenInference,
    &langgraph::LangGraph,
    &openllmetry::OpenLlmetry,
    &langfuse::Langfuse,
    &ai_sdk::AiSdk,
    &mlflow::MlFlow,
    &logfire::Logfire,
];

/// What a span is of: a call where any convention says so, else what the first says.
pub(super) fn span_kind(span: &TraceSpan) -> Option<SpanOf> {
    let told: Vec<SpanOf> = ALL.iter().filter_map(|convention| convention.span_kind(span)).collect();
    // A graph may call itself an agent; that it is one is said by who knows graphs.
    let strongest = [SpanOf::Call, SpanOf::Workflow, SpanOf::Vectors];
    strongest.into_iter().find(|kind| told.contains(kind)).or_else(|| told.first().copied())
}

/// The agent that a span names itself.
pub(super) fn agent(span: &TraceSpan) -> Option<ForeignAgent> {
    (span.span_kind != Some(SpanOf::Workflow)).then(|| ALL.iter().find_map(|convention| convention.agent(span)))?
}
