//! Published sets of attribution data, as a user takes them in: `import`, then `lint` and `score` of what came out.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::program::aegis;

/// A set, its files, and a right answer about its one run.
type Published = (&'static str, Vec<(&'static str, Value)>, Value);

fn published() -> Vec<Published> {
    let turn = |agent: &str| json!({"agent_id": agent, "output": format!("{agent} says")});
    let pro = json!({"id": "r1", "framework": "debate", "benchmark": "b",
        "task": json!({"query": "q?", "answer": "4"}).to_string(),
        "trajectory": json!([{"kind": "user", "content": "q?"}, {"kind": "round", "round": 0, "turns": [turn("a"), turn("b")]}]).to_string(),
        "ground_truth": json!({"round": 0, "agents": ["b"], "mode": "C.3"}).to_string(), "extras": "{}"});
    let record =
        |agent: &str| json!({"agent_name": agent, "input": {"messages": []}, "output": format!("{agent} says")});
    let elephant = json!({"task_instruction": "q?", "ground_truth": "4", "mistake_agent": "B", "mistake_step": "2"});
    let span = |id: &str, kind: &str, children: Value| {
        json!({"span_id": id, "span_name": kind, "timestamp": id, "child_spans": children,
            "span_attributes": {"openinference.span.kind": kind, "input.value": "go", "output.value": format!("{kind} says")}})
    };
    let trail = json!({"trace_id": "t1", "spans": [span("1", "AGENT", json!([span("2", "LLM", json!([])), span("3", "TOOL", json!([]))]))]});
    let errors = json!({"errors": [{"category": "Formatting Errors", "location": "2", "evidence": "e", "impact": "LOW"},
        {"category": "Goal Deviation", "location": "3", "evidence": "e", "impact": "LOW"}]});
    let code = json!({"traj_id": "t", "agent": "OpenHands", "model": "m", "task_name": "fix", "solved": false, "step_count": 2,
        "incorrect_stages": [{"stage_id": 1, "incorrect_step_ids": [2], "unuseful_step_ids": []}]});
    let step = |number: u32| json!({"step_id": number, "action": format!("do {number}"), "observation": "done"});
    vec![
        ("whowhen-pro", vec![("data/text.jsonl", pro)], json!({"agent": "b", "step": 1, "failure_mode": "C.3"})),
        (
            "traceelephant",
            vec![
                ("captain-runs-a/t/trace_metadata.json", elephant),
                ("captain-runs-a/t/step_records.json", json!([record("A"), record("B")])),
            ],
            json!({"agent": "B", "step": 1}),
        ),
        (
            "trail",
            vec![("data/GAIA/t1.json", trail), ("processed_annotations_gaia/t1.json", errors)],
            json!({"set": true, "predictions": [{"agent": "AGENT", "step": 1, "failure_mode": "Formatting Errors"},
                {"agent": "AGENT", "step": 2, "failure_mode": "Goal Deviation"}]}),
        ),
        (
            "codetracebench",
            vec![("bench_manifest.full.jsonl", code), ("out/t/steps.json", json!([step(1), step(2)]))],
            json!({"agent": "OpenHands", "step": 1}),
        ),
    ]
}

async fn output_of(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let done = aegis(dir).args(arguments).output().await.expect("it ran");
    (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
}

#[tokio::test]
async fn published_sets_are_imported_linted_and_scored() {
    for (from, files, mut answer) in published() {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, value) in files {
            let file = dir.path().join("set").join(name);
            fs::create_dir_all(file.parent().expect("a directory")).expect("made");
            fs::write(file, value.to_string() + "\n").expect("written");
        }
        let (code, talk) = output_of(dir.path(), &["import", "--from", from, "set", "--out", "in"]).await;
        assert!(code == Some(0) && talk.contains("1 samples from 1 files, 0 defects"), "{from}: {talk}");
        let row = fs::read_to_string(dir.path().join("in/dataset.jsonl")).expect("a dataset");
        let row: Value = serde_json::from_str(&row).expect("one line");
        assert_eq!(row["extra"]["format"], json!(from));

        let (code, talk) = output_of(dir.path(), &["lint", "in"]).await;
        assert!(matches!(code, Some(0 | 1)), "{from}: {talk}");

        answer["id"] = row["id"].clone();
        fs::write(dir.path().join("said.jsonl"), answer.to_string()).expect("written");
        let (code, talk) = output_of(dir.path(), &["score", "said.jsonl", "--gold", "in", "--format", "json"]).await;
        assert_eq!(code, Some(0), "{from}: {talk}");
        let line = talk.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{from}: {talk}"));
        let scored: Value = serde_json::from_str(line).expect("JSON");
        let right = |what: &str| scored["strict"]["accuracy"][what]["share"].as_f64();
        assert_eq!((right("agent"), right("step")), (Some(1.0), Some(1.0)), "{from}: {talk}");
        if let Some(mode) = scored["strict"]["mode"]["micro"]["f1"].as_f64() {
            assert!((mode - 1.0).abs() < 1e-9, "{from}: {talk}");
        }
    }
}
