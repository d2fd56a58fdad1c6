//! What the recording says of the failure mode that a plan calls an error.

use crate::{
    mode::{self, CallFacts, OutOfBounds, Precondition},
    trajectory::{InjectedError, ModeClaim, Step},
};

/// How far it is established that an error at a step is of its mode, by what was recorded; `None` of what has no mode.
pub(super) fn mode_claim<'a>(
    step: &Step,
    error: &InjectedError,
    calls: impl FnOnce() -> &'a CallFacts,
) -> Option<ModeClaim> {
    let mode = error.failure_mode?;
    if error.speaker.is_some() {
        // What an upstream's agent knows of the others, no request shows.
        return Some(ModeClaim::DECLARED);
    }
    let unmet = calls().unmet(step.step, mode, error.side).map(Precondition::name);
    Some(ModeClaim::looked_at(unmet.or_else(|| mode::touched(step, mode, error.side).map(OutOfBounds::name))))
}
