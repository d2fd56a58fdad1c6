//! `CodeTraceBench` (NJU-LINK, 2026): `bench_manifest.*.{jsonl,parquet}`, a row a run of one coding agent, with the steps that
//! are wrong by stage. The steps themselves are read from `TRAJ_ID/steps.json`, as `CodeTracer` writes them from the set's
//! archives, below the manifest's directory. Steps count from 1.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    foreign::{Defects, named, spoken_step, unknown_fields},
    published::{PublishedError, PublishedRun, as_text, decoded, number_or_text, read_companion, step_count},
};
use crate::{
    dataset::{Sample, SampleStep, Task},
    trajectory::Verdict,
};

/// The name in `extra.format`.
const NAME: &str = "codetracebench";
/// The file of a run's steps.
const STEPS: &str = "steps.json";
/// Fields that have a place in a sample.
const FIELDS: &[&str] = &["traj_id", "agent", "model", "solved", "step_count", "task_name", "incorrect_stages"];
/// Fields that are kept as they are.
const KEPT: &[&str] = &[
    "annotation_relpath",
    "artifact_path",
    "category",
    "difficulty",
    "incorrect_error_stage_count",
    "source_relpath",
    "stages",
    "tags",
];
/// Parts of a step in the order in which they are told.
const TOLD: &[&str] = &["thinking", "action", "observation"];

/// Whether a file of a directory is a manifest. Each is published as lines and as Parquet: the lines are enough.
pub(super) fn is_manifest(path: &Path) -> bool {
    let is_named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("bench_manifest"));
    is_named && (path.extension().is_none_or(|kind| kind != "parquet") || !path.with_extension("jsonl").is_file())
}

/// Reads a row of the manifest.
pub(super) fn read(value: &Value, path: &Path, defects: &mut Defects) -> Option<Sample> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let stages = value.get("incorrect_stages").map(decoded);
    let (Some(fields), Some(id), Some(raw), Some(stages)) =
        (value.as_object(), text("traj_id"), text("agent"), stages.as_ref().and_then(Value::as_array))
    else {
        defects.add("wrong-shape", "no texts `traj_id` and `agent`, or `incorrect_stages` is no list");
        return None;
    };
    let count = step_count(fields.get("step_count"));
    let (steps, numbers) = match steps_file(path, id) {
        Some(file) => read_steps(&file, raw, defects)?,
        None => unseen(count, raw, id, defects)?,
    };
    if count.is_some_and(|count| count != steps.len()) {
        let found = format!(
            "{} steps in `{STEPS}`, {} by `step_count`: labels would name other steps",
            steps.len(),
            count.unwrap_or(0)
        );
        defects.add("wrong-shape", found);
        return None;
    }
    let outcome = match fields.get("solved").and_then(Value::as_bool) {
        Some(true) => Verdict::Success,
        Some(false) => Verdict::Failure,
        None => Verdict::Unknown,
    };
    let errors = errors(stages, &numbers, defects);
    let known: Vec<&str> = FIELDS.iter().chain(KEPT).copied().collect();
    let mut extra = unknown_fields(fields, &known, defects);
    extra.extend(KEPT.iter().filter_map(|name| Some(((*name).to_owned(), decoded(fields.get(*name)?)))));
    // A run that solved its task may have wrong steps all the same: they are kept, and are no label.
    extra.insert("incorrect_stages".to_owned(), Value::Array(stages.clone()));
    let model = text("model").map(str::to_owned);
    let steps = steps.into_iter().map(|step| SampleStep { model: model.clone(), ..step }).collect();
    let task = text("task_name").unwrap_or(id).to_owned();
    let task = Task { id: format!("{NAME}-{task}"), question: question(path, id), ..Task::default() };
    let run = PublishedRun {
        id: format!("{NAME}-{id}"),
        format: NAME,
        system: raw.to_owned(),
        task,
        outcome,
        final_answer: String::new(),
        steps,
        extra,
    };
    Some(run.sample(errors, "human", defects))
}

