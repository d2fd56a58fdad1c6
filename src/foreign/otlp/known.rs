//! Which attributes of a model call's span have a place, or are known to be none of what was said. What is not among them and
//! holds text is told by its name: an answer may stand there.

use super::{
    super::{TraceAccount, fields::holds_text},
    span::TraceSpan,
};

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
    "gen_ai.prompt.#.tool_calls.*",
    "gen_ai.prompt.#.finish_reason",
    "gen_ai.prompt.#.function_call.*",
    "gen_ai.prompt",
    "gen_ai.completion.#.role",
    "gen_ai.completion.#.content",
    "gen_ai.completion.#.finish_reason",
    "gen_ai.completion.#.tool_calls.*",
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
    "llm.input_messages.#.message.tool_calls.*",
    "llm.output_messages.#.message.role",
    "llm.output_messages.#.message.content",
    "llm.output_messages.#.message.name",
    "llm.output_messages.#.message.contents.#.message_content.*",
    "llm.output_messages.#.message.tool_calls.*",
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
    "input.*",
    "output.*",
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

/// Events that are known.
const EVENTS: &[&str] = &[
    "gen_ai.system.message",
    "gen_ai.user.message",
    "gen_ai.assistant.message",
    "gen_ai.tool.message",
    "gen_ai.choice",
    "gen_ai.content.prompt",
    "gen_ai.content.completion",
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
    if let Some(name) = ANSWERS.iter().find(|name| span.has_prefix(name)) {
        account.cannot_place(&format!("{} of a span that is no call", name.trim_end_matches('.')));
    }
}

/// Counts what of a call's span holds text and has no place.
pub(super) fn account(span: &TraceSpan, account: &mut TraceAccount) {
    for (name, value) in span.all() {
        if holds_text(value) {
            let name = numberless(name);
            if !is_known(&name) {
                account.cannot_place(&name);
            }
        }
    }
    for event in span.events.iter().filter(|event| !EVENTS.contains(&event.name.as_str())) {
        if holds_text(&event.body) || event.attributes.values().any(holds_text) {
            account.cannot_place(&format!("event {}", event.name));
        }
    }
}

/// A name with `#` for each number between its dots.
fn numberless(name: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    name.split('.').map(|part| if is_number(part) { "#" } else { part }).collect::<Vec<_>>().join(".")
}

fn is_known(name: &str) -> bool {
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
        let mut told = TraceAccount::default();
        account(&span, &mut told);
        assert_eq!(told.unplaced.keys().collect::<Vec<_>>(), ["event said", "gen_ai.prompt.#.annex", "my.answer"]);
    }
}
