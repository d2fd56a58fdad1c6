//! A recorded run as it is compared with another.

use std::collections::HashMap;

use super::{answer_text, asked_text};
use crate::{
    equality::{self, Parting, Rules, Spoken, Told, ToolResults},
    recording::Recording,
    trajectory::StepIndex,
};

/// Where a run leaves its reference before the step at the position `fork` (see [`equality::parting_before`]). `known` is
/// the reference as [`told`] tells it by the same rules. An order that only quick answers made counts for nothing.
pub fn parting_before(
    reference: &Recording,
    known: &[Told],
    run: &Recording,
    fork: usize,
    rules: &Rules,
) -> Option<Parting> {
    let own = told(run, rules);
    equality::parting_before(known, &own, fork)?;
    let unordered = |told: Vec<Told>, recording: &Recording| {
        let spoken = recording.trajectory.steps.iter().map(|step| Spoken {
            agent: step.attribution.agent.clone(),
            instance: step.attribution.instance,
            asked: asked_text(step),
            answered: answer_text(step),
        });
        equality::unordered(told, &spoken.collect::<Vec<_>>())
    };
    equality::parting_before(&unordered(known.to_vec(), reference), &unordered(own, run), fork)
}

/// How far results of tools differ between runs of one task that nothing was planted in: as far as it takes for all of them to
/// have asked the same where they had got the same replies. [`ToolResults::Exact`] where that explains nothing.
pub fn learned_tool_results(runs: &[Recording], rules: &Rules) -> ToolResults {
    let Some((first, others)) = runs.split_first() else { return ToolResults::Exact };
    let explains = |setting: &ToolResults| {
        let rules = rules.clone().with_tool_results(*setting);
        let known = told(first, &rules);
        let parts = |other: &Recording| {
            matches!(equality::parting(&known, &told(other, &rules)), Some(Parting::Asked(_) | Parting::Missing(_)))
        };
        !others.iter().any(parts)
    };
    [ToolResults::Exact, ToolResults::Masked, ToolResults::Any].into_iter().find(explains).unwrap_or_default()
}

/// The calls of a run, in the order of its steps, for [`equality::parting`] and [`equality::parting_before`].
pub fn told(recording: &Recording, rules: &Rules) -> Vec<Told> {
    let mut spans: HashMap<StepIndex, (u64, Option<u64>)> = HashMap::new();
    for exchange in &recording.exchanges {
        let (opened, closed) = spans.entry(exchange.step).or_insert((exchange.opened, exchange.closed));
        // Until its last attempt has ended, a call is under way.
        *opened = exchange.opened.min(*opened);
        *closed = closed.zip(exchange.closed).map(|(one, other)| one.max(other));
    }
    let steps = &recording.trajectory.steps;
    let joins = equality::joins(steps.iter().map(|step| spans.get(&step.step).copied().unwrap_or((0, Some(0)))));
    steps.iter().zip(joins).map(|(step, joins)| Told::of_step(step, rules).joining(joins)).collect()
}
