//! Why an injection never came to work, as far as the recording holds it.

use super::InjectionDelivery;
use crate::{plan, recording::Recording};

/// What kept it from its calls: what it said where it was tried, else what its conditions came nearest to.
pub(super) fn why(injection: &InjectionDelivery, recording: &Recording) -> Option<String> {
    could_not(injection, recording).or_else(|| {
        let plan = plan::parse(recording.manifest.plan.as_deref()?, "run.json").ok()?;
        let matched = plan::against(&plan, &recording.trajectory).ok()?;
        matched.into_iter().find(|one| one.injection == injection.injection)?.nearest_miss
    })
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
