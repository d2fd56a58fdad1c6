//! The files of a label: `label.json`, written here and nowhere else, and `label.former.json`, the labels that others took the
//! place of.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LabelChange, NoLabel, PLANTED, Ruling, after_finding, made, reference};
use crate::{
    recording::{self, Recording, RecordingError, RunFile},
    trajectory::{Evidence, Label, LabelContent, LabelStatus, Standing},
};

/// The labels that others took the place of, the oldest first.
const FORMER: &str = "label.former.json";

/// One of them. Versions before had no other fields.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
struct FormerLabel {
    /// Why it was replaced.
    #[schemars(with = "String")]
    why: Value,
    /// What it said.
    #[schemars(with = "LabelContent")]
    label: Value,
}

/// The schema of `label.former.json`.
pub fn former_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.root_schema_for::<Vec<FormerLabel>>()
}

/// Rules on a run that has ended, and writes `label.json`. A run that earns no label gets no file, and one that it had is
/// withdrawn. One that says the same with what was executed for it stays, however often the run is ruled on; a finding makes way
/// for what was planted, and is kept in `label.former.json`. `reference` is the run whose beginning was given again, if one was, its requests aside: what overlapped there
/// is noted in `identity.json`, so that whoever looks at the run later comes to the same.
///
/// # Errors
/// The run cannot be read, or a file cannot be written. [`NoLabel`] is no error of this kind: it says why a run is no evidence
/// of anything.
pub fn settle(run_dir: &Path, reference: Option<&Recording>) -> Result<Result<Label, NoLabel>, RecordingError> {
    settle_recording(&mut recording::read(run_dir)?, run_dir, reference)
}

/// The same for a run that was read already; what overlapped in `reference` is noted there too.
///
/// # Errors
/// As [`settle`].
pub fn settle_recording(
    recording: &mut Recording,
    run_dir: &Path,
    reference: Option<&Recording>,
) -> Result<Result<Label, NoLabel>, RecordingError> {
    let hidden = reference.map(|reference| reference::overlapped(recording, reference)).unwrap_or_default();
    if !hidden.is_empty() {
        recording.late.retain(|late| !late.overlapping_in_reference);
        recording.late.extend(hidden);
        recording::write_identity(run_dir, &recording.late)?;
    }
    // What somebody edited is no label, and makes way.
    let former = recording.label.take().filter(|_| !recording.edited.contains(&recording::LABEL_FILE));
    let ruled =
        Ruling::new(recording).after(reference).label().map(|label| made::with_modes_of(label, former.as_ref()));
    match (&ruled, former) {
        (Ok(label), Some(former)) if made::is_proof_of(&former, label) => {
            recording.label = Some(former.clone());
            return Ok(Ok(former));
        }
        (Ok(label), former) => {
            if former.as_ref().is_some_and(|former| former.definition != PLANTED) {
                remember(former, "the run holds what was planted", run_dir)?;
            }
            write(run_dir, label)?;
            recording.label = Some(label.clone());
            recording.edited.retain(|name| *name != recording::LABEL_FILE);
        }
        (Err(_), Some(former)) if former.definition == PLANTED && former.status != LabelStatus::Withdrawn => {
            write(run_dir, &made::withdrawn(former))?;
        }
        (Err(_), former) => recording.label = former,
    }
    Ok(ruled)
}

/// Rules anew on a run of which more is known by now than when it ended. A label that rests on executions, or that was found by
/// some, stays: what they showed does not depend on what the run is called.
///
/// # Errors
/// As [`settle`].
pub fn settle_amended(run_dir: &Path) -> Result<Result<Label, NoLabel>, RecordingError> {
    match former_label(run_dir)? {
        Some(label) if label.definition != PLANTED || label.status != LabelStatus::Delivered => Ok(Ok(label)),
        _ => settle(run_dir, None),
    }
}

/// Writes the label of what was planted with what was executed for it, and gives it back.
///
/// # Errors
/// The file cannot be written.
pub fn settle_proof(
    run_dir: &Path,
    label: Label,
    standing: Option<Standing>,
    evidence: Evidence,
) -> Result<Label, RecordingError> {
    let label = made::proven(label, standing, evidence);
    if recording::read_label(run_dir).ok().flatten().as_ref() != Some(&label) {
        write(run_dir, &label)?;
    }
    Ok(label)
}

