//! Whether a labelled step says what the clean run said there: then no error came of it, whatever was done to it.

use super::{NotedFindings, Rule};
use crate::dataset::{Sample, SampleKind, SampleStep};

/// Compares the reply of each labelled step with the twin's at the same call. What was planted besides may have changed
/// nothing: it is no error. What changed nothing in a run that went well is no defect. Where each of several errors was
/// enough alone, one of them must have come out.
pub(super) fn check(sample: &Sample, twin: &Sample, noted: &mut NotedFindings<'_>) {
    if sample.kind != SampleKind::Failure {
        return;
    }
    let errors = sample.label.iter().flat_map(|label| &label.errors);
    let mut steps: Vec<u32> = errors.filter_map(|error| error.step).collect();
    steps.sort_unstable();
    steps.dedup();
    let alike = |number: &u32| {
        let step = sample.steps.get(*number as usize)?;
        let its =
            |other: &&SampleStep| (&other.agent, other.instance, other.call) == (&step.agent, step.instance, step.call);
        twin.steps.iter().find(its).filter(|other| is_same_reply(step, other)).map(|_| (*number, step))
    };
    let found: Vec<_> = steps.iter().filter_map(alike).collect();
    let evidence = sample.label.as_ref().and_then(|label| label.evidence.as_ref());
    let enough_alone = evidence.is_some_and(|evidence| evidence.overdetermined);
    if !enough_alone || found.len() == steps.len() {
        for (number, step) in found {
            let what = format!("`{}` says at step {number} what it says in `{}`", step.agent, twin.id);
            noted.note(Rule::ReplyAsTwin, what);
        }
    }
}

/// Whether two steps were answered the same; ids of calls are drawn anew each time.
fn is_same_reply(one: &SampleStep, other: &SampleStep) -> bool {
    let answered = |step: &SampleStep| (step.finish_reason.clone(), step.status);
    match (&one.output, &other.output) {
        (Some(said), Some(twins)) => {
            let calls = |said: &crate::dataset::SampleMessage| {
                said.calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect::<Vec<_>>()
            };
            answered(one) == answered(other)
                && (&said.role, &said.text, said.opaque) == (&twins.role, &twins.text, twins.opaque)
                && calls(said) == calls(twins)
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}
