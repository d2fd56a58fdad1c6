//! One conversation in every form in which instrumentations write it.

use serde_json::{Map, Value, json};

use super::testing::{answered, joined, read, record, request_texts, span, text, with_events};
use crate::foreign::fields::REASONING;

const ASKED: [&str; 4] = ["System You add.", "User What is 1 + 1?", "Assistant add{\"a\":1}", "Tool<c1 2"];

/// The conversation as chat completions have it.
fn chat() -> Value {
    json!([{"role": "system", "content": "You add."}, {"role": "user", "content": "What is 1 + 1?"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "add", "arguments": "{\"a\":1}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"}])
}

/// The conversation as lists of parts.
fn parted() -> Value {
    json!([{"role": "system", "parts": [{"type": "text", "content": "You add."}]},
        {"role": "user", "parts": [{"type": "text", "content": "What is 1 + 1?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "2"}]}])
}

/// The conversation as `LangChain` writes it: kinds with data, or classes with arguments.
fn langchain(classes: bool) -> Value {
    let one = |kind: &str, class: &str, mut fields: Value| {
        fields["type"] = kind.into();
        if classes {
            json!({"lc": 1, "type": "constructor", "id": ["langchain", class], "kwargs": fields})
        } else {
            json!({"type": kind, "data": fields})
        }
    };
    json!([[
        one("system", "SystemMessage", json!({"content": "You add."})),
        one("human", "HumanMessage", json!({"content": "What is 1 + 1?"})),
        one("ai", "AIMessage", json!({"content": "", "tool_calls": [{"name": "add", "args": {"a": 1}, "id": "c1"}]})),
        one("tool", "ToolMessage", json!({"content": "2", "tool_call_id": "c1", "name": "add"}))
    ]])
}

/// Names of `OpenInference` and of former conventions: the conversation at numbers.
fn numbered(prefix: &str, inner: &str, call: &str) -> Value {
    let mut fields = Map::new();
    for (at, (role, said)) in
        [("system", "You add."), ("user", "What is 1 + 1?"), ("assistant", ""), ("tool", "2")].iter().enumerate()
    {
        fields.insert(format!("{prefix}{at}.{inner}role"), (*role).into());
        if !said.is_empty() {
            fields.insert(format!("{prefix}{at}.{inner}content"), (*said).into());
        }
    }
    fields.insert(format!("{prefix}2.{inner}tool_calls.0.{call}id"), "c1".into());
    let function = if call.is_empty() { String::new() } else { format!("{call}function.") };
    fields.insert(format!("{prefix}2.{inner}tool_calls.0.{function}name"), "add".into());
    fields.insert(format!("{prefix}2.{inner}tool_calls.0.{function}arguments"), "{\"a\":1}".into());
    fields.insert(format!("{prefix}3.{inner}tool_call_id"), "c1".into());
    Value::Object(fields)
}

/// Forms in attributes of the span.
fn forms_of_attributes() -> Vec<(&'static str, Value)> {
    let call = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"});
    let former = json!({"llm.request.type": "chat", "gen_ai.request.model": "m"});
    let llm = json!({"openinference.span.kind": "LLM", "llm.model_name": "m"});
    let generation = json!({"langfuse.observation.type": "generation", "langfuse.observation.model.name": "m"});
    let said = json!({"role": "assistant", "content": "It is 2."});
    let in_parts =
        json!([{"role": "assistant", "parts": [{"type": "text", "content": "It is 2."}], "finish_reason": "stop"}]);
    let part = |kind: &str, more: Value| joined(&[json!({"type": kind}), more]);
    let ai_sdk = json!([{"role": "system", "content": "You add."},
        {"role": "user", "content": [{"type": "text", "text": "What is 1 + 1?"}]},
        {"role": "assistant", "content": [part("tool-call", json!({"toolCallId": "c1", "toolName": "add", "input": {"a": 1}}))]},
        {"role": "tool", "content": [part("tool-result", json!({"toolCallId": "c1", "toolName": "add", "output": {"type": "text", "value": "2"}}))]}]);
    let completion = json!({"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "It is 2.", "gen_ai.completion.0.finish_reason": "stop"});
    let output =
        json!({"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "It is 2."});
    let events = json!([{"event.name": "gen_ai.system.message", "role": "system", "content": "You add."},
        {"event.name": "gen_ai.user.message", "role": "user", "content": "What is 1 + 1?"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": chat()[2]["tool_calls"]},
        {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": "2"},
        {"event.name": "gen_ai.choice", "index": 0, "message": said}]);
    let generations =
        json!({"generations": [[{"text": "It is 2.", "message": {"type": "ai", "data": {"content": "It is 2."}}}]]});
    vec![
        (
            "present, as texts",
            joined(&[
                call.clone(),
                json!({"gen_ai.input.messages": text(&parted()), "gen_ai.output.messages": text(&in_parts)}),
            ]),
        ),
        (
            "present, as values",
            joined(&[call.clone(), json!({"gen_ai.input.messages": parted(), "gen_ai.output.messages": in_parts})]),
        ),
        (
            "present, instructions apart",
            joined(&[
                call.clone(),
                json!({"gen_ai.system_instructions": text(&json!([{"type": "text", "content": "You add."}])),
            "gen_ai.input.messages": text(&json!(parted().as_array().expect("a list")[1..])), "gen_ai.output.messages": text(&in_parts)}),
            ]),
        ),
        (
            "present, chat messages in it",
            joined(&[
                call.clone(),
                json!({"gen_ai.input.messages": text(&chat()), "gen_ai.output.messages": text(&json!([said]))}),
            ]),
        ),
        ("former, at numbers", joined(&[former, numbered("gen_ai.prompt.", "", ""), completion.clone()])),
        ("former, at numbers, unnamed kind", joined(&[numbered("gen_ai.prompt.", "", ""), completion])),
        (
            "former, whole",
            joined(&[call.clone(), json!({"gen_ai.prompt": text(&chat()), "gen_ai.completion": text(&json!([said]))})]),
        ),
        ("Pydantic AI's events", joined(&[call, json!({"events": text(&events)})])),
        ("OpenInference", joined(&[llm.clone(), numbered("llm.input_messages.", "message.", "tool_call."), output])),
        (
            "OpenInference, values alone",
            joined(&[
                llm.clone(),
                json!({"input.value": text(&json!({"messages": chat()})), "output.value": text(&json!({"choices": [{"message": said}]}))}),
            ]),
        ),
        (
            "OpenInference, LangChain's values",
            joined(&[
                llm,
                json!({"input.value": text(&json!({"messages": langchain(true)})), "output.value": text(&generations)}),
            ]),
        ),
        (
            "Langfuse",
            joined(&[
                generation.clone(),
                json!({"langfuse.observation.input": text(&chat()), "langfuse.observation.output": text(&said)}),
            ]),
        ),
        (
            "Langfuse, LangChain",
            joined(&[
                generation.clone(),
                json!({"langfuse.observation.input": text(&langchain(false)), "langfuse.observation.output": "It is 2."}),
            ]),
        ),
        (
            "Langfuse, with tools",
            joined(&[
                generation,
                json!({"langfuse.observation.input": text(&json!({"messages": chat(), "tools": []})), "langfuse.observation.output": text(&said)}),
            ]),
        ),
        (
            "AI SDK",
            json!({"ai.operationId": "ai.streamText.doStream", "gen_ai.request.model": "m", "ai.prompt.messages": text(&ai_sdk), "ai.response.text": "It is 2."}),
        ),
        (
            "MLflow",
            json!({"mlflow.spanType": "\"CHAT_MODEL\"", "mlflow.spanInputs": text(&json!({"model": "m", "messages": chat()})), "mlflow.spanOutputs": text(&json!({"choices": [{"message": said}]}))}),
        ),
        (
            "MLflow, LangChain",
            json!({"mlflow.spanType": "CHAT_MODEL", "mlflow.llm.model": "m", "mlflow.spanInputs": text(&langchain(true)), "mlflow.spanOutputs": text(&generations)}),
        ),
        (
            "Logfire",
            json!({"gen_ai.request.model": "m", "request_data": text(&json!({"messages": chat(), "model": "m"})), "response_data": text(&json!({"message": said}))}),
        ),
        (
            "Logfire, streamed",
            json!({"request_data": text(&json!({"messages": chat(), "model": "m"})), "response_data": text(&json!({"combined_chunk_content": "It is 2.", "chunk_count": 3}))}),
        ),
    ]
}

#[test]
fn one_conversation_is_read_from_every_form_in_attributes() {
    for (form, fields) in forms_of_attributes() {
        let run = read(&[span("c", "", "a call", &fields)], &[]);
        assert_eq!(run.calls.len(), 1, "{form}");
        assert_eq!(request_texts(&run.calls[0]), ASKED, "{form}");
        assert_eq!(answered(&run.calls[0]).as_deref(), Some("It is 2."), "{form}");
        assert_eq!(run.calls[0].model, if form.ends_with("unnamed kind") { "" } else { "m" }, "{form}");
        assert!(run.account.unplaced.is_empty(), "{form}: {:?}", run.account);
    }
}

#[test]
fn one_conversation_is_read_from_events_and_log_records() {
    let call = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"});
    let calls = chat()[2]["tool_calls"].clone();
    let bodies = [
        ("gen_ai.system.message", json!({"content": "You add."})),
        ("gen_ai.user.message", json!({"content": "What is 1 + 1?"})),
        ("gen_ai.assistant.message", json!({"tool_calls": calls})),
        ("gen_ai.tool.message", json!({"id": "c1", "content": "2"})),
        (
            "gen_ai.choice",
            json!({"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "It is 2."}}),
        ),
    ];
    let attributes: Vec<(&str, Value)> = bodies
        .iter()
        .map(|(name, body)| {
            let fields = body.as_object().expect("fields").iter();
            (
                *name,
                Value::Object(
                    fields
                        .map(|(key, value)| {
                            (key.clone(), if value.is_string() { value.clone() } else { text(value).into() })
                        })
                        .collect(),
                ),
            )
        })
        .collect();
    let inside: Vec<(&str, Value)> =
        bodies.iter().map(|(name, body)| (*name, json!({"gen_ai.event.content": text(body)}))).collect();
    let strands = [
        ("gen_ai.system.message", json!({"content": text(&json!([{"text": "You add."}]))})),
        ("gen_ai.user.message", json!({"content": text(&json!([{"text": "What is 1 + 1?"}]))})),
        (
            "gen_ai.assistant.message",
            json!({"content": text(&json!([{"toolUse": {"toolUseId": "c1", "name": "add", "input": {"a": 1}}}]))}),
        ),
        (
            "gen_ai.tool.message",
            json!({"content": text(&json!([{"toolResult": {"toolUseId": "c1", "content": [{"text": "2"}]}}]))}),
        ),
        ("gen_ai.choice", json!({"finish_reason": "end_turn", "message": text(&json!([{"text": "It is 2."}]))})),
    ];
    let whole = [
        ("gen_ai.content.prompt", json!({"gen_ai.prompt": text(&chat())})),
        (
            "gen_ai.content.completion",
            json!({"gen_ai.completion": text(&json!([{"role": "assistant", "content": "It is 2."}]))}),
        ),
    ];
    let details = [(
        "gen_ai.client.inference.operation.details",
        json!({"gen_ai.input.messages": text(&parted()),
        "gen_ai.output.messages": text(&json!([{"role": "assistant", "parts": [{"type": "text", "content": "It is 2."}]}]))}),
    )];
    let own = span("c", "", "chat m", &call);
    for (form, run) in [
        (
            "log records",
            read(std::slice::from_ref(&own), &bodies.iter().map(|(name, body)| record(name, body)).collect::<Vec<_>>()),
        ),
        ("events", read(&[with_events(own.clone(), &attributes)], &[])),
        ("events with content inside", read(&[with_events(own.clone(), &inside)], &[])),
        ("Strands' events", read(&[with_events(own.clone(), &strands)], &[])),
        ("whole events", read(&[with_events(own.clone(), &whole)], &[])),
        ("an event of details", read(&[with_events(own.clone(), &details)], &[])),
        ("a record of details", read(std::slice::from_ref(&own), &[record(details[0].0, &details[0].1)])),
    ] {
        assert_eq!(request_texts(&run.calls[0]), ASKED, "{form}");
        assert_eq!(answered(&run.calls[0]).as_deref(), Some("It is 2."), "{form}");
        assert!(run.account.unplaced.is_empty(), "{form}: {:?}", run.account);
    }
}

#[test]
fn replies_that_call_tools_or_come_in_pieces_are_whole() {
    let llm = json!({"openinference.span.kind": "LLM"});
    let tool = json!({"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Let me add.",
        "llm.output_messages.1.message.tool_calls.0.tool_call.function.name": "add",
        "llm.output_messages.1.message.tool_calls.0.tool_call.function.arguments": "{\"a\":1}"});
    let choices = json!([{"role": "assistant", "parts": [{"type": "text", "content": "one"}], "finish_reason": "stop"},
        {"role": "assistant", "parts": [{"type": "text", "content": "two"}], "finish_reason": "stop"}]);
    let json_words = "{\"messages\": [\"not a message\"]}";
    for (fields, expected, further) in [
        (joined(&[llm, tool]), "Let me add.add{\"a\":1}", 0),
        (json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": text(&choices)}), "one", 1),
        (
            json!({"ai.operationId": "ai.generateText.doGenerate", "ai.response.toolCalls":
            text(&json!([{"toolCallId": "c1", "toolName": "add", "input": "{\"a\":1}"}]))}),
            "add{\"a\":1}",
            0,
        ),
        (json!({"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": json_words}), json_words, 0),
        (json!({"langfuse.observation.type": "generation", "langfuse.observation.output": json_words}), json_words, 0),
    ] {
        let run = read(&[span("c", "", "a call", &fields)], &[]);
        assert_eq!(answered(&run.calls[0]).as_deref(), Some(expected), "{fields}");
        assert_eq!(
            run.account.left_out.get("further choices of a reply").copied().unwrap_or_default(),
            further,
            "{fields}"
        );
    }
    let thought = json!([{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}]}]);
    let run = read(
        &[span("c", "", "chat", &json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": thought}))],
        &[],
    );
    assert_eq!((answered(&run.calls[0]).as_deref(), run.account.left_out[REASONING]), (Some(""), 1));
}
