//! Why an injection never came to work, as far as the recording holds it.

use super::delivery::InjectionDelivery;
use crate::{
    plan::{self, Matched, MissedCondition},
    recording::Recording,
    trajectory::PrincipalKind,
};

/// Why an injection never came to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfired {
    /// In words, where the recording tells.
    pub(super) why: Option<String>,
    /// Whether the program has nothing that it is for: no tool call, no stream, too few calls.
    pub(super) does_not_apply: bool,
}

/// What kept it from its calls: what it said where it was tried, else what its conditions came nearest to.
pub(super) fn unfired(injection: &InjectionDelivery, recording: &Recording) -> Unfired {
    if let Some(why) = could_not(injection, recording) {
        return Unfired { why: Some(why), does_not_apply: true };
    }
    if let Some(why) = no_server(injection, recording) {
        return Unfired { why: Some(why), does_not_apply: true };
    }
    let plan = || plan::parse(recording.manifest.plan.as_deref()?, "run.json").ok();
    let matched = || plan::against(&plan()?, &recording.trajectory).ok();
    let matched = matched().and_then(|all| all.into_iter().find(|one| one.injection == injection.injection));
    let Some(Matched { nearest_miss, miss, steps, .. }) = matched else {
        return Unfired { why: None, does_not_apply: false };
    };
    // Its calls were there, and it found nothing to do: a window that was never used up, a place behind the reply's end.
    let found_nothing = !steps.is_empty() && !injection.edits && !injection.by_chance;
    let why =
        nearest_miss.or_else(|| found_nothing.then(|| format!("nothing for it to do at {} of its calls", steps.len())));
    Unfired { why, does_not_apply: found_nothing || miss.is_some_and(MissedCondition::is_of_the_program) }
}

/// Of an injection at tools or peers, where the run has no call of any.
fn no_server(injection: &InjectionDelivery, recording: &Recording) -> Option<String> {
    let kind = match injection.agents.split_once(' ')? {
        ("tool", _) => PrincipalKind::Tool,
        ("peer", _) => PrincipalKind::Peer,
        _ => return None,
    };
    let mut steps = recording.trajectory.steps.iter();
    let none = steps.all(|step| step.attribution.agent.kind() != kind);
    none.then(|| format!("the run has no call of a {} that Aegis answers", kind.name()))
}

/// Where it met a call and could not act there: the first reason, and at how many calls.
fn could_not(injection: &InjectionDelivery, recording: &Recording) -> Option<String> {
    let edits = recording.manipulator_failures.iter().filter(|failure| failure.injection == injection.injection);
    let mut told: Vec<String> = edits.map(|failure| format!("step {}: {}", failure.step, failure.why)).collect();
    // A fault leaves its reason as a note.
    let acted = format!(": `{}` could not act: ", injection.operator);
    let notes = recording.notes.iter().filter_map(|note| note.split_once(&acted));
    told.extend(notes.filter(|_| !injection.edits).map(|(step, why)| format!("{step}: {why}")));
    let (first, more) = told.split_first()?;
    let more = if more.is_empty() { String::new() } else { format!(" (and {} times more)", more.len()) };
    Some(format!("it could not act at {first}{more}"))
}
