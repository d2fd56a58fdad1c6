//! Plain logs and Langfuse's exports: the names of their fields, what is a run, whose word is an agent's.

use serde_json::{Value, json};

use super::{ALL, FieldNames, ForeignRun, Grouping, TracePlace, documents};
use crate::trajectory::Verdict;

/// The runs of a file, and what is wrong with it.
fn read(format: &str, bytes: &str, names: &[&str]) -> (Vec<ForeignRun>, Vec<String>) {
    let format = ALL.iter().find(|known| known.name() == format).expect("a format");
    let mut given = FieldNames::default();
    names.iter().for_each(|pair| given.add(pair).expect("a name"));
    let (mut reader, mut wrong) = (format.reader(&given), Vec::new());
    documents::each(bytes.as_bytes(), format.records(), &mut |line, document| {
        let place = TracePlace { file: "chat.json", number: 0, line, beside: None };
        wrong.extend(document.and_then(|document| reader.take(document, &place)).err());
    });
    (reader.finish(Grouping::Trace), wrong)
}

fn reply_texts(run: &ForeignRun) -> Vec<String> {
    let line = |call: &super::ForeignCall| {
        let name = call.agent.as_ref().map_or("", |agent| agent.name.as_str());
        let words = call.answer.as_ref().map(|answer| answer.message.text()).unwrap_or_default();
        let calls: String =
            call.answer.iter().flat_map(|answer| &answer.message.tool_calls).map(|call| call.name.as_str()).collect();
        format!("{name}: {words}{calls}")
    };
    run.calls.iter().map(line).collect()
}

fn request_texts(run: &ForeignRun, call: usize) -> Vec<String> {
    let request = run.calls[call].request.as_ref().expect("a request");
    request.messages.iter().map(|message| format!("{:?} {}", message.role, message.text())).collect()
}

fn lines(entries: &[Value]) -> String {
    entries.iter().map(|entry| format!("{entry}\n")).collect()
}

#[test]
fn entries_have_the_usual_names_or_those_that_the_user_gives() {
    for (agent, content, time, at) in [
        ("agent", "content", "timestamp", json!("2026-11-25T10:00:00Z")),
        ("agent_id", "text", "time", json!("2026-11-25 10:00:00")),
        ("name", "message", "ts", json!(1_795_600_800)),
        ("role", "output", "created_at", json!(1_795_600_800_000_i64)),
        ("speaker", "response", "timestamp", json!(1_795_600_800_000_000_i64)),
        ("sender", "body", "datetime", json!("1795600800")),
        ("agent_name", "msg", "timestamp", json!(1_795_600_800_000_000_000_i64)),
    ] {
        let entries = [
            json!({agent: "planner", content: "Add 12 and 30.", time: at}),
            json!({agent: "solver", content: "42", time: at}),
        ];
        for bytes in [
            lines(&entries),
            json!(entries).to_string(),
            json!({"history": entries}).to_string(),
            json!({"odd": {"a": 1}, "mine": entries}).to_string(),
        ] {
            let (runs, wrong) = read("log", &bytes, &[]);
            assert!(wrong.is_empty() && runs.len() == 1, "{bytes}: {wrong:?}");
            assert_eq!(reply_texts(&runs[0]), ["planner: Add 12 and 30.", "solver: 42"], "{bytes}");
            assert_eq!(runs[0].calls[0].began, Some(1_795_600_800_000_000_000), "{bytes}");
            assert_eq!(request_texts(&runs[0], 1), ["User Add 12 and 30."], "{bytes}");
        }
    }
    let own = lines(&[
        json!({"who": "planner", "agent": "no name", "said": "Add.", "when": 7, "thought": "a whole sentence"}),
    ]);
    let (runs, wrong) = read("log", &own, &["agent=who", "content=said", "time=when"]);
    assert_eq!(
        (reply_texts(&runs[0]), wrong.len(), runs[0].calls[0].began),
        (vec!["planner: Add.".to_owned()], 0, Some(7_000_000_000))
    );
    assert_eq!(runs[0].account.unplaced.keys().collect::<Vec<_>>(), ["agent", "thought"]);
    assert!(FieldNames::default().add("whom=who").is_err_and(|why| why.contains("agent, content, time")));
}

