//! Rules about a label: that it points at what is there, and at what was changed.

use super::{NotedFindings, Rule, is_injected, quoted, shown};
use crate::{
    dataset::{Change, LabelledError, Mode, Sample, SampleKind, SampleStep, Truth},
    mode as modes,
    trajectory::{AgentName, LabelStatus, ModeState, PrincipalKind, Side, Source, nearest},
};

pub(super) fn check(sample: &Sample, noted: &mut NotedFindings<'_>) {
    if sample.kind == SampleKind::Clean {
        if sample.label.is_some() || sample.clean_twin.is_some() {
            noted.note(Rule::CleanLabelled, "a clean run has neither label nor twin");
        }
        return;
    }
    let names = |label: &&Truth| !label.errors.is_empty() || label.names_nobody();
    let Some(label) = sample.label.as_ref().filter(names) else {
        noted.note(Rule::LabelMissing, "expected a label with at least one error");
        return;
    };
    if label.status == LabelStatus::Withdrawn {
        noted.note(Rule::LabelWithdrawn, "later evidence contradicts the label");
    }
    shown::check(sample, label, noted);
    let proven_by = label.evidence.as_ref().and_then(|evidence| evidence.twin.as_ref());
    if let (Some(proven_by), Some(named)) = (proven_by, &sample.clean_twin)
        && proven_by.as_str() != named
    {
        let what =
            format!("the evidence is of the twin {}, the sample names {}", quoted(proven_by.as_str()), quoted(named));
        noted.note(Rule::TwinDiffers, what);
    }
    for (number, error) in label.planted().enumerate() {
        points(sample, error, noted);
        mode(sample, error, noted);
        if label.planted().take(number).any(|other| is_same_error(other, error)) {
            noted.note(Rule::DuplicateLabel, format!("`{}` at step {} stands twice", error.agent, step_of(error)));
        }
        if is_injected(sample) {
            changed(sample, label, error, noted);
        }
    }
    for change in &label.changes {
        let named = |error: &LabelledError| {
            error.step == Some(change.step) && error.side.is_none_or(|side| side == change.side)
        };
        if !label.planted().any(named) {
            let side = side(change.side);
            noted.note(Rule::UnlabelledChange, format!("the {side} of step {} was changed", change.step));
        }
    }
}

