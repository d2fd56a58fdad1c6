//! Edits that were planned and could not be made: the step passes untouched, and the record says why.

use super::{error::Interrupted, open_step::OpenStep};
use crate::{
    plan::{Hit, Injection},
    recording::ManipulatorFailed,
};

/// Why an edit was not made.
#[derive(Debug)]
pub(super) struct SkipReason {
    /// In words.
    pub(super) why: String,
    /// Whether there was nothing to edit, as against an edit that failed.
    pub(super) nothing: bool,
}

impl From<String> for SkipReason {
    fn from(why: String) -> Self {
        Self { why, nothing: false }
    }
}

/// Writes down what could not be done. A request that takes no neutral change is as good without one.
pub(super) fn failed(
    step: &OpenStep,
    hit: &Hit,
    injection: &Injection,
    unmade: &SkipReason,
) -> Result<(), Interrupted> {
    if injection.is_neutral() {
        return Ok(());
    }
    let SkipReason { why, nothing } = unmade;
    tracing::warn!(
        step = step.numbers.step,
        operator = injection.name,
        why,
        "an edit could not be made; the step passes untouched"
    );
    step.run.recorder.manipulator_failed(ManipulatorFailed {
        step: step.numbers.step,
        attempt: step.numbers.attempt,
        injection: hit.injection,
        operator: &injection.name,
        why,
        nothing: *nothing,
    })?;
    Ok(())
}

/// Writes down that no edit of the reply could be made.
pub(super) fn all_failed<'a>(
    step: &OpenStep,
    hits: impl IntoIterator<Item = &'a Hit>,
    unmade: &SkipReason,
) -> Result<(), Interrupted> {
    for hit in hits {
        if let Some(injection) = step.injection(hit.injection) {
            failed(step, hit, injection, unmade)?;
        }
    }
    Ok(())
}
