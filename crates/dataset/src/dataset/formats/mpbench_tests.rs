//! MP-Bench's files, by hand-made ones in the shape that its script writes.

use std::fs;

use serde_json::{Value, json};

use super::{ImportSource, formats_tests::imported, read_foreign};
use crate::{
    dataset::SampleKind,
    trajectory::{Call, Verdict},
};

fn entry(place: usize, role: &str, marked: &str) -> Value {
    let said = |text: &str| if marked == "1" { format!("{text} {place}") } else { String::new() };
    json!({"content": format!("entry {place}"), "role": role, "step": place.to_string(), "fail_annotation": marked,
        "fail_category": said("category"), "fail_reason": said("reason"), "ideal_action": said("better")})
}

fn file(marks: [&str; 3]) -> Value {
    let roles = ["Orchestrator (thought)", "WebSurfer", "Orchestrator (-> WebSurfer)"];
    let history: Vec<Value> =
        (0..3).zip(roles).zip(marks).map(|((place, role), mark)| entry(place, role, mark)).collect();
    json!({"is_correct": null, "question": "q?", "ground_truth": "4", "history": history, "system_prompt": {}})
}

#[test]
fn each_marked_entry_is_an_error() {
    let (samples, rules) = imported(ImportSource::Mpbench, "7.json", &file(["0", "1", "1"]).to_string());
    assert!(rules.is_empty(), "{rules:?}");
    let sample = &samples[0];
    assert_eq!((sample.id.as_str(), sample.kind, sample.outcome), ("mpbench-7", SampleKind::Failure, Verdict::Failure));
    let label = sample.label.as_ref().expect("a label");
    let errors: Vec<_> = label.errors.iter().map(|error| (error.agent.as_str(), error.step, error.call)).collect();
    assert_eq!(errors, [("WebSurfer", Some(1), Some(0 as Call)), ("Orchestrator", Some(2), Some(1))]);
    assert_eq!((label.definition.as_str(), label.errors[0].reason.as_deref()), ("human", Some("reason 1")));
    assert_eq!(label.errors[1].extra["ideal_action"], json!("better 2"));
    assert_eq!(label.errors[1].extra["fail_category"], json!("category 2"));
    assert_eq!(sample.steps[2].raw_agent.as_deref(), Some("Orchestrator (-> WebSurfer)"));
}

#[test]
fn annotators_of_a_run_share_its_task() {
    let dir = tempfile::tempdir().expect("a directory");
    for (annotator, marks) in [("1", ["0", "1", "0"]), ("2", ["0", "0", "1"]), ("3", ["0", "0", "0"])] {
        let below = dir.path().join("annotated").join(annotator).join("manual");
        fs::create_dir_all(&below).expect("made");
        fs::write(below.join("12.json"), file(marks).to_string()).expect("written");
    }
    let (samples, defects) = read_foreign(ImportSource::Mpbench, dir.path()).expect("read");
    let ids: Vec<&str> = samples.iter().map(|sample| sample.id.as_str()).collect();
    assert_eq!(ids, ["mpbench-1-manual-12", "mpbench-2-manual-12", "mpbench-3-manual-12"]);
    assert!(samples.iter().all(|sample| sample.task.id == "mpbench-manual-12"));
    assert_eq!(samples[1].extra["annotator"], json!("2"));
    assert!(samples[2].label.is_none() && samples[2].outcome == Verdict::Unknown);
    assert_eq!(defects.iter().map(|defect| defect.rule).collect::<Vec<_>>(), ["no-label"]);
}

#[test]
fn what_is_odd_is_reported() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value = file(["0", "1", "0"]);
        change(&mut value);
        imported(ImportSource::Mpbench, "7.json", &json!([value, file(["1", "0", "0"])]).to_string()).1
    };
    let no_change: &dyn Fn(&mut Value) = &|_| {};
    for (change, expected) in [
        (no_change, &[][..]),
        (&|value| value["history"][1]["fail_annotation"] = json!(1), &[]),
        (&|value| value["history"][1]["fail_annotation"] = json!("yes"), &["no-label", "not-binary"]),
        (&|value| value["history"][1]["step"] = json!("4"), &["step-number"]),
        (&|value| value["history"][1]["content"] = json!(null), &["wrong-shape"]),
        (&|value| value["question"] = json!(null), &["missing-field"]),
        (&|value| value["is_correct"] = json!(true), &[]),
        (&|value| *value = json!({"log_source": "x", "annotation": []}), &["wrong-shape"]),
    ] {
        assert_eq!(with(change), expected);
    }
}
