//! What each format says, told by its documents; and what is left out of them, with its number.

use serde_json::{Value, json};

use super::*;
use crate::trajectory::Verdict;

/// What some documents of a format are, and what is wrong with them.
fn read(format: &str, documents: &[Value]) -> (Vec<ForeignRun>, Vec<String>) {
    let format = ALL.iter().find(|known| known.name() == format).expect("a format");
    let mut reader = format.reader(&FieldNames::default());
    let place = TracePlace { file: "trace.json", number: 0, line: None, beside: None };
    let wrong = documents.iter().filter_map(|document| reader.take(document, &place).err()).collect();
    (reader.finish(Grouping::Trace), wrong)
}

fn only(format: &str, document: Value) -> ForeignRun {
    let (mut runs, wrong) = read(format, &[document]);
    assert_eq!((runs.len(), wrong.len()), (1, 0), "{wrong:?}");
    runs.remove(0)
}

fn request_texts(call: &ForeignCall) -> Vec<String> {
    let messages = call.request.iter().flat_map(|request| &request.messages);
    messages.map(|message| format!("{:?} {}", message.role, message.text())).collect()
}

fn names(run: &ForeignRun) -> Vec<&str> {
    run.calls.iter().map(|call| call.agent.as_ref().map_or("", |agent| agent.name.as_str())).collect()
}

/// A span of trace `t`; attributes are texts.
fn span(id: &str, parent: &str, name: &str, attributes: &[(&str, &str)]) -> Value {
    let attribute = |(key, value): &(&str, &str)| json!({"key": key, "value": {"stringValue": value}});
    json!({"traceId": "t", "spanId": id, "parentSpanId": parent, "name": name, "startTimeUnixNano": "1",
        "attributes": attributes.iter().map(attribute).collect::<Vec<_>>()})
}

fn spans(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
}

const CHAT: (&str, &str) = ("gen_ai.operation.name", "chat");
const LLM: (&str, &str) = ("openinference.span.kind", "LLM");

#[test]
fn a_call_that_two_tracers_saw_is_one() {
    let run = only(
        "otlp",
        spans(&[
            span("wrapper", "", "ChatModel", &[LLM]),
            span("inner", "wrapper", "chat m", &[CHAT]),
            span("inner", "wrapper", "chat m", &[CHAT]),
            span("vectors", "", "embeddings m", &[("gen_ai.operation.name", "embeddings")]),
            span(
                "tool",
                "",
                "execute_tool f",
                &[("gen_ai.operation.name", "execute_tool"), ("gen_ai.request.model", "m")],
            ),
        ]),
    );
    assert_eq!(run.calls.len(), 1);
    let left_out: Vec<(&str, u64)> = run.account.left_out.iter().map(|(what, count)| (*what, *count)).collect();
    let expected = [
        ("calls for vectors", 1),
        ("spans around the span of the same call", 1),
        ("spans that were exported twice", 1),
    ];
    assert_eq!(left_out, expected);
}

#[test]
fn the_nearest_span_that_names_somebody_names_the_agent() {
    let invoked = ("gen_ai.operation.name", "invoke_agent");
    for (spans_above, own, expected) in [
        (vec![span("a", "", "invoke_agent x", &[invoked, ("gen_ai.agent.name", "planner")])], vec![CHAT], "planner"),
        (vec![span("a", "", "invoke_agent solver", &[invoked])], vec![CHAT], "solver"),
        (vec![span("a", "", "critic", &[("openinference.span.kind", "AGENT")])], vec![LLM], "critic"),
        (
            vec![span("a", "", "x", &[("openinference.span.kind", "AGENT"), ("graph.node.id", "node")])],
            vec![LLM],
            "node",
        ),
        (vec![span("a", "", "x", &[("agent.name", "outer")])], vec![LLM, ("agent.name", "own")], "own"),
        (vec![span("a", "", "chain", &[("openinference.span.kind", "CHAIN")])], vec![LLM], ""),
        (vec![], vec![CHAT], ""),
    ] {
        let all: Vec<Value> = spans_above.into_iter().chain([span("c", "a", "call", &own)]).collect();
        assert_eq!(names(&only("otlp", spans(&all))), [expected], "{all:?}");
    }
}

