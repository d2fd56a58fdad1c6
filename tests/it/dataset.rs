//! From real runs to a dataset: what the demo recorded becomes samples that lint finds nothing in.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use aegis::{
    dataset::{About, Dataset, Kind, Sample, Splits, Task, Writer, lint, statistics},
    recording,
    trajectory::{Evidence, LabelStatus, Side, Tally, Verdict},
};
use serde_json::Value;

fn aegis(arguments: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aegis"));
    command.args(arguments).current_dir(dir).output().expect("runs")
}

/// The cells of a demo's report: run → class, and everything that the report says of it.
fn cells(dir: &Path) -> BTreeMap<String, Value> {
    let report = std::fs::read(dir.join("demo-run/report.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let cells = report["cells"].as_array().expect("cells").iter();
    cells.map(|cell| (cell["run"].as_str().expect("a run").to_owned(), cell.clone())).collect()
}

fn about(cell: &Value, kind: Kind, twin: Option<String>, question: &str) -> About {
    let text = |key: &str| cell[key].as_str().unwrap_or_default().to_owned();
    let task = Task { id: text("task"), question: question.to_owned(), answer: text("expected"), ..Task::default() };
    let split = Some(Splits::default().of(&task));
    About { kind, system: text("system"), task, final_answer: text("answer"), split, clean_twin: twin }
}

/// Builds samples from the demo's recordings, as a campaign does.
fn samples(dir: &Path) -> Vec<Sample> {
    let tasks = include_str!("../../examples/tasks.jsonl").lines().map(|line| {
        let task: Value = serde_json::from_str(line).expect("a task");
        (task["id"].as_str().expect("an id").to_owned(), task["question"].as_str().expect("text").to_owned())
    });
    let tasks: BTreeMap<String, String> = tasks.collect();
    let cells = cells(dir);
    let logs = dir.join("demo-run/logs");
    let runs: Vec<PathBuf> =
        std::fs::read_dir(&logs).expect("logs").map(|entry| entry.expect("an entry").path()).collect();
    let recordings: Vec<_> = runs.iter().map(|run| recording::read(run).expect("reads")).collect();
    let mut built = BTreeMap::new();
    for mut recording in recordings.iter().cloned() {
        let run = recording.manifest.run.to_string();
        let Some(cell) = cells.get(&run) else { continue };
        let question = &tasks[cell["task"].as_str().expect("a task")];
        let kind = match cell["class"].as_str() {
            Some("verified") => Kind::Failure,
            Some("benign") => Kind::Benign,
            _ => continue,
        };
        // The twin is the run without a plan that begins as this one does and went well.
        let opening = recording.trajectory.steps[0].request.clone();
        let plain = |twin: &&recording::Recording| {
            let outcome = twin.trajectory.outcome.verdict == Verdict::Success;
            twin.manifest.plan.is_none() && outcome && twin.trajectory.steps[0].request == opening
        };
        let twin = recordings.iter().find(plain).expect("a twin");
        let twin_id = twin.manifest.run.to_string();
        let mut clean = about(cell, Kind::Clean, None, question);
        clean.final_answer.clone_from(&clean.task.answer);
        built.insert(twin_id.clone(), Sample::of(twin, clean).expect("builds"));
        let label = recording.label.as_mut().expect("a label");
        let verified = label.status == LabelStatus::Verified;
        label.evidence =
            verified.then(|| Evidence { clean: Tally::of(1, 1), controls: Tally::of(1, 1), ..Evidence::default() });
        built.insert(run, Sample::of(&recording, about(cell, kind, Some(twin_id), question)).expect("builds"));
    }
    built.into_values().collect()
}

#[test]
fn recorded_runs_become_a_dataset_that_lint_passes() {
    let dir = tempfile::tempdir().expect("a directory");
    let demo = aegis(&["demo", "-q"], dir.path());
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));
    let samples = samples(dir.path());
    let failures = samples.iter().filter(|sample| sample.kind == Kind::Failure).count();
    assert!(failures >= 10 && samples.iter().any(|sample| sample.kind == Kind::Benign), "{failures} failures");
    for sample in samples.iter().filter(|sample| sample.kind == Kind::Failure) {
        let truth = sample.label.as_ref().expect("a label");
        for error in &truth.errors {
            let change = truth.changes.iter().find(|change| Some(change.step) == error.step).expect("a change");
            assert_ne!(change.before, change.after);
            if change.side == Side::Response {
                let step = &sample.steps[change.step as usize];
                assert_eq!(step.output.as_ref(), change.after.first(), "the step shows what was delivered");
            }
        }
    }
    let set = dir.path().join("set");
    let mut writer = Writer::create(&set).expect("creates");
    for sample in &samples {
        writer.push(sample).expect("writes");
    }
    writer.finish().expect("finishes");

    let linted = aegis(&["lint", "set"], dir.path());
    let said = String::from_utf8_lossy(&linted.stdout).into_owned() + &String::from_utf8_lossy(&linted.stderr);
    assert_eq!(linted.status.code(), Some(0), "{said}");
    assert!(said.contains("RESULT  ok") && said.contains("nothing found"), "{said}");

    let dataset = Dataset::open(&set).expect("a dataset");
    assert_eq!(lint::lint(&dataset).expect("reads").samples, samples.len() as u64);
    let counted = statistics::statistics(&dataset).expect("reads");
    assert_eq!((counted.twins.paired, counted.twins.unpaired), (failures as u64, 0));
    assert!(counted.probe.iter().any(|probed| probed.manipulator == "corrupt_number"));
    both_verbs_answer(dir.path(), failures);
}

fn both_verbs_answer(dir: &Path, failures: usize) {
    let counted = aegis(&["stats", "set", "--html", "page.html", "--format", "json"], dir);
    let data: Value = serde_json::from_slice(&counted.stdout).expect("JSON");
    assert_eq!(data["kinds"]["failure"], failures);
    assert!(std::fs::read_to_string(dir.join("page.html")).expect("written").contains("<svg"));

    let path = dir.join("set/dataset.jsonl");
    let text = std::fs::read_to_string(&path).expect("there");
    std::fs::write(&path, text.replacen("\"step\":0,", "\"step\":1,", 1)).expect("writes");
    let linted = aegis(&["lint", "set", "--format", "json"], dir);
    assert_eq!(linted.status.code(), Some(1));
    let data: Value = serde_json::from_slice(&linted.stdout).expect("JSON");
    assert!(data["rules"]["step-base"] == 1 && data["rules"]["manifest-differs"] == 1, "{data}");
    assert_eq!(data["exit"], 1);

    let missing = aegis(&["lint", "nowhere"], dir);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("is no dataset"));
}
