//! MP-Bench (In et al., 2026), as its script writes it: `annotated/ANNOTATOR/SPLIT/N.json`, a Who&When-like `history` in
//! which an annotator marks each entry that failed, with category, reason and the ideal action. Three annotators mark each
//! run, and disagree: each file is a sample, and those of a run share its task.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    foreign::{Defects, named, number, spoken_step, text_field, unknown_fields},
    history::{SpokenName, spoken},
};
use crate::{
    dataset::{FORMAT, Sample, SampleKind, SampleStep, Task, Truth},
    equality::EqualitySetting,
    trajectory::{StepIndex, Verdict},
};

/// The name in `extra.format`.
const NAME: &str = "mpbench";
/// Fields of a file.
const FIELDS: &[&str] = &["is_correct", "question", "ground_truth", "history", "system_prompt"];
/// Fields of an entry.
const ENTRY: &[&str] = &["content", "role", "step", "fail_annotation", "fail_category", "fail_reason", "ideal_action"];
/// What is kept of a mark beside its reason.
const KEPT: &[&str] = &["fail_category", "ideal_action"];

/// Reads a file. `path` is where it lies: its directories are the split and the annotator.
pub(super) fn read(value: &Value, stem: &str, path: &Path, defects: &mut Defects) -> Option<Sample> {
    let (Some(fields), Some(entries)) = (value.as_object(), value.get("history").and_then(Value::as_array)) else {
        defects.add(
            "wrong-shape",
            "`history` is no list; raw files with `log_source` are made whole by MP-Bench's own script",
        );
        return None;
    };
    let (mut steps, mut marks) = (Vec::with_capacity(entries.len()), Vec::new());
    for (place, entry) in entries.iter().enumerate() {
        let Some((step, mark)) = read_entry(place, entry, defects) else {
            defects.add("wrong-shape", format!("history[{place}] has no `content`, `role` and `fail_annotation`"));
            return None;
        };
        marks.extend(mark.map(|mark| (place, mark)));
        steps.push(step);
    }
    number(&mut steps);
    let outcome = match fields.get("is_correct").and_then(Value::as_bool) {
        Some(true) => Verdict::Success,
        None if marks.is_empty() => Verdict::Unknown,
        _ => Verdict::Failure,
    };
    let label = if outcome == Verdict::Success { None } else { label(&marks, &steps) };
    if label.is_none() && outcome != Verdict::Success {
        defects.add("no-label", "no entry is marked");
    }
    let place = AnnotatedPlace::from_path(path, stem);
    let mut extra = Map::from_iter([("format".to_owned(), Value::from(NAME))]);
    extra.extend(place.annotator.clone().map(|annotator| ("annotator".to_owned(), annotator.into())));
    extra.extend(
        ["is_correct", "system_prompt"]
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), fields.get(*name)?.clone()))),
    );
    extra.extend(unknown_fields(fields, FIELDS, defects));
    Some(Sample {
        format: FORMAT,
        id: place.id(),
        kind: if outcome == Verdict::Success { SampleKind::Clean } else { SampleKind::Failure },
        system: String::new(),
        backend: String::new(),
        task: Task {
            id: format!("{NAME}-{}", place.run),
            question: text_field(fields, "question", defects),
            answer: text_field(fields, "ground_truth", defects),
            ..Task::default()
        },
        split: None,
        outcome,
        outcome_evidence: String::new(),
        final_answer: String::new(),
        tools: Vec::new(),
        steps,
        label,
        equality: EqualitySetting::default(),
        clean_twin: None,
        extra,
    })
}

/// Where a file lies, which says whose it is and of which run.
struct AnnotatedPlace {
    annotator: Option<String>,
    run: String,
}

impl AnnotatedPlace {
    fn from_path(path: &Path, stem: &str) -> Self {
        let mut dirs =
            path.ancestors().skip(1).filter_map(Path::file_name).map(|dir| dir.to_string_lossy().into_owned());
        let split = dirs.next().filter(|dir| matches!(dir.as_str(), "manual" | "automatic"));
        let annotator = dirs.next().filter(|_| split.is_some());
        Self { annotator, run: split.map_or_else(|| stem.to_owned(), |split| format!("{split}-{stem}")) }
    }

    fn id(&self) -> String {
        match &self.annotator {
            Some(annotator) => format!("{NAME}-{annotator}-{}", self.run),
            None => format!("{NAME}-{}", self.run),
        }
    }
}

/// An entry, and what its annotator says of it where it failed.
fn read_entry<'a>(
    place: usize,
    entry: &'a Value,
    defects: &mut Defects,
) -> Option<(SampleStep, Option<&'a Map<String, Value>>)> {
    let fields = entry.as_object()?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let (content, raw, marked) = (text("content")?, text("role")?, fields.get("fail_annotation")?);
    let (agent, raw_agent) = named(raw, raw.split(" (").next().unwrap_or(raw), defects);
    let mut step = spoken_step(agent, raw_agent, "other", content.to_owned());
    let own = fields.get("step").unwrap_or(&Value::Null);
    let own_number = own.as_u64().or_else(|| own.as_str()?.trim().parse().ok());
    if own_number != u64::try_from(place).ok() {
        defects.add("step-number", format!("history[{place}] has step {own}"));
        step.extra.insert("step".to_owned(), own.clone());
    }
    step.extra.extend(unknown_fields(fields, ENTRY, defects));
    let mark = match marked.as_u64().or_else(|| marked.as_str()?.trim().parse().ok()) {
        Some(0) => None,
        Some(1) => Some(fields),
        _ => {
            defects.add("not-binary", format!("history[{place}] has `fail_annotation` {marked}"));
            None
        }
    };
    Some((step, mark))
}

/// Every entry that is marked is an error; `None` where none is.
fn label(marks: &[(usize, &Map<String, Value>)], steps: &[SampleStep]) -> Option<Truth> {
    let errors = marks.iter().filter_map(|(place, fields)| {
        let step = steps.get(*place)?;
        let reason = fields.get("fail_reason").and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = SpokenName { agent: step.agent.clone(), raw: step.raw_agent.clone() };
        let at = StepIndex::try_from(*place).ok();
        let mut truth = spoken(name, at, Some(step.call), reason, "human");
        let kept = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), fields.get(*name)?.clone())));
        truth.errors.iter_mut().for_each(|error| error.extra.extend(kept.clone()));
        Some(truth)
    });
    errors.reduce(|mut all, one| {
        all.errors.extend(one.errors);
        all
    })
}