#[test]
fn a_run_of_spans_failed_where_its_root_says_so_and_passed_where_an_evaluation_does() {
    let root = |status: Value, label: Option<&str>| {
        let mut root = span("r", "", "workflow", &[("input.value", "Add.")]);
        root["status"] = status;
        let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        root["events"] = label.map_or(json!([]), |label| {
            let said =
                [attribute("gen_ai.evaluation.name", "right"), attribute("gen_ai.evaluation.score.label", label)];
            json!([{"name": "gen_ai.evaluation.result", "attributes": said}])
        });
        only("otlp", spans(&[root, span("c", "r", "chat m", &[CHAT])]))
    };
    for (status, label, expected) in [
        (json!({}), None, None),
        // Tracers write `Ok` for whatever raised nothing: it says nothing of the task.
        (json!({"code": 1}), None, None),
        (
            json!({"code": 2, "message": "boom"}),
            None,
            Some((Verdict::Failure, "the span `workflow` ended with an error: boom")),
        ),
        (json!({"code": 1}), Some("pass"), Some((Verdict::Success, "evaluation `right` is \"pass\""))),
        (json!({"code": 1}), Some("fail"), Some((Verdict::Failure, "evaluation `right` is \"fail\""))),
        (json!({"code": 2}), Some("so-so"), Some((Verdict::Unknown, "evaluation `right` is \"so-so\""))),
    ] {
        let run = root(status.clone(), label);
        let told = run.outcome.as_ref().map(|(verdict, evidence)| (*verdict, evidence.as_str()));
        assert_eq!((told, run.task.as_deref()), (expected, Some("Add.")), "{status} {label:?}");
    }
}

#[test]
fn messages_of_spans_keep_instructions_results_and_what_log_records_hold() {
    let said = r#"[{"role":"user","parts":[{"type":"text","content":"x"},{"type":"blob"}]},
        {"role":"tool","parts":[{"type":"tool_call_response","id":"1","response":{"a":1}},
            {"type":"tool_call_response","id":"2","result":"b"}]},
        {"role":"assistant","parts":[{"type":"reasoning","content":"hm"}]}]"#;
    let instructions = ("gen_ai.system_instructions", r#"[{"type":"text","content":"Be kind."}]"#);
    let own = span("c", "", "chat m", &[CHAT, instructions]);
    let log = json!({"traceId": "t", "spanId": "c", "eventName": "gen_ai.client.inference.operation.details",
        "attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": said}}]});
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]});
    let (runs, wrong) = read("otlp", &[logs, spans(&[own]), json!({"resourceMetrics": []})]);
    assert!(wrong.is_empty(), "{wrong:?}");
    let call = &runs[0].calls[0];
    assert_eq!(request_texts(call), ["System Be kind.", "User x", "Tool {\"a\":1}", "Tool b", "Assistant "]);
    assert_eq!(call.request.as_ref().expect("asked").messages[3].answers_call.as_deref(), Some("2"));
    assert_eq!(
        (runs[0].account.left_out["parts that are no text"], runs[0].account.left_out["passages of reasoning"]),
        (1, 1)
    );
}

fn log(sample: Value) -> Value {
    json!({"version": 2, "eval": {"eval_id": "e", "model": "openai/m"}, "samples": [sample]})
}

#[test]
fn scorers_are_no_agents_and_an_error_is_a_failure() {
    let model = |span: &str, more: Value| {
        let mut event = json!({"event": "model", "span_id": span, "model": "openai/m",
            "input": [{"role": "user", "content": "x"}], "output": {"choices": []}});
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        event
    };
    let begin = |id: &str, kind: &str, above: &str| json!({"event": "span_begin", "id": id, "type": kind, "name": id, "parent_id": above});
    let run = only(
        "inspect",
        log(json!({"id": "a", "epoch": 2, "input": "Add.", "error": {"message": "boom"}, "events": [
            begin("solver", "agent", ""), begin("tool", "tool", "solver"), begin("graders", "scorers", ""),
            begin("grader", "scorer", "graders"), model("tool", json!({"error": "refused"})),
            model("grader", json!({})), model("solver", json!({"pending": true}))]})),
    );
    assert_eq!(
        (names(&run), run.label.as_str(), run.upstream.as_deref()),
        (vec!["solver"], "a-epoch-2", Some("openai"))
    );
    assert_eq!((run.account.left_out["calls of scorers"], run.account.left_out.len()), (1, 2));
    assert_eq!(run.calls[0].failure.as_ref().map(|failure| failure.why.as_str()), Some("refused"));
    let failed = (Verdict::Failure, "the sample ended with an error: boom".to_owned());
    assert_eq!((run.outcome, run.task.as_deref()), (Some(failed), Some("Add.")));
}

