//! What Logfire's instrumentations write: the request and the response whole, each as JSON, and `Pydantic AI`'s agents of
//! former versions.

use serde_json::Value;

use super::{
    super::{ForeignAgent, ForeignCall, TraceAccount, fields::text},
    convention::{Convention, SpanOf, fill, named},
    span::TraceSpan,
};

/// Reads its spans.
#[derive(Debug)]
pub(super) struct Logfire;

impl Convention for Logfire {
    fn of(&self, span: &TraceSpan) -> Option<SpanOf> {
        let asked = span.json("request_data")?;
        (asked.get("messages").is_some() || asked.get("input").is_some()).then_some(SpanOf::Call)
    }

    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        named(span.text("agent_name")?, "agent_name", span)
    }

    fn read(&self, span: &TraceSpan, call: &mut ForeignCall, account: &mut TraceAccount) {
        let asked = span.json("request_data");
        if call.model.is_empty() {
            asked.as_ref().and_then(|asked| text(asked, "model")).unwrap_or_default().clone_into(&mut call.model);
        }
        let answered = span.json("response_data").map(|answered| {
            // A streamed reply is told by its pieces put together.
            let whole = ["message", "combined_chunk_content"].iter().find_map(|name| answered.get(*name)).cloned();
            whole.unwrap_or(answered)
        });
        fill(call, asked.as_ref(), answered.as_ref(), account);
    }

    fn given(&self, span: &TraceSpan) -> Option<Value> {
        ["pydantic_ai.all_messages", "all_messages_events"].iter().find_map(|name| span.json(name))
    }
}
