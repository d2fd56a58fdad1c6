//! `TraceElephant` (ACL 2026): `SYSTEM-runs-…/TASK/{trace_metadata.json,step_records.json}`, one record a model call with its
//! whole request. Its labels count steps from 1.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    foreign::{Defects, named, spoken_step, text_field, unknown_fields},
    published::{PublishedError, PublishedRun, as_text, messages, number_or_text, read_companion},
};
use crate::{
    dataset::{Sample, SampleStep, Task},
    trajectory::Verdict,
};

/// The name in `extra.format`.
const NAME: &str = "traceelephant";
/// The file that a run is read from.
pub(super) const METADATA: &str = "trace_metadata.json";
/// The file of its steps.
const RECORDS: &str = "step_records.json";
/// Fields of the metadata that have a place in a sample.
const FIELDS: &[&str] =
    &["task_instruction", "ground_truth", "mistake_agent", "mistake_step", "mistake_reason", "system_name"];
/// Fields that are kept beside them.
const KEPT: &[&str] = &["tests_status", "agent_system_intro"];

/// Reads the metadata of a run, and the records beside them.
pub(super) fn read(value: &Value, path: &Path, defects: &mut Defects) -> Option<Sample> {
    let fields = value.as_object().filter(|fields| fields.contains_key("mistake_agent"));
    let Some(fields) = fields else {
        defects.add("wrong-shape", "no object with `mistake_agent`");
        return None;
    };
    let records = read_companion(&path.with_file_name(RECORDS), defects)?;
    let Some(records) = records.as_array() else {
        defects.add("wrong-shape", format!("`{RECORDS}` is no list"));
        return None;
    };
    let mut steps = Vec::with_capacity(records.len());
    for (place, record) in records.iter().enumerate() {
        let Some(step) = record_step(record, defects) else {
            defects.add("wrong-shape", format!("{RECORDS}[{place}] has no `agent_name` and `output`"));
            return None;
        };
        steps.push(step);
    }
    let error = error(fields, steps.len(), defects);
    let mut names = path.ancestors().skip(1).filter_map(Path::file_name).map(|dir| dir.to_string_lossy().into_owned());
    let task = names.next().unwrap_or_default();
    let runs = names.next().filter(|dir| dir.contains("-runs-"));
    let id = runs.map_or_else(|| format!("{NAME}-{task}"), |runs| format!("{NAME}-{runs}-{task}"));
    let known: Vec<&str> = FIELDS.iter().chain(KEPT).copied().collect();
    let mut extra = unknown_fields(fields, &known, defects);
    extra.extend(KEPT.iter().filter_map(|name| Some(((*name).to_owned(), fields.get(*name)?.clone()))));
    let run = PublishedRun {
        id,
        format: NAME,
        system: fields.get("system_name").map(as_text).unwrap_or_default(),
        task: Task {
            id: format!("{NAME}-{task}"),
            question: text_field(fields, "task_instruction", defects),
            answer: fields.get("ground_truth").map(as_text).unwrap_or_default(),
            ..Task::default()
        },
        outcome: Verdict::Failure,
        final_answer: String::new(),
        steps,
        extra,
    };
    Some(run.sample(error.into_iter().collect(), "human", defects))
}

/// A record: who was asked, what it was given and what it said. Outputs are mostly the text of a Python object, and stay so.
fn record_step(record: &Value, defects: &mut Defects) -> Option<SampleStep> {
    let fields = record.as_object()?;
    let (raw, output) = (fields.get("agent_name")?.as_str()?, fields.get("output")?);
    let (agent, raw_agent) = named(raw, raw, defects);
    let mut step = spoken_step(agent, raw_agent, "assistant", as_text(output));
    if let Some(input) = fields.get("input").and_then(Value::as_object) {
        step.input = input.get("messages").and_then(messages);
        step.model = input.get("model").and_then(Value::as_str).map(str::to_owned);
    }
    let rest = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "agent_name" | "input" | "output"));
    step.extra = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
    Some(step)
}

fn error(fields: &Map<String, Value>, count: usize, defects: &mut Defects) -> Option<PublishedError> {
    let agent = fields.get("mistake_agent").and_then(Value::as_str).filter(|agent| !agent.trim().is_empty())?;
    let told = fields.get("mistake_step");
    let step = number_or_text(told).and_then(|step| usize::try_from(step).ok()?.checked_sub(1));
    match step {
        None => defects
            .add("no-step", format!("`mistake_step` is {}, and steps count from 1", told.unwrap_or(&Value::Null))),
        Some(step) if step >= count => defects.add("step-beyond-end", format!("step {} of {count}", step + 1)),
        Some(_) => {}
    }
    Some(PublishedError {
        agent: Some(agent.to_owned()),
        step: step.filter(|step| *step < count),
        mode: None,
        reason: fields.get("mistake_reason").map(as_text).unwrap_or_default(),
        extra: Map::new(),
    })
}