/// Whether agent, step, instance and call of an error fit the steps.
fn points(sample: &Sample, error: &LabelledError, noted: &mut NotedFindings<'_>) {
    let agents = sample.agents();
    let exists = agents.contains(&&error.agent);
    if !exists {
        let near = nearest(error.agent.as_str(), agents.iter().map(|agent| agent.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        noted.note(Rule::AgentExists, format!("no step is by {}{hint}", quoted(error.agent.as_str())));
    }
    let Some(number) = error.step else {
        // A format that labels agents alone says so by having no steps in any of its labels.
        if is_injected(sample) {
            noted.note(Rule::StepExists, format!("the error of `{}` names no step", error.agent));
        }
        return;
    };
    let Some(step) = sample.steps.get(number as usize) else {
        let what = format!("step {number} of {} steps, counted from 0", sample.steps.len());
        noted.note(Rule::StepExists, what);
        return;
    };
    let made = |step: &SampleStep| step.agent == error.agent && step.instance == error.instance;
    let fits = made(step) && error.call.is_none_or(|call| call == step.call);
    if exists && !fits {
        let before = (number as usize).checked_sub(1).and_then(|before| sample.steps.get(before));
        let off = before.is_some_and(|before| made(before) && error.call.is_none_or(|call| call == before.call));
        let hint = if off { "; the step before is: the label looks counted from 1" } else { "" };
        let whose = |call: Option<u32>, agent: &AgentName, instance: u32| {
            let call = call.map(|call| format!("call {call} of ")).unwrap_or_default();
            if instance == 0 { format!("{call}`{agent}`") } else { format!("{call}`{agent}`, instance {instance}") }
        };
        let is = whose(error.call.map(|_| step.call), &step.agent, step.instance);
        let said = whose(error.call, &error.agent, error.instance);
        noted.note(Rule::AgentAtStep, format!("step {number} is by {is}, the label says {said}{hint}"));
    }
    if step.ambiguous {
        let what =
            format!("step {number} may belong to another agent than `{}`, or overlapped with its calls", step.agent);
        noted.note(Rule::AmbiguousStep, what);
    } else if let Some(next) = overlapped_by(sample, step) {
        noted.note(Rule::AmbiguousStep, overlap(number, next));
    }
    if is_injected(sample) && step.source == Some(Source::Fallback) {
        noted.note(Rule::GuessedAgent, format!("no hint and no roster names `{}` at step {number}", step.agent));
    }
}

/// The agent's next call, where that says that it overlapped with this one. Earlier versions marked only the later of two
/// calls, and the canonical order may have put it first.
fn overlapped_by(sample: &Sample, step: &SampleStep) -> Option<u32> {
    let next = |other: &&SampleStep| {
        (&other.agent, other.instance) == (&step.agent, step.instance) && Some(other.call) == step.call.checked_add(1)
    };
    let next = sample.steps.iter().find(next).filter(|next| next.ambiguous)?;
    // All between the two joined the group of the step before them.
    let (from, to) = (step.step.min(next.step), step.step.max(next.step));
    let between = sample.steps.get(from as usize + 1..=to as usize)?;
    between.iter().all(|step| step.overlaps).then_some(next.step)
}

fn overlap(number: u32, other: u32) -> String {
    format!("step {number} overlapped with another call of its agent, step {other}: which of them is which is chance")
}

fn mode(sample: &Sample, error: &LabelledError, noted: &mut NotedFindings<'_>) {
    if error.failure_mode.is_none() && error.culprit == PrincipalKind::Agent && is_injected(sample) {
        noted.note(Rule::UnknownMode, format!("the error of `{}` has no failure mode", error.agent));
    }
    if error.proposed_mode.is_some() && is_injected(sample) {
        let what = format!("the error of `{}` was planted: its mode is known, none need be proposed", error.agent);
        noted.note(Rule::UnknownMode, what);
    }
    for mode in error.modes().chain(&error.proposed_mode) {
        named(mode, noted);
    }
    if let Some(claim) = error.mode_claim.as_ref().filter(|claim| claim.state == ModeState::Applicable)
        && let Some(unmet) = &claim.unmet
    {
        let code = error.failure_mode.as_ref().map_or("the mode", |mode| mode.code.as_str());
        let missing = modes::missing(unmet).unwrap_or(unmet);
        noted.note(
            Rule::ModeImpossible,
            format!("the error of `{}` is said to be of {code}, and {missing}", error.agent),
        );
    }
}

/// Whether a mode is one of the taxonomy, under its own name.
fn named(mode: &Mode, noted: &mut NotedFindings<'_>) {
    match mode.failure_mode() {
        Err(error) => noted.note(Rule::UnknownMode, error.to_string()),
        Ok(known) if known.name() != mode.name => {
            let what = format!("{} is {}, not {}", mode.code, quoted(known.name()), quoted(&mode.name));
            noted.note(Rule::UnknownMode, what);
        }
        Ok(_) => {}
    }
}

/// Whether bytes differ at the labelled step, and the step shows what was delivered.
fn changed(sample: &Sample, label: &Truth, error: &LabelledError, noted: &mut NotedFindings<'_>) {
    let Some(number) = error.step else { return };
    let hashed = !error.before.is_empty() && !error.after.is_empty() && error.before != error.after;
    let its = |change: &&Change| {
        change.step == number && error.side.is_none_or(|side| side == change.side) && change.before != change.after
    };
    let Some(change) = label.changes.iter().find(its).filter(|_| hashed) else {
        noted.note(Rule::NothingChanged, format!("nothing differs at step {number}"));
        return;
    };
    let Some(step) = sample.steps.get(number as usize) else { return };
    if change.side == Side::Response {
        let delivered = change.after.iter().any(|said| Some(said) == step.output.as_ref() || said.role == "other");
        if !delivered {
            noted.note(Rule::NotDelivered, format!("the output of step {number} is not what the label delivered"));
        }
    } else if step.output.is_none() {
        noted.note(Rule::NotDelivered, format!("step {number} got no answer to its changed request"));
    }
}

fn is_same_error(a: &LabelledError, b: &LabelledError) -> bool {
    (&a.agent, a.instance, a.step, &a.failure_mode, a.side, a.injection)
        == (&b.agent, b.instance, b.step, &b.failure_mode, b.side, b.injection)
}

fn step_of(error: &LabelledError) -> String {
    error.step.map_or_else(|| "?".to_owned(), |step| step.to_string())
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Request => "request",
        Side::Response => "response",
    }
}
