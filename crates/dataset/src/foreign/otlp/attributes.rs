//! Which attributes of a model call's span have a place, or are known to be none of what was said. What is not among them and
//! holds text is told by its name: an answer may stand there.

use serde_json::Value;

use super::{
    super::{
        TraceAccount,
        account::{CallAccount, numberless},
        fields::holds_text,
    },
    span::TraceSpan,
};
use crate::trajectory::{Side, UnplacedKind};

/// Names that are known, with `#` for a number; one that ends in `*` stands for all that begin so.
const KNOWN: &[&str] = &[
    // Present and former GenAI conventions.
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.*",
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.system",
    "gen_ai.request.*",
    "gen_ai.response.*",
    "gen_ai.usage.*",
    "gen_ai.agent.*",
    "gen_ai.conversation.id",
    "gen_ai.output.type",
    "gen_ai.openai.*",
    "gen_ai.workflow.*",
    "gen_ai.task.*",
    "gen_ai.prompt.name",
    "gen_ai.prompt.#.role",
    "gen_ai.prompt.#.content",
    "gen_ai.prompt.#.name",
    "gen_ai.prompt.#.tool_call_id",
    "gen_ai.prompt.#.tool_calls.#.id",
    "gen_ai.prompt.#.tool_calls.#.type",
    "gen_ai.prompt.#.tool_calls.#.name",
    "gen_ai.prompt.#.tool_calls.#.arguments",
    "gen_ai.prompt.#.tool_calls.#.function.*",
    "gen_ai.prompt.#.finish_reason",
    "gen_ai.prompt.#.function_call.*",
    "gen_ai.prompt",
    "gen_ai.completion.#.role",
    "gen_ai.completion.#.content",
    "gen_ai.completion.#.finish_reason",
    "gen_ai.completion.#.tool_calls.#.id",
    "gen_ai.completion.#.tool_calls.#.type",
    "gen_ai.completion.#.tool_calls.#.name",
    "gen_ai.completion.#.tool_calls.#.arguments",
    "gen_ai.completion.#.tool_calls.#.function.*",
    "gen_ai.completion.#.function_call.*",
    "gen_ai.completion",
    "gen_ai.cost.*",
    "gen_ai.client.*",
    "gen_ai.server.*",
    "gen_ai.event.*",
    "gen_ai.environment",
    "gen_ai.application_name",
    "gen_ai.sdk.*",
    "gen_ai.is_streaming",
    "gen_ai.session.id",
    "gen_ai.user.id",
    "gen_ai.run.id",
    "gen_ai.is_stream",
    "gen_ai.evaluation.*",
    "events",
    "model_request_parameters",
    "model_name",
    "agent_name",
    // OpenInference.
    "openinference.*",
    "llm.model_name",
    "llm.provider",
    "llm.system",
    "llm.token_count.*",
    "llm.cost.*",
    "llm.finish_reason",
    "llm.invocation_parameters",
    "llm.tools.#.tool.json_schema",
    "llm.input_messages.#.message.role",
    "llm.input_messages.#.message.content",
    "llm.input_messages.#.message.name",
    "llm.input_messages.#.message.tool_call_id",
    "llm.input_messages.#.message.contents.#.message_content.*",
    "llm.input_messages.#.message.tool_calls.#.tool_call.id",
    "llm.input_messages.#.message.tool_calls.#.tool_call.function.*",
    "llm.output_messages.#.message.role",
    "llm.output_messages.#.message.content",
    "llm.output_messages.#.message.name",
    "llm.output_messages.#.message.contents.#.message_content.*",
    "llm.output_messages.#.message.tool_calls.#.tool_call.id",
    "llm.output_messages.#.message.tool_calls.#.tool_call.function.*",
    "llm.prompts",
    "llm.prompts.#.prompt.text",
    "llm.choices.#.completion.text",
    "llm.completions.#.completion.text",
    "llm.prompt_template.*",
    "llm.request.*",
    "llm.usage.*",
    "llm.is_streaming",
    "llm.headers",
    "llm.user",
    "llm.chat.*",
    "llm.response.*",
    "input.value",
    "input.mime_type",
    "output.value",
    "output.mime_type",
    "metadata",
    "metadata.*",
    "tag.*",
    "session.id",
    "user.id",
    "agent.name",
    "graph.node.*",
    "smolagents.*",
    // Langfuse, Traceloop, the AI SDK, MLflow, Logfire.
    "langfuse.*",
    "traceloop.*",
    "crewai.*",
    "ai.prompt",
    "ai.prompt.messages",
    "ai.prompt.tools",
    "ai.prompt.toolChoice",
    "ai.response.text",
    "ai.response.object",
    "ai.response.toolCalls",
    "ai.response.finishReason",
    "ai.response.id",
    "ai.response.model",
    "ai.response.timestamp",
    "ai.response.reasoning",
    "ai.response.providerMetadata",
    "ai.response.avgOutputTokensPerSecond",
    "ai.response.ms*",
    "ai.usage.*",
    "ai.model.*",
    "ai.settings.*",
    "ai.telemetry.*",
    "ai.request.*",
    "ai.operationId",
    "ai.schema*",
    "ai.stream.*",
    "operation.name",
    "resource.name",
    "mlflow.*",
    "logfire.*",
    "request_data",
    "response_data",
    "pydantic_ai.*",
    "final_result",
    "all_messages_events",
    // What spans of any kind have.
    "server.*",
    "client.*",
    "http.*",
    "url.*",
    "net.*",
    "network.*",
    "rpc.*",
    "peer.*",
    "error.*",
    "exception.*",
    "code.*",
    "thread.*",
    "service.*",
    "telemetry.*",
    "otel.*",
    "process.*",
    "host.*",
    "os.*",
    "deployment.*",
    "aws.*",
    "az.*",
    "aegis.*",
    "user_agent.*",
    "event.*",
    "internal.*",
    "span.*",
];