#[test]
fn a_log_without_events_still_has_what_the_model_said() {
    let said = |agent: &str, text: &str| json!({"role": "assistant", "source": "generate", "content": text, "metadata": {"agent": agent}});
    let run = only(
        "inspect",
        log(json!({"id": 1, "limit": {"type": "token"}, "messages": [{"role": "user", "content": "x"},
            said("a", "one"), {"role": "user", "source": "input", "content": "for b", "metadata": {"agent": "b"}},
            said("b", "two"), said("a", "three")]})),
    );
    assert_eq!(names(&run), ["a", "b", "a"]);
    assert_eq!(request_texts(&run.calls[1]), ["User x", "User one", "User for b"]);
    assert_eq!(request_texts(&run.calls[2]), ["User x", "Assistant one", "User two"], "what was b's alone is not a's");
    assert!(run.requests.starts_with("rebuilt"));
    assert_eq!(run.outcome, Some((Verdict::Unknown, "the sample ran into its token limit".to_owned())));
    let (runs, wrong) = read("inspect", &[json!({"version": 2, "eval": {}})]);
    assert!(runs.is_empty() && wrong[0].contains("no `samples`"), "{wrong:?}");
}

#[test]
fn a_trajectory_is_one_conversation_of_whoever_is_named() {
    let agent = |text: &str, more: Value| {
        let mut step = json!({"source": "agent", "message": text});
        step.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        step
    };
    let run = only(
        "atif",
        json!({"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "main", "model_name": "m"},
            "extra": {"outcome": "failure"}, "steps": [
            {"source": "user", "message": [{"type": "text", "text": "Go."}, {"type": "image"}]},
            agent("old", json!({"is_copied_context": true})),
            agent("look", json!({"observation": {"results": [{"content": "seen"}]}, "llm_call_count": 2})),
            agent("by rule", json!({"llm_call_count": 0})),
            agent("other", json!({"extra": {"agent": "helper"}, "model_name": "n"}))]}),
    );
    assert_eq!(names(&run), ["main", "helper"]);
    assert_eq!(request_texts(&run.calls[0]), ["User Go.", "Assistant old"]);
    assert_eq!(request_texts(&run.calls[1]), ["User Go.", "User old", "User look", "User seen", "User by rule"]);
    assert_eq!((run.calls[0].model.as_str(), run.calls[1].model.as_str()), ("m", "n"));
    let counts = [
        "further calls of steps of several",
        "parts that are no text",
        "steps that were copied from another trajectory",
        "steps without a model call",
    ];
    assert!(
        counts.iter().all(|what| run.account.left_out.get(what) == Some(&1)) && run.account.left_out.len() == 4,
        "{:?}",
        run.account.left_out
    );
    assert_eq!(run.outcome, Some((Verdict::Failure, "field `extra.outcome` is \"failure\"".to_owned())));
}

