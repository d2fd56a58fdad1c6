//! What a trace makes of the run's label: `label.json`, and beside it every label that it took the place of.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    attribution::{LabelRule, Life, TraceFinding, label_of, life},
    cli::{Exit, Failure},
    recording,
    replay::Cassette,
    ruling::{NoLabel, Ruling},
    trajectory::{Label, LabelStatus},
};

/// How a step gets a name that a label may use.
const ROSTER: &str = "aegis agents RUN_DIR --suggest proposes rules; with them, record the program once more";
/// The labels that others took the place of, the oldest first.
const FORMER: &str = "label.former.json";

/// Writes, replaces or withdraws the label; says what became of it.
pub(super) fn settle(
    finding: &TraceFinding,
    rule: LabelRule,
    dir: &Path,
    cassette: &Cassette,
) -> Result<String, Failure> {
    let former = recording::read_label(dir)?;
    let found = label_of(finding, rule).map(|label| nameable(label, cassette)).transpose();
    let found = match found {
        Ok(found) => found,
        Err(why) => return Ok(format!("no label: {why}; {ROSTER}")),
    };
    Ok(match life(former.as_ref(), found, finding) {
        Life::Kept(_) if former.is_none() => "no label".to_owned(),
        Life::Kept(why) => format!("label kept: {why}"),
        Life::Written(label) => {
            recording::write_label(dir, &label)?;
            format!("label verified ({})", label.definition)
        }
        Life::Replaced(label) => {
            let of = remember(former, "replaced by a later trace", dir)?;
            recording::write_label(dir, &label)?;
            format!("label verified ({}) in place of {of}", label.definition)
        }
        Life::Withdrawn(label) => {
            let of = remember(former, "a later trace contradicts it", dir)?;
            recording::write_label(dir, &label)?;
            format!("label withdrawn: {of} is contradicted")
        }
    })
}

/// A label whose agents are surely those that spoke; else why there is none.
fn nameable(label: Label, cassette: &Cassette) -> Result<Label, NoLabel> {
    let mut steps = label.errors.iter().map(|entry| entry.error.step);
    let ruling = Ruling::of(cassette.recording());
    steps.try_for_each(|step| ruling.may_name(step))?;
    Ok(label)
}

/// Keeps a former label; says in words which it was.
fn remember(former: Option<Label>, why: &str, dir: &Path) -> Result<String, Failure> {
    let Some(mut former) = former else { return Ok("none".to_owned()) };
    let steps: Vec<String> = former.errors.iter().map(|entry| entry.error.step.to_string()).collect();
    let words = format!("{} at step {}", former.definition, steps.join(", "));
    if former.status == LabelStatus::Verified {
        former.status = LabelStatus::Withdrawn;
    }
    let path = dir.join(FORMER);
    let mut all: Vec<Value> = match std::fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|error| Failure::new(Exit::Recording, format!("cannot read `{}`: {error}", path.display())))?,
        Err(_) => Vec::new(),
    };
    all.push(json!({"why": why, "label": former}));
    let text = serde_json::to_vec_pretty(&all).map_err(|error| Failure::new(Exit::Recording, error))?;
    replace(&path, &text)?;
    Ok(words)
}

/// Replaces a small file whole.
pub(super) fn replace(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let new = path.with_extension("json.new");
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
    written.map_err(|error| Failure::new(Exit::Recording, format!("cannot write `{}`: {error}", path.display())))
}