/// Where an export of ours says that a step was not read whole.
const STATED: &str = "aegis.account";
/// Events whose attributes hold what was asked and answered.
const CONTENT: &str = "gen_ai.content.";
/// Events that are known.
const EVENTS: &[&str] = &[
    "gen_ai.system.message",
    "gen_ai.user.message",
    "gen_ai.assistant.message",
    "gen_ai.tool.message",
    "gen_ai.choice",
    "gen_ai.evaluation.result",
    "exception",
    "ai.stream.firstChunk",
    "ai.stream.finish",
];

/// Where the answer of a model stands in a span of a call, by how its name begins.
const ANSWERS: &[&str] =
    &["gen_ai.output.messages", "gen_ai.completion", "llm.output_messages.", "ai.response.text", "ai.response.object"];

/// Counts the answers of a span that no call holds: the span is none, and none is below it.
pub(super) fn without_call(span: &TraceSpan, account: &mut TraceAccount) {
    let found = ANSWERS.iter().find_map(|known| span.all().find(|(name, _)| name.starts_with(known)).zip(Some(known)));
    if let Some(((_, value), name)) = found {
        let place = format!("{} of a span that is no call", name.trim_end_matches('.'));
        account.cannot_place(&place, UnplacedKind::Missing, value);
    }
}