/// Writes what was delivered to a run as its label, if that says else; not where another rule has found one since.
///
/// # Errors
/// The file cannot be written.
pub fn restore(run_dir: &Path, delivered: &Label) -> Result<(), RecordingError> {
    let there = recording::read_label(run_dir).ok().flatten();
    if there.as_ref() != Some(delivered) && there.is_none_or(|there| there.definition == delivered.definition) {
        write(run_dir, delivered)?;
    }
    Ok(())
}

/// Writes, replaces or withdraws a run's label by what executions found, and says in words what became of it. `contradicts` says
/// of a former label whether the finding does.
///
/// # Errors
/// A file cannot be read or written. [`NoLabel`] says why no label may name what was found.
pub fn settle_finding(
    recording: &Recording,
    run_dir: &Path,
    found: Option<Label>,
    contradicts: impl FnOnce(&Label) -> bool,
) -> Result<Result<String, NoLabel>, RecordingError> {
    let ruling = Ruling::new(recording);
    let mut steps = found.iter().flat_map(|label| &label.errors).map(|entry| entry.error.step);
    if let Err(why) = steps.try_for_each(|step| ruling.may_name(step)) {
        return Ok(Err(why));
    }
    let found = found.map(|label| with_later_names(label.with_origins_of(&recording.trajectory.steps), recording));
    let former = former_label(run_dir)?;
    let contradicted = former.as_ref().is_some_and(contradicts);
    Ok(Ok(match after_finding(former.as_ref(), found, contradicted) {
        LabelChange::None => "no label".to_owned(),
        LabelChange::Unchanged(why) => format!("label kept: {why}"),
        LabelChange::Written(label) => {
            write(run_dir, &label)?;
            format!("label verified ({})", label.definition)
        }
        LabelChange::Replaced(label) => {
            let of = remember(former, "replaced by a later trace", run_dir)?;
            write(run_dir, &label)?;
            format!("label verified ({}) in place of {of}", label.definition)
        }
        LabelChange::Withdrawn(label) => {
            let of = remember(former, "a later trace contradicts it", run_dir)?;
            write(run_dir, &label)?;
            format!("label withdrawn: {of} is contradicted")
        }
    }))
}

/// A label that says when, how and by whom the names of its steps were given, where that was after the run was recorded.
fn with_later_names(label: Label, recording: &Recording) -> Label {
    let Some(names) = label.errors.iter().find_map(|entry| recording.later_names(entry.error.step)) else {
        return label;
    };
    label.named_later(&names, |step| {
        let step = recording.trajectory.steps.iter().find(|known| known.step == step)?;
        Some((step.attribution.agent.clone(), step.attribution.instance))
    })
}

/// The label that a run has; one that somebody edited is none, and makes way.
fn former_label(run_dir: &Path) -> Result<Option<Label>, RecordingError> {
    match recording::read_label(run_dir) {
        Err(RecordingError::Edited { .. }) => Ok(None),
        read => read,
    }
}

fn write(run_dir: &Path, label: &Label) -> Result<(), RecordingError> {
    recording::write_beside(&run_dir.join(recording::LABEL_FILE), label)
}

/// Keeps a former label; says in words which it was.
fn remember(former: Option<Label>, why: &str, run_dir: &Path) -> Result<String, RecordingError> {
    let Some(former) = former else { return Ok("none".to_owned()) };
    let steps: Vec<String> = former.errors.iter().map(|entry| entry.error.step.to_string()).collect();
    let words = format!("{} at step {}", former.definition, steps.join(", "));
    let former = if former.status == LabelStatus::Verified { made::withdrawn(former) } else { former };
    let path = run_dir.join(FORMER);
    let unreadable =
        |error: serde_json::Error| RecordingError::Unreadable { path: path.clone(), why: error.to_string() };
    let mut all: Vec<FormerLabel> = match RunFile::bytes(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(unreadable)?,
        Err(_) => Vec::new(),
    };
    all.push(FormerLabel { why: why.into(), label: serde_json::to_value(&former).map_err(unreadable)? });
    recording::write_beside(&path, &all)?;
    Ok(words)
}
