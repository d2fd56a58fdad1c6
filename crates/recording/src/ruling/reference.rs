//! What the run says whose beginning was given again. A record answers at once, so that calls that were made side by side there
//! come one after the other here; which of them came first is chance all the same.

use crate::{identity::LateStep, recording::Recording, trajectory::Step};

/// The steps of a run that are calls which overlapped another of their agent in the reference, and do not say so themselves.
pub(super) fn overlapped(recording: &Recording, reference: &Recording) -> Vec<LateStep> {
    let there = |step: &Step| {
        let (who, call) = (&step.attribution, step.call);
        reference.trajectory.steps.iter().filter(|known| is_overlapped(reference, known)).any(|known| {
            let other = &known.attribution;
            (&other.agent, other.instance, known.call) == (&who.agent, who.instance, call)
        })
    };
    let hidden = recording.trajectory.steps.iter().filter(|step| !step.overlapping && there(step));
    hidden.map(|step| LateStep::overlapping_in_reference(step.step)).collect()
}

/// Whether a recorded call overlapped another of its agent, there or in a run that this one begins like.
fn is_overlapped(recording: &Recording, step: &Step) -> bool {
    let noted = |late: &LateStep| late.step == step.step && late.overlapping_in_reference;
    step.overlapping || recording.late.iter().any(noted)
}