/// Where a run's steps lie: `TRAJ_ID/steps.json` in the manifest's directory, or in one directly below it.
fn steps_file(path: &Path, id: &str) -> Option<PathBuf> {
    let is_name = Path::new(id).components().count() == 1 && !id.contains("..");
    let dir = path.parent().filter(|_| is_name)?;
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let mut dirs: Vec<PathBuf> = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    dirs.sort();
    dirs.insert(0, dir.to_owned());
    dirs.into_iter().map(|dir| dir.join(id).join(STEPS)).find(|file| file.is_file())
}

/// The task in `task.md` beside the steps.
fn question(path: &Path, id: &str) -> String {
    let file = steps_file(path, id).map(|file| file.with_file_name("task.md"));
    file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default()
}

/// Steps, and the numbers that labels know them by.
type NumberedSteps = (Vec<SampleStep>, Vec<u64>);

fn read_steps(file: &Path, raw: &str, defects: &mut Defects) -> Option<NumberedSteps> {
    let value = read_companion(file, defects)?;
    let Some(entries) = value.as_array() else {
        defects.add("wrong-shape", format!("`{STEPS}` is no list"));
        return None;
    };
    let (agent, raw_agent) = named(raw, raw, defects);
    let mut numbered = (Vec::with_capacity(entries.len()), Vec::with_capacity(entries.len()));
    for (place, entry) in entries.iter().enumerate() {
        let (Some(fields), Some(number)) = (entry.as_object(), number_or_text(entry.get("step_id"))) else {
            defects.add("wrong-shape", format!("{STEPS}[{place}] has no `step_id`"));
            return None;
        };
        let parts = TOLD.iter().map(|name| part(fields, name)).filter(|text| !text.is_empty());
        let text = parts.collect::<Vec<_>>().join("\n\n");
        let mut step = spoken_step(agent.clone(), raw_agent.clone(), "assistant", text);
        let rest = ["parallel_group", "tool_type"].iter().filter_map(|name| Some((*name, fields.get(*name)?)));
        step.extra = rest.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        numbered.0.push(step);
        numbered.1.push(number);
    }
    Some(numbered)
}

/// A part of a step, or the piece of the raw trajectory that it refers to.
fn part(fields: &Map<String, Value>, name: &str) -> String {
    let own = fields.get(name).map(as_text).unwrap_or_default();
    if !own.is_empty() {
        return own;
    }
    let referred = fields.get(&format!("{name}_ref")).and_then(|piece| piece.get("content"));
    referred.map(as_text).unwrap_or_default()
}

/// As many steps as the row says, of which nobody knows what they say: labels can be scored, and nothing can be asked.
fn unseen(count: Option<usize>, raw: &str, id: &str, defects: &mut Defects) -> Option<NumberedSteps> {
    let Some(count) = count else {
        defects.add("wrong-shape", format!("no `step_count`, and no `{id}/{STEPS}` below the manifest"));
        return None;
    };
    defects.add("missing-file", format!("no `{id}/{STEPS}` below the manifest: the steps have no text"));
    let (agent, raw_agent) = named(raw, raw, defects);
    let mut step = spoken_step(agent, raw_agent, "assistant", String::new());
    step.output = None;
    Some((vec![step; count], (1..=count as u64).collect()))
}

/// Every wrong step of every stage, each once.
fn errors(stages: &[Value], numbers: &[u64], defects: &mut Defects) -> Vec<PublishedError> {
    let mut errors: Vec<PublishedError> = Vec::new();
    for stage in stages {
        let ids = stage.get("incorrect_step_ids").and_then(Value::as_array);
        for id in ids.into_iter().flatten() {
            let step = number_or_text(Some(id)).and_then(|id| numbers.iter().position(|number| *number == id));
            if step.is_none() {
                defects.add("step-beyond-end", format!("no step {id}"));
            }
            if step.is_none() || errors.iter().any(|error| error.step == step) {
                continue;
            }
            let extra = stage.get("stage_id").map(|stage| ("stage_id".to_owned(), stage.clone()));
            let reason = stage.get("reasoning").map(as_text).unwrap_or_default();
            errors.push(PublishedError { agent: None, step, mode: None, reason, extra: extra.into_iter().collect() });
        }
    }
    errors.sort_by_key(|error| error.step);
    errors
}
