//! Published sets of attribution data, by hand-made files in their shapes: Who&When Pro, `TraceElephant`, TRAIL and
//! `CodeTraceBench`.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{Defect, ImportSource, formats_tests::imported, read_foreign};
use crate::{
    dataset::{Sample, SampleKind},
    trajectory::Verdict,
};

fn put(dir: &Path, name: &str, value: &Value) {
    let file = dir.join(name);
    fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    fs::write(file, value.as_str().map_or_else(|| value.to_string(), str::to_owned)).expect("written");
}

fn read(from: ImportSource, files: &[(&str, Value)]) -> (Vec<Sample>, Vec<&'static str>) {
    let dir = tempfile::tempdir().expect("a directory");
    files.iter().for_each(|(name, value)| put(dir.path(), name, value));
    let (samples, defects): (_, Vec<Defect>) = read_foreign(from, dir.path()).expect("read");
    (samples, defects.iter().map(|defect| defect.rule).collect())
}

/// Agent, step and category of each error.
fn errors(sample: &Sample) -> Vec<(String, Option<u32>, String)> {
    let errors = sample.label.iter().flat_map(|label| &label.errors);
    let mode = |mode: &Option<crate::dataset::Mode>| mode.as_ref().map(|mode| mode.code.clone()).unwrap_or_default();
    errors.map(|error| (error.agent.to_string(), error.step, mode(&error.failure_mode))).collect()
}

fn pro(framework: &str, trajectory: &Value, truth: &Value) -> Value {
    json!({"id": "r1", "framework": framework, "benchmark": "b", "task": {"query": "q?", "answer": "4"},
        "trajectory": trajectory, "ground_truth": truth})
}

