//! Preference pairs of a retry: what was said at the blamed step by the run that failed, and by those that passed.

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::Value;

use crate::{
    attribution::{RetryArm, RetryRound},
    cli::{Failure, output::OutputFile},
    dataset::formats::preference,
    proof::ProofSample,
    recording::{self, Masked, Recording},
};

/// The pairs of a round, each once. The prompt is the failed run's own: the note that some of the accepted replies were given
/// with is no part of it, and stands beside it.
pub(super) fn for_round(round: &RetryRound, failed: &Recording) -> Result<Vec<Value>, Failure> {
    let steps = &failed.trajectory.steps;
    let Some(blamed) = steps.iter().find(|step| step.step == round.critique.step) else { return Ok(Vec::new()) };
    let (mut pairs, mut known) = (Vec::new(), BTreeSet::new());
    let passed = round.executions.iter().filter(|one| one.sample == ProofSample::Passed && one.step == blamed.step);
    for execution in passed {
        let accepted = recording::read(&execution.dir)?;
        let Some(mut pair) = preference(failed, &accepted, blamed)? else { continue };
        if !known.insert(pair.get("chosen").map(Value::to_string)) {
            continue;
        }
        if let Some(fields) = pair.as_object_mut() {
            fields.insert("origin".to_owned(), "feedback".into());
            fields.insert("arm".to_owned(), execution.arm.name().into());
            fields.insert("accepted_run".to_owned(), execution.run.as_str().into());
            let note = (execution.arm == RetryArm::Critique).then(|| round.critique.note.clone());
            fields.insert("note".to_owned(), note.into());
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

/// Writes them, a line each.
pub(super) fn write(file: &OutputFile<'_>, pairs: &[Value]) -> Result<(), Failure> {
    let mut text = String::new();
    for pair in pairs {
        let _ = writeln!(text, "{pair}");
    }
    file.write_aloud(&Masked::new(text))
}
