//! Vercel's AI SDK: `ai.generateText` around `ai.generateText.doGenerate`, one of these a call.

use serde_json::{Value, json};

use super::{
    super::{
        ForeignAgent, ForeignCall,
        account::CallAccount,
        fields::{REASONING, tool, usage},
        held::TraceValue,
        messages,
    },
    convention::{Convention, named, request},
    span::{SpanOf, TraceSpan},
};
use crate::surface::{Answer, Role, Tool};

/// Reads its spans.
#[derive(Debug)]
pub(super) struct AiSdk;

impl Convention for AiSdk {
    fn span_kind(&self, span: &TraceSpan) -> Option<SpanOf> {
        let operation = span.text("ai.operationId")?;
        Some(match operation.rsplit('.').next() {
            Some("doGenerate" | "doStream") => SpanOf::Call,
            Some("doEmbed") => SpanOf::Vectors,
            Some("toolCall") => SpanOf::Tool,
            _ => SpanOf::Other,
        })
    }

    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        named(span.text("ai.telemetry.functionId")?, "ai.telemetry.functionId", span)
    }

    fn read(&self, span: &TraceSpan, call: &mut ForeignCall, account: &mut CallAccount) {
        if call.model.is_empty() {
            span.text("ai.model.id").unwrap_or_default().clone_into(&mut call.model);
        }
        let count = |names: [&str; 2]| names.iter().find_map(|name| span.whole_number(name));
        let counted = usage(
            count(["ai.usage.inputTokens", "ai.usage.promptTokens"]),
            count(["ai.usage.outputTokens", "ai.usage.completionTokens"]),
        );
        call.usage = call.usage.or(counted);
        call.finish_reason =
            call.finish_reason.take().or_else(|| span.text("ai.response.finishReason").map(str::to_owned));
        let asked = span.at("ai.prompt.messages").or_else(|| span.at("ai.prompt"));
        if let (None, Some(asked)) = (&call.request, asked) {
            call.request = request(messages::messages(asked, Role::User, &mut account.request), tools(span));
        }
        let said = ["ai.response.text", "ai.response.object"].iter().find_map(|name| span.text(name));
        let calls = span.json("ai.response.toolCalls");
        if call.answer.is_none() && (said.is_some() || calls.is_some()) {
            let told = json!({"role": "assistant", "content": said, "tool_calls": calls});
            let told = messages::messages(TraceValue::at("ai.response", &told), Role::Assistant, &mut account.reply);
            let message = messages::together(told, false, &mut account.reply);
            call.answer =
                message.map(|message| Answer { index: 0, message, finish_reason: call.finish_reason.clone() });
        }
        account.reply.leave_out(REASONING, u64::from(span.text("ai.response.reasoning").is_some()));
    }

    fn input_of_span(&self, span: &TraceSpan) -> Option<Value> {
        span.json("ai.prompt")
    }
}

/// The tools on offer: each is JSON in a text.
fn tools(span: &TraceSpan) -> Vec<Tool> {
    let listed = span.json("ai.prompt.tools").unwrap_or_default();
    let one = |value: &Value| match value {
        Value::String(said) => tool(&serde_json::from_str(said).ok()?),
        other => tool(other),
    };
    listed.as_array().into_iter().flatten().filter_map(one).collect()
}