#[test]
fn users_tools_and_systems_are_heard_and_are_no_agents() {
    let bytes = lines(&[
        json!({"role": "system", "content": "Be kind."}),
        json!({"role": "user", "content": "What is 12 + 30?"}),
        json!({"role": "assistant", "name": "solver", "content": null, "tool_calls": [{"id": "1", "function": {"name": "add", "arguments": "{}"}}]}),
        json!({"role": "tool", "name": "add", "tool_call_id": "1", "content": "42"}),
        json!({"role": "user", "name": "critic", "content": [{"type": "text", "text": "Right."}]}),
        json!({"role": "assistant", "content": "It is 42."}),
    ]);
    let (runs, wrong) = read("log", &bytes, &[]);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(reply_texts(&runs[0]), ["solver: add", "critic: Right.", "assistant: It is 42."]);
    assert_eq!(request_texts(&runs[0], 0), ["System Be kind.", "User What is 12 + 30?"]);
    assert_eq!(request_texts(&runs[0], 1), ["System Be kind.", "User What is 12 + 30?", "User ", "Tool 42"]);
    assert_eq!((runs[0].task.as_deref(), runs[0].outcome.is_none()), (Some("What is 12 + 30?"), true));
}

#[test]
fn inputs_errors_and_outcomes_are_taken_and_what_is_no_entry_is_told() {
    let bytes = json!({"id": "q7", "question": "Add.", "success": false, "verdict": "no good at all", "steps": [
        {"agent": "a", "input": [{"role": "user", "content": "go"}], "output": "one", "model": "m"},
        {"agent": "b", "error": "it fell over"}, {"note": "nobody"}]})
    .to_string();
    let (runs, wrong) = read("log", &bytes, &[]);
    let run = &runs[0];
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!((reply_texts(run), run.label.as_str()), (vec!["a: one".to_owned(), "b: ".to_owned()], "q7"));
    assert_eq!((request_texts(run, 0), run.calls[0].model.as_str()), (vec!["User go".to_owned()], "m"));
    assert!(
        run.calls[1].failure.as_ref().is_some_and(|failure| failure.why == "it fell over")
            && run.calls[1].answer.is_none()
    );
    assert_eq!(run.outcome.as_ref().map(|(verdict, _)| *verdict), Some(Verdict::Failure));
    assert_eq!(run.account.left_out["entries without a speaker or words"], 1);
    assert_eq!(run.account.unplaced.keys().collect::<Vec<_>>(), ["verdict"]);
    for (bytes, words) in [
        (json!({"a": 1}).to_string(), "--map agent=NAME"),
        (json!({"agent": "a"}).to_string(), "--map content=NAME"),
        ("[1]".to_owned(), "expected objects"),
    ] {
        let (_, wrong) = read("log", &bytes, &[]);
        assert!(wrong[0].contains(words), "{wrong:?}");
    }
    let two = lines(&[
        json!({"agent": "a", "text": "x", "session_id": "s1"}),
        json!({"agent": "b", "text": "y", "session_id": "s2"}),
    ]);
    assert_eq!(read("log", &two, &[]).0.len(), 2, "entries name their runs");
}

fn generation(id: &str, parent: &str, more: &Value) -> Value {
    let mut fields = json!({"id": id, "traceId": "t", "type": "GENERATION", "name": "chat", "parentObservationId": parent, "model": "m",
        "startTime": "2026-11-25T10:00:00.000Z", "input": {"messages": [{"role": "user", "content": "x"}]},
        "output": {"role": "assistant", "content": "y"}, "usage": {"input": 3, "output": 4}, "metadata": {"langgraph_node": "intake"}});
    fields.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
    fields
}