#[test]
fn helpers_of_one_session_stand_where_they_were_called() {
    let step = |text: &str| json!({"step_id": 1, "source": "agent", "message": text});
    let helper = |id: &str| json!({"schema_version": "ATIF-v1.7", "trajectory_id": id, "session_id": "s", "agent": {"name": id}, "steps": [step(id)]});
    let calls = |named: Value| {
        let mut step = step("call");
        step["observation"] = json!({"results": [{"content": "ok", "subagent_trajectory_ref": [named]}]});
        step
    };
    let run = only(
        "atif",
        json!({"schema_version": "ATIF-v1.7", "trajectory_id": "root", "session_id": "s", "agent": {"name": "main"},
            "subagent_trajectories": [helper("one"), helper("two")], "steps": [
            calls(json!({"trajectory_id": "two", "session_id": "s"})), calls(json!({"trajectory_id": "one", "session_id": "s"})),
            calls(json!({"trajectory_path": "elsewhere.json"}))]}),
    );
    assert_eq!(names(&run), ["main", "two", "main", "one", "main"]);
    assert_eq!(run.account.left_out["trajectories of helpers in another file"], 1);
    let run = only("atif", json!({"schema_version": "ATIF-v1.7", "agent": {"name": "main"}, "steps": [step("x")]}));
    assert_eq!(run.label, "trace.json", "neither id has to be there");
}

#[test]
fn the_reward_of_a_trial_is_its_outcome() {
    let document = json!({"schema_version": "ATIF-v1.7", "steps": [{"source": "agent", "message": "x"}]});
    for (beside, expected) in [
        (json!({"verifier_result": {"rewards": {"reward": 1.0, "style": 0.0}}}), Some(Verdict::Success)),
        (json!({"verifier_result": {"rewards": {"a": 1, "b": 0}}}), Some(Verdict::Unknown)),
        (
            json!({"verifier_result": null, "exception_info": {"exception_type": "AgentTimeoutError"}}),
            Some(Verdict::Failure),
        ),
        (json!({"verifier_result": {"rewards": null}}), None),
    ] {
        let mut reader = ALL[2].reader(&FieldNames::default());
        let place = TracePlace { file: "trajectory.json", number: 0, line: None, beside: Some(&beside) };
        reader.take(&document, &place).expect("a trajectory");
        let runs = reader.finish(Grouping::Trace);
        assert_eq!(runs[0].outcome.as_ref().map(|(verdict, _)| *verdict), expected, "{beside}");
    }
}

#[test]
fn what_no_reader_knows_is_of_its_call_and_side() {
    let (annex, verse) = ("a whole sentence", json!({"type": "verse", "lines": "two words"}));
    let said = |text: &str| json!([{"type": "text", "text": text}, verse]);
    let trajectory = json!({"schema_version": "ATIF-v1.7", "agent": {"name": "main"}, "steps": [
        {"source": "user", "message": said("Go.")}, {"source": "agent", "message": "look", "annex": annex},
        {"source": "agent", "message": "done"}]});
    let sample = log(json!({"id": "a", "input": "Add.", "events": [{"event": "model", "model": "openai/m",
        "input": [{"role": "user", "content": "x", "annex": annex}],
        "output": {"choices": [{"message": {"role": "assistant", "content": said("y")}}]}}]}));
    let entries = json!({"messages": [{"role": "tool", "name": "add", "content": "2", "annex": annex},
        {"agent": "solver", "content": "It is 2.", "annex": annex}, {"agent": "critic", "content": "Right."}]});
    let generation = json!({"id": "t", "observations": [{"id": "g", "traceId": "t", "type": "GENERATION", "model": "m",
        "input": [{"role": "user", "content": "x", "annex": annex}], "output": "y", "annex": annex}]});
    for (format, document, expected) in [
        ("atif", trajectory, &["0 < content[1]", "0 > annex"][..]),
        ("inspect", sample, &["0 < annex", "0 > content[1]"]),
        ("log", entries, &["0 < annex", "0 > annex"]),
        (
            "langfuse",
            generation,
            &["0 < langfuse.observation.input[0].annex", "0 < observation.annex", "0 > observation.annex"],
        ),
    ] {
        let run = only(format, document);
        let mut found = Vec::new();
        for (at, call) in run.calls.iter().enumerate() {
            found.extend(call.unplaced.request.iter().map(|piece| format!("{at} < {}", piece.place)));
            found.extend(call.unplaced.reply.iter().map(|piece| format!("{at} > {}", piece.place)));
        }
        assert_eq!(found, expected, "{format}");
        assert_eq!(run.account.unplaced.values().sum::<u64>(), 2, "{format}: the trace counts each once");
    }
}
