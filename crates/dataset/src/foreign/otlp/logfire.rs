//! What Logfire's instrumentations write: the request and the response whole, each as JSON, and `Pydantic AI`'s agents of
//! former versions.

use serde_json::Value;

use super::{
    super::{
        ForeignAgent, ForeignCall,
        account::CallAccount,
        fields::text,
        held::{self, TraceValue},
    },
    convention::{Convention, fill, named},
    span::{SpanOf, TraceSpan},
};

/// Where a reply stands whole in `response_data`, and what else stands there.
const WHOLE: &[&str] = &["message", "combined_chunk_content"];
const BESIDE: &[&str] = &["usage", "chunk_count"];

/// Reads its spans.
#[derive(Debug)]
pub(super) struct Logfire;

impl Convention for Logfire {
    fn span_kind(&self, span: &TraceSpan) -> Option<SpanOf> {
        let asked = span.json("request_data")?;
        (asked.get("messages").is_some() || asked.get("input").is_some()).then_some(SpanOf::Call)
    }

    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        named(span.text("agent_name")?, "agent_name", span)
    }

    fn read(&self, span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
        let asked = span.json("request_data");
        if call.model.is_empty() {
            asked.as_ref().and_then(|asked| text(asked, "model")).unwrap_or_default().clone_into(&mut call.model);
        }
        let answered = span.json("response_data").map(|answered| {
            // A streamed reply is told by its pieces put together.
            let Some(whole) = WHOLE.iter().find_map(|name| answered.get(*name)).cloned() else { return answered };
            held::members(&answered, &[WHOLE, BESIDE].concat(), &mut account.reply);
            whole
        });
        let asked = asked.as_ref().map(|value| TraceValue::at("request_data", value));
        let answered = answered.as_ref().map(|value| TraceValue::at("response_data", value));
        fill(call, asked, answered, account);
    }

    fn input_of_span(&self, span: &TraceSpan) -> Option<Value> {
        ["pydantic_ai.all_messages", "all_messages_events"].iter().find_map(|name| span.json(name))
    }
}