#[test]
fn exports_of_langfuse_are_traces_in_each_of_their_envelopes() {
    let one = generation("g", "", &json!({}));
    let snake = json!({"id": "g", "trace_id": "t", "type": "GENERATION", "start_time": "2026-11-25T10:00:00Z", "model": "m",
        "input": "[{\"role\": \"user\", \"content\": \"x\"}]", "output": "y", "usage_details": {"input": 3, "output": 4},
        "metadata": "{\"langgraph_node\": \"intake\"}"});
    for bytes in [
        json!({"id": "t", "observations": [one]}).to_string(),
        json!({"trace": {"id": "t"}, "observations": [one]}).to_string(),
        json!({"data": [one], "meta": {"page": 1}}).to_string(),
        json!([one]).to_string(),
        one.to_string(),
        snake.to_string(),
    ] {
        let (runs, wrong) = read("langfuse", &bytes, &[]);
        assert!(wrong.is_empty() && runs.len() == 1, "{bytes}: {wrong:?}");
        let run = &runs[0];
        assert_eq!(
            (reply_texts(run), request_texts(run, 0)),
            (vec!["intake: y".to_owned()], vec!["User x".to_owned()]),
            "{bytes}"
        );
        assert_eq!(
            (run.key.as_str(), run.calls[0].usage.map(|usage| (usage.input, usage.output))),
            ("t", Some((3, 4)))
        );
        assert!(run.account.unplaced.is_empty() && run.calls[0].began.is_some(), "{bytes}: {:?}", run.account);
    }
    for bytes in ["{}", r#"{"id": "t", "observations": ["a", "b"]}"#, r#"{"id": "t", "name": "a trace alone"}"#] {
        assert_eq!(read("langfuse", bytes, &[]).1.len(), 1, "{bytes}");
    }
}

#[test]
fn scores_of_langfuse_decide_where_they_are_marks_and_failed_tools_fail_no_run() {
    let tool = json!({"id": "o", "traceId": "t", "type": "TOOL", "level": "ERROR", "statusMessage": "it broke", "parentObservationId": "r"});
    let root = json!({"id": "r", "traceId": "t", "type": "AGENT", "name": "solver"});
    let call = generation("g", "r", &json!({"metadata": {}, "annex": "a whole sentence"}));
    let verdict = |scores: Value| {
        let (runs, _) = read(
            "langfuse",
            &json!({"id": "t", "input": "Add.", "scores": scores, "observations": [root, call, tool]}).to_string(),
            &[],
        );
        assert_eq!((reply_texts(&runs[0]), runs[0].task.as_deref()), (vec!["solver: y".to_owned()], Some("Add.")));
        assert_eq!(runs[0].account.unplaced.keys().collect::<Vec<_>>(), ["observation.annex"]);
        runs[0].outcome.clone().map(|(verdict, _)| verdict)
    };
    let score = |kind: &str, value: Value, mark: Value| json!({"name": "s", "dataType": kind, "value": value, "stringValue": mark});
    assert_eq!(verdict(json!([])), None);
    assert_eq!(
        verdict(json!([score("BOOLEAN", json!(1), json!("True")), score("NUMERIC", json!(0), json!(null))])),
        Some(Verdict::Success)
    );
    assert_eq!(verdict(json!([score("BOOLEAN", json!(0), json!("False"))])), Some(Verdict::Failure));
    assert_eq!(
        verdict(json!([score("NUMERIC", json!(1), json!(null))])),
        Some(Verdict::Unknown),
        "nobody knows its scale"
    );
    let of_a_call =
        json!([{"name": "s", "dataType": "BOOLEAN", "value": 0, "stringValue": "False", "observationId": "g"}]);
    assert_eq!(verdict(of_a_call), None);
}
