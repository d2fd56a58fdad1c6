//! What real programs and servers said is read whole, but for what a list explains.
//!
//! `AEGIS_CAPTURES` names a directory of captures, files of JSON lines `{"method", "path", "body", "resp": {"status", "body"}}`, which
//! are looked at too (`scripts/slow/accounts DIR`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use aegis::{
    foreign::{self, ForeignOptions},
    recording,
    surface::{
        self,
        account::{self, ReadState},
        door,
    },
};
use serde_json::Value;

/// Pieces that stand in no view, and why that is right: where the piece was, what its place begins with, the reason.
const EXPLAINED: &[(&str, &str, &str)] = &[
    (
        "log-cd88a11f541d3a8c54f34ba0ee9d8b88",
        "",
        "an export of Langfuse as a plain log: `--from langfuse` reads it whole",
    ),
    ("log-trajectory.json", "", "a trajectory of ATIF as a plain log: `--from atif` reads it whole"),
];

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")
}

/// Files below a directory, in order.
fn below(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut dirs) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { dirs.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// What of a recording was not read, a line a piece.
fn not_read(run: &Path) -> Vec<String> {
    let recording = recording::read(run).expect("a recording");
    let steps = recording.trajectory.steps.iter();
    let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let lines = steps.flat_map(|step| account::of_step(step).lines().into_iter().map(move |line| (step.step, line)));
    lines.map(|(step, line)| format!("{name} step {step}: {line}")).collect()
}

fn is_explained(line: &str) -> bool {
    EXPLAINED.iter().any(|(run, place, _)| line.starts_with(run) && line.contains(&format!("`{place}")))
}

fn assert_explained(lines: &[String]) {
    let unexplained: Vec<_> = lines.iter().filter(|line| !is_explained(line)).collect();
    assert!(unexplained.is_empty(), "{} pieces stand in no view and in no list: {unexplained:#?}", unexplained.len());
}

#[test]
fn recordings_among_the_fixtures_are_read_whole() {
    let logs = below(&here().join("fixtures")).into_iter().filter(|path| path.ends_with("log.jsonl"));
    let runs: Vec<PathBuf> = logs.filter_map(|log| Some(log.parent()?.to_owned())).collect();
    assert!(runs.len() >= 3, "{runs:?}");
    let lines: Vec<String> = runs.iter().flat_map(|run| not_read(run)).collect();
    assert_explained(&lines);
}

#[test]
fn traces_of_real_tracers_are_read_whole() {
    let logs = tempfile::tempdir().expect("a directory");
    let mut lines = Vec::new();
    for file in below(&here().join("foreign")) {
        for format in foreign::ALL {
            let logs =
                logs.path().join(format!("{}-{}", format.name(), file.file_name().unwrap_or_default().display()));
            let read = foreign::import(*format, std::slice::from_ref(&file), &logs, &ForeignOptions::default());
            for run in read.map(|import| import.runs).unwrap_or_default() {
                lines.extend(not_read(&logs.join(run.run.as_str())));
            }
        }
    }
    assert_explained(&lines);
}

/// What of a captured call was not read.
fn of_capture(line: &str) -> Vec<String> {
    let call: Value = serde_json::from_str(line).expect("a line of JSON");
    let path = call["path"].as_str().unwrap_or_default();
    let Some(surface) = surface::for_path(call["method"].as_str().unwrap_or("POST"), path) else {
        return vec![format!("{path}: no surface reads this call")];
    };
    let said = |side: &str, state: Result<Vec<surface::Unplaced>, surface::SurfaceError>| match state {
        Ok(unplaced) => {
            unplaced.iter().map(|piece| format!("{side} {}: {piece}", ReadState::Partly(Vec::new()).words())).collect()
        }
        Err(error) => vec![format!("{side} {}: {error}", ReadState::Unread(String::new()).words())],
    };
    let bytes = |body: &Value| serde_json::to_vec(body).expect("JSON");
    let request = door::request_reading(surface, &bytes(&call["body"])).map(|reading| reading.unplaced);
    let answered = call["resp"]["status"].as_u64().is_some_and(|status| status < 400);
    let reply =
        answered.then(|| door::reading(surface, &bytes(&call["resp"]["body"]), false).map(|reading| reading.unplaced));
    let lines: [Vec<String>; 2] = [said("request", request), reply.map_or_else(Vec::new, |reply| said("reply", reply))];
    lines.concat().into_iter().map(|line| format!("{path}: {line}")).collect()
}

#[test]
fn captures_are_read_whole() {
    let Some(dir) = std::env::var_os("AEGIS_CAPTURES") else { return };
    let (mut calls, mut lines) = (0, Vec::new());
    for file in below(Path::new(&dir)).into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl")) {
        for line in fs::read_to_string(&file).expect("text").lines().filter(|line| !line.trim().is_empty()) {
            calls += 1;
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            lines.extend(of_capture(line).into_iter().map(|said| format!("{name} {said}")));
        }
    }
    println!("{calls} calls, {} pieces that stand in no view", lines.len());
    assert!(calls > 0, "no capture below {}", dir.display());
    assert_explained(&lines);
}