/// A framework, a trajectory and a ground truth of it, and where the error then is.
type Counted = (&'static str, Value, Value, (&'static str, u32, &'static str));

fn counted() -> Vec<Counted> {
    let user = json!({"kind": "user", "content": "q?"});
    let action =
        |number: u32| json!({"kind": "action", "step_number": number, "reasoning": "think", "observation": "see"});
    let told = |agent: &str, position: u32| json!({"kind": "agent", "agent": agent, "round": 0, "position": position, "output": "x"});
    let chain = |role: &str, agent: &str| json!({"agent_id": agent, "role": role, "output": "x"});
    let video = json!([{"kind": "system", "content": "s"}, user, {"kind": "assistant", "content": "look"},
        {"kind": "tool", "tool_name": "frame_inspect_tool", "content": "a cat", "frames": [{"path": "p"}]},
        {"kind": "assistant", "content": "a dog", "injected": true}]);
    let plan = json!([user, {"kind": "planning", "plan": "p"}, action(1)]);
    let nodes = json!([chain("author", "node_0"), chain("critic", "node_1"), chain("rewriter", "node_1")]);
    let rounds = json!([user, told("orchestrator", 0), told("websurfer", 1)]);
    let stages = json!([user, {"agent_id": "architect", "role": "architect", "stage": 0, "output": "x"}]);
    let acts = json!([user, action(1), action(2)]);
    vec![
        ("debate", debate(), json!({"round": 1, "agents": ["b"], "mode": "C.3"}), ("b", 3, "C.3")),
        ("smolagents", plan, json!({"step": 0, "mode": "PL.1"}), ("agent", 0, "PL.1")),
        ("smolagents", acts.clone(), json!({"step": 2, "agent": null, "mode": "P.1"}), ("agent", 1, "P.1")),
        ("alfagent", acts, json!({"step": 1, "mode": "A.2"}), ("agent", 0, "A.2")),
        ("macnet", nodes, json!({"round": 1, "position": 1, "agent": "node_1", "mode": "C.3"}), ("node_1", 2, "C.3")),
        ("magentic-one", rounds, json!({"step": "0.1", "agent": "websurfer", "mode": "M"}), ("websurfer", 1, "M")),
        ("metagpt", stages, json!({"stage": 0, "agent": "architect", "mode": "M"}), ("architect", 0, "M")),
        (
            "dvd",
            video.clone(),
            json!({"step": 3, "agent": "frame_inspect_agent", "mode": "P.1"}),
            ("frame_inspect_agent", 1, "P.1"),
        ),
        ("eva", video, json!({"step": 4, "mode": "P.1"}), ("agent", 1, "P.1")),
    ]
}

fn debate() -> Value {
    let turn = |agent: &str| json!({"agent_id": agent, "output": format!("{agent} says")});
    json!([{"kind": "user", "content": "q?"}, {"kind": "round", "round": 0, "turns": [turn("a"), turn("b")]},
        {"kind": "round", "round": 1, "turns": [turn("a"), turn("b")]}, {"kind": "final_answer", "content": "5"}])
}

#[test]
fn who_and_when_pro_counts_as_each_framework_does() {
    for (framework, trajectory, truth, (agent, step, mode)) in counted() {
        let plain = pro(framework, &trajectory, &truth);
        let mut encoded = plain.clone();
        for name in ["task", "trajectory", "ground_truth"] {
            encoded[name] = plain[name].to_string().into();
        }
        for row in [plain, encoded] {
            let (samples, rules) = imported(ImportSource::WhowhenPro, "text.jsonl", &row.to_string());
            assert!(rules.is_empty(), "{framework}: {rules:?}");
            let sample = &samples[0];
            assert_eq!(errors(sample), [(agent.to_owned(), Some(step), mode.to_owned())], "{framework}");
            assert_eq!((sample.id.as_str(), sample.outcome), ("whowhen-pro-r1", Verdict::Failure));
            assert_eq!((sample.task.question.as_str(), sample.system.as_str()), ("q?", framework));
            assert!(!serde_json::to_string(&sample.steps).expect("JSON").contains("injected"), "{framework}");
        }
    }
    let lost = pro("debate", &debate(), &json!({"round": 7, "agents": ["b"], "mode": "C.3"}));
    let (samples, rules) = imported(ImportSource::WhowhenPro, "r.json", &lost.to_string());
    assert_eq!((rules, errors(&samples[0])), (vec!["no-step"], vec![("b".to_owned(), None, "C.3".to_owned())]));
    assert_eq!(samples[0].final_answer, "5");
}

fn elephant(step: &Value) -> [(&'static str, Value); 2] {
    let record = |agent: &str| {
        json!({"agent_name": agent, "output": format!("ChatCompletion({agent})"), "step_id": 9,
        "input": {"model": "m", "messages": [{"role": "system", "content": "you are"}, {"role": "user", "content": "go"}]}})
    };
    let metadata = json!({"task_instruction": "q?", "ground_truth": "4", "system_name": "captain", "mistake_agent": "B",
        "mistake_step": step, "agent_system_intro": "two agents"});
    [
        ("captain-runs-x/t1/trace_metadata.json", metadata),
        ("captain-runs-x/t1/step_records.json", json!([record("A"), record("B"), record("A")])),
    ]
}

#[test]
fn trace_elephant_counts_from_one() {
    let (samples, rules) = read(ImportSource::Traceelephant, &elephant(&json!("2")));
    assert!(rules.is_empty(), "{rules:?}");
    let sample = &samples[0];
    assert_eq!((sample.id.as_str(), sample.system.as_str()), ("traceelephant-captain-runs-x-t1", "captain"));
    assert_eq!(errors(sample), [("B".to_owned(), Some(1), String::new())]);
    assert_eq!(sample.input(1).expect("an input")[1].text, "go");
    for (step, expected) in
        [(json!(0), vec!["no-step"]), (json!(4), vec!["step-beyond-end"]), (json!(1), vec!["other-speaker"])]
    {
        assert_eq!(read(ImportSource::Traceelephant, &elephant(&step)).1, expected, "{step}");
    }
}

fn trail(annotations: &str) -> Vec<(&'static str, Value)> {
    let span = |id: &str, name: &str, time: u32, attributes: Value, children: Value| {
        json!({"span_id": id, "span_name": name, "timestamp": format!("2025-01-0{time}"),
            "span_attributes": attributes, "child_spans": children})
    };
    let llm = span(
        "s3",
        "LiteLLMModel.__call__",
        3,
        json!({"openinference.span.kind": "LLM", "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "go",
        "llm.output_messages.0.message.content": "I search"}),
        json!([]),
    );
    let tool = span(
        "s4",
        "search",
        4,
        json!({"openinference.span.kind": "TOOL", "input.value": "w", "output.value": "none"}),
        json!([]),
    );
    let step = span("s2", "Step 1", 2, json!({"openinference.span.kind": "CHAIN"}), json!([tool, llm]));
    let agent = span(
        "s1",
        "CodeAgent.run",
        1,
        json!({"openinference.span.kind": "AGENT", "input.value": "{\"task\": \"q?\"}"}),
        json!([step]),
    );
    vec![
        ("data/GAIA/t1.json", json!({"trace_id": "t1", "spans": [agent]})),
        ("processed_annotations_gaia/t1.json", annotations.into()),
    ]
}

#[test]
fn a_span_of_trail_is_a_step_and_each_error_is_labelled() {
    let said = r#"{"errors": [{"category": "Poor Information  Retrieval", "location": "s4", "evidence": "e", "impact": "LOW"},
        {"category": "Formatting Errors", "location": "s3", "description": "no code", "impact": "HIGH"},],
        "scores": [{"overall": 3}]}"#;
    let (samples, rules) = read(ImportSource::Trail, &trail(said));
    assert!(rules.is_empty(), "{rules:?}");
    let sample = &samples[0];
    let agent = "CodeAgent.run".to_owned();
    assert_eq!(
        errors(sample),
        [
            (agent.clone(), Some(3), "Poor Information Retrieval".to_owned()),
            (agent, Some(2), "Formatting Errors".to_owned())
        ]
    );
    let label = sample.label.as_ref().expect("a label");
    assert_eq!((label.errors[0].reason.as_deref(), label.errors[1].reason.as_deref()), (Some("e"), Some("no code")));
    assert_eq!((label.errors[0].extra["impact"].as_str(), sample.task.question.as_str()), (Some("LOW"), "q?"));
    assert_eq!(sample.steps[2].output.as_ref().expect("said").text, "I search");
    for (said, expected) in [
        (r#"{"errors": [{"category": "x", "location": "s9"}]}"#, vec!["no-step"]),
        (r#"{"errors": []}"#, vec!["no-label"]),
    ] {
        assert_eq!(read(ImportSource::Trail, &trail(said)).1, expected);
    }
    let mut files = trail(r#"{"errors": []}"#);
    files.push(("data/GAIA/t2.json", json!({"spans": []})));
    assert_eq!(read(ImportSource::Trail, &files).1, ["no-label", "missing-file"]);
}

fn code(changes: &[(&str, Value)], steps: usize) -> Vec<(&'static str, Value)> {
    let mut row = json!({"traj_id": "t-1", "agent": "mini-SWE-agent", "model": "m", "task_name": "fix",
        "solved": false, "step_count": 3, "difficulty": "easy", "incorrect_stages": [
            {"stage_id": 2, "incorrect_step_ids": [3, 2], "unuseful_step_ids": [1], "reasoning": "wrong file"}]});
    for (name, value) in changes {
        row[*name] = value.clone();
    }
    let mut files = vec![("bench_manifest.verified.jsonl", Value::from(row.to_string() + "\n"))];
    let steps: Vec<Value> = (1..=steps)
        .map(|step| json!({"step_id": step, "action": format!("do {step}"), "observation": "done"}))
        .collect();
    if !steps.is_empty() {
        files.push(("outputs/t-1/steps.json", steps.into()));
    }
    files
}

#[test]
fn each_incorrect_step_of_code_trace_bench_is_an_error() {
    let (samples, rules) = read(ImportSource::Codetracebench, &code(&[], 3));
    assert!(rules.is_empty(), "{rules:?}");
    let sample = &samples[0];
    let agent = "mini-SWE-agent".to_owned();
    assert_eq!(errors(sample), [(agent.clone(), Some(1), String::new()), (agent, Some(2), String::new())]);
    assert_eq!(sample.steps[1].output.as_ref().expect("said").text, "do 2\n\ndone");
    let listed = json!("[{\"stage_id\": 1, \"incorrect_step_ids\": [2]}]");
    let none: &[(&str, Value)] = &[];
    for (changes, steps, expected, count) in [
        (none, 0, vec!["missing-file"], 2),
        (&[("incorrect_stages", listed)], 3, vec![], 1),
        (&[("incorrect_stages", json!([{"incorrect_step_ids": [9]}]))], 3, vec!["no-label", "step-beyond-end"], 0),
        (&[("solved", json!(true))], 3, vec![], 0),
    ] {
        let (samples, rules) = read(ImportSource::Codetracebench, &code(changes, steps));
        assert_eq!((rules, errors(&samples[0]).len()), (expected, count), "{changes:?}");
    }
    let mut twice = code(&[], 3);
    twice.push(("bench_manifest.verified.parquet", "none".into()));
    twice.push(("outputs/t-1/stage_ranges.json", json!([{"stage": "full"}])));
    assert!(read(ImportSource::Codetracebench, &twice).1.is_empty(), "the lines are enough");
    let solved = &read(ImportSource::Codetracebench, &code(&[("solved", json!(true))], 3)).0[0];
    assert_eq!((solved.kind, solved.extra["incorrect_stages"][0]["stage_id"].as_u64()), (SampleKind::Clean, Some(2)));
}