/// Names what of a call's span holds text and has no place, each on the side that its name speaks of.
pub(super) fn account(span: &TraceSpan, account: &mut CallAccount) {
    for (name, value) in span.all().filter(|(_, value)| holds_text(value)) {
        if !is_listed(&numberless(name)) {
            account.cannot_place(side(name), name, UnplacedKind::Member, value);
        } else if is_spoilt_list(value) {
            account.cannot_place(side(name), name, UnplacedKind::Value, value);
        }
    }
    if let Some(value) = span.value(STATED) {
        account.cannot_place(None, STATED, UnplacedKind::Missing, value);
    }
    for event in &span.events {
        let said = || event.attributes.iter().filter(|(_, value)| holds_text(value));
        if event.name.starts_with(CONTENT) {
            for (name, value) in said().filter(|(name, _)| !is_listed(name)) {
                account.cannot_place(
                    side(&event.name),
                    &format!("event {}: {name}", event.name),
                    UnplacedKind::Member,
                    value,
                );
            }
        } else if !EVENTS.contains(&event.name.as_str()) && (holds_text(&event.body) || said().next().is_some()) {
            let place = format!("event {}", event.name);
            account.cannot_place(side(&event.name), &place, UnplacedKind::Event, &event.fields());
        }
    }
}

/// Whether a text begins as a list of objects and is none: tracers cut long attributes, and some write JSON as a text once more.
fn is_spoilt_list(value: &Value) -> bool {
    let begins = |text: &str| text.trim_start().starts_with("[{");
    let Some(text) = value.as_str() else { return false };
    let is_within = || serde_json::from_str::<String>(text).is_ok_and(|inner| begins(&inner));
    (begins(text) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()) || is_within()
}

/// The side of a call that a name speaks of; `None` where it speaks of neither.
fn side(name: &str) -> Option<Side> {
    name.split(['.', '_', '-', ' ']).find_map(|word| match word {
        "input" | "inputs" | "prompt" | "prompts" | "request" | "instructions" | "question" => Some(Side::Request),
        "output" | "outputs" | "completion" | "completions" | "response" | "answer" | "answers" | "reply"
        | "choice" | "choices" | "result" => Some(Side::Response),
        _ => None,
    })
}

fn is_listed(name: &str) -> bool {
    KNOWN.iter().any(|known| match known.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *known,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_that_no_reader_knows_is_told_by_its_name() {
        let attribute = |name: &str, value: &str| json!({"key": name, "value": {"stringValue": value}});
        let span = TraceSpan::read(&json!({"spanId": "a", "attributes": [
            attribute("gen_ai.prompt.3.content", "known words"), attribute("gen_ai.prompt.3.annex", "unknown words"),
            attribute("my.answer", "{\"a\": 1}"), attribute("my.id", "one-word")],
            "events": [{"name": "exception", "attributes": [attribute("m", "it fell over")]},
                {"name": "said", "attributes": [attribute("text", "It is 42.")]}]}))
        .expect("a span");
        let mut told = CallAccount::default();
        account(&span, &mut told);
        let places = |side: &TraceAccount| side.pieces.iter().map(|piece| piece.place.clone()).collect::<Vec<_>>();
        assert_eq!(places(&told.request), ["gen_ai.prompt.3.annex", "event said"]);
        assert_eq!(places(&told.reply), ["my.answer", "event said"], "an event may be of either side");
        let mut trace = TraceAccount::default();
        told.close(&mut trace);
        assert_eq!(trace.unplaced.keys().collect::<Vec<_>>(), ["event said", "gen_ai.prompt.#.annex", "my.answer"]);
    }

    #[test]
    fn a_list_that_was_cut_or_written_twice_is_not_read_whole() {
        let list = json!([{"role": "assistant", "parts": [{"type": "text", "content": "It is 42."}]}]).to_string();
        for (value, spoilt) in [
            (list.clone(), false),
            (list[..40].to_owned(), true),
            (json!(list).to_string(), true),
            ("[{one} of two".to_owned(), true),
            ("It is [{42}].".to_owned(), false),
        ] {
            let attribute = json!({"key": "gen_ai.output.messages", "value": {"stringValue": value}});
            let span = TraceSpan::read(&json!({"spanId": "a", "attributes": [attribute]})).expect("a span");
            let mut told = CallAccount::default();
            account(&span, &mut told);
            assert_eq!(told.reply.pieces.len(), usize::from(spoilt), "{value}");
        }
    }
}
