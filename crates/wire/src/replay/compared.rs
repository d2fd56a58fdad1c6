//! A recorded run as it is compared with another.

use std::collections::HashMap;

use super::{
    Departure,
    reading::{answered_text, step_request_text},
};
use crate::{
    equality::{
        self, ComparedCall, ComparedRun, OrderedCall, Parting, Rules, ToolResults, are_results_repeated, same_request,
        volatile_between, volatile_of_call,
    },
    recording::{ExchangeDetail, Recording},
    trajectory::{Step, StepIndex},
};

/// How far results of tools differ between runs of one task that nothing was planted in: as far as it takes for all of them to
/// have asked the same where they had got the same replies. [`ToolResults::Exact`] where that explains nothing.
fn learned_tool_results(runs: &[Recording], rules: &Rules) -> ToolResults {
    let Some((first, others)) = runs.split_first() else { return ToolResults::Exact };
    let explains = |setting: &ToolResults| {
        let rules = rules.clone().with_tool_results(*setting);
        let known = compared_run(first, &rules);
        let parts = |other: &Recording| {
            let parting = equality::parting(&known, &compared_run(other, &rules));
            matches!(parting, Some(Parting::Request(_) | Parting::Missing(_)))
        };
        !others.iter().any(parts)
    };
    [ToolResults::Exact, ToolResults::Masked, ToolResults::Any].into_iter().find(explains).unwrap_or_default()
}

/// The same rules with what runs that were treated alike show to differ between them, other than by a reply: values in their requests,
/// and results of tools, where `tool_results` is to be learned too.
pub fn learned_rules(runs: &[Recording], rules: &Rules, tool_results: bool) -> Rules {
    let steps: Vec<&[Step]> = runs.iter().map(|run| run.trajectory.steps.as_slice()).collect();
    let rules = rules.clone().with_more_volatile(volatile_between(&steps, rules));
    if !tool_results {
        return rules;
    }
    let learned = learned_tool_results(runs, &rules).max(rules.tool_results());
    rules.with_tool_results(learned)
}

/// The same rules with that by which alone a request differs that a record did not answer before anything was planted in its run: a
/// value in a system prompt, and results of tools, where `tool_results` is to be learned too and no recorded reply repeats what
/// differs in them. The rules as they are, where that is not all.
pub fn rules_after_departure(
    reference: &Recording,
    run: &Recording,
    departure: &Departure,
    rules: &Rules,
    tool_results: bool,
) -> Rules {
    let step = |of: &'_ Recording, step: StepIndex| of.trajectory.steps.iter().find(|one| one.step == step).cloned();
    let known = departure.nearest.as_ref().and_then(|nearest| step(reference, nearest.step));
    let Some((known, departed)) = known.zip(step(run, departure.step)) else { return rules.clone() };
    let steps = [reference, run].map(|of| of.trajectory.steps.as_slice());
    let learned = rules.clone().with_more_volatile(volatile_of_call(&known, &departed, steps, rules));
    // A result whose words a reply repeats is what the run is about.
    let replies = reference.trajectory.steps.iter().filter(|step| step.step >= known.step);
    let tool_results = tool_results && !are_results_repeated(&known, &departed, replies);
    let known_so_far = rules.tool_results();
    let settings = [ToolResults::Exact, ToolResults::Masked, ToolResults::Any].into_iter();
    let settings = settings.filter(|to| *to == known_so_far || (tool_results && *to > known_so_far));
    let mut explained = settings.map(|setting| learned.clone().with_tool_results(setting));
    explained.find(|rules| same_request(&known, &departed, rules)).unwrap_or_else(|| rules.clone())
}

/// The calls of a run, in the order of its steps, for [`equality::parting`] and [`equality::parting_before`].
pub fn compared_run(recording: &Recording, rules: &Rules) -> ComparedRun {
    let steps = &recording.trajectory.steps;
    let calls = steps.iter().map(|step| ComparedCall::of_step(step, rules)).collect();
    let asked = |position: usize| steps.get(position).map(step_request_text).unwrap_or_default();
    ComparedRun::new(calls, &ordered_calls(steps, &recording.exchanges), asked)
}

/// What the steps of a run tell of their order.
pub(super) fn ordered_calls(steps: &[Step], exchanges: &[ExchangeDetail]) -> Vec<OrderedCall> {
    let mut spans: HashMap<StepIndex, (u64, Option<u64>)> = HashMap::new();
    for exchange in exchanges {
        let (opened, closed) = spans.entry(exchange.step).or_insert((exchange.opened, exchange.closed));
        // Until its last attempt has ended, a call is under way.
        *opened = exchange.opened.min(*opened);
        *closed = closed.zip(exchange.closed).map(|(one, other)| one.max(other));
    }
    let ordered = |step: &Step| {
        let (opened, closed) = spans.get(&step.step).copied().unwrap_or((0, Some(0)));
        OrderedCall {
            agent: step.attribution.agent.clone(),
            instance: step.attribution.instance,
            answered: answered_text(step),
            opened,
            closed,
        }
    };
    steps.iter().map(ordered).collect()
}
