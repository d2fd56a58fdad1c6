//! What a trace is expected to cost, before any of it is spent.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    Corrections, TraceSettings,
    arms::{Arms, ForkArm, live_calls},
};
use crate::{
    proof::{self, Offer, Order, TriedWords},
    replay::{AtFork, Cassette},
    trajectory::StepIndex,
};

/// What a trace costs where the error is at a step, with a model that repeats itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ForetoldTrace {
    /// The step that is supposed to be the first decisive one; `None`: nothing heals.
    pub step: Option<StepIndex>,
    /// Executions of the program.
    pub executions: u64,
    /// Live model calls, where each execution makes as many as the record.
    pub calls: u64,
}

/// Plays the search for an error at the first step that has a correction, at the last, and for one that no correction heals.
/// An execution is supposed to make as many calls as the record does.
pub fn foretell(cassette: &Cassette, corrections: &Corrections, settings: &TraceSettings) -> Vec<ForetoldTrace> {
    let arms = Arms::from_corrections(cassette, corrections, settings);
    let (steps, prices) = (cassette.bare_steps(), prices(cassette, &arms));
    let offered = arms.question.steps.iter().enumerate();
    let offered: Vec<usize> =
        offered.filter(|(_, offer)| matches!(offer, Offer::Other { .. })).map(|(place, _)| place).collect();
    let mut supposed: Vec<Option<usize>> = [offered.first(), offered.last()].map(Option::<&usize>::copied).into();
    supposed.dedup();
    supposed.push(None);
    let foretold = supposed.into_iter().map(|place| {
        let (mut executions, mut calls) = proof::play(&arms.question, place, &prices);
        if place.is_none() {
            let (more, their_calls) = as_they_are(&arms, &prices);
            (executions, calls) = (executions + more, calls + their_calls);
        }
        ForetoldTrace { step: place.and_then(|place| steps.get(place)).map(|step| step.step), executions, calls }
    });
    foretold.collect()
}

/// What it costs to execute each correction once more as it is, where none heals the run: executions and live calls.
fn as_they_are(arms: &Arms, prices: &[u64]) -> (u64, u64) {
    let treated = arms.question.steps.iter().filter_map(|offer| match offer {
        Offer::Other { treated, by: TriedWords::Given, .. } => prices.get(*treated),
        _ => None,
    });
    treated.fold((0, 0), |(executions, calls), price| (executions + 1, calls + price))
}

/// The live calls of an execution of each arm that makes as many calls as the record.
fn prices(cassette: &Cassette, arms: &Arms) -> Vec<u64> {
    let steps = cassette.bare_steps();
    let price = |arm: &ForkArm| {
        let Some(at) = steps.iter().find(|step| step.step == arm.fork.step) else { return 0 };
        let live = live_calls(cassette, at, arm.fork.at == AtFork::Live);
        live.filter(|step| arm.also.as_ref().is_none_or(|(_, set, _)| *set != step.step)).count() as u64
    };
    arms.arms.iter().map(price).collect()
}

/// What a trace costs at most, whatever its executions come to, where none makes more calls than the record. Agents as a whole
/// are executed in up to three arms each.
pub fn at_most(cassette: &Cassette, corrections: &Corrections, settings: &TraceSettings) -> ForetoldTrace {
    let arms = Arms::from_corrections(cassette, corrections, settings);
    let most = |arm: usize| proof::most_executions(&arms.question, arm);
    let prices = prices(cassette, &arms);
    let (mut executions, mut calls) = as_they_are(&arms, &prices);
    for (arm, price) in prices.iter().enumerate() {
        executions += most(arm);
        calls += most(arm) * price;
    }
    let steps = &cassette.recording().trajectory.steps;
    let all_calls = steps.iter().filter(|step| step.attribution.agent.is_agent()).count() as u64;
    let agents = steps.iter().map(|step| &step.attribution.agent).collect::<BTreeSet<_>>().len() as u64;
    let whole = 3 * agents * u64::from(settings.agents);
    executions += whole;
    calls += whole * all_calls;
    if let Some(runs) = settings.runs.filter(|runs| *runs < executions) {
        let dearest = prices.into_iter().chain((whole > 0).then_some(all_calls)).max();
        (executions, calls) = (runs, calls.min(runs * dearest.unwrap_or_default()));
    }
    ForetoldTrace { step: None, executions, calls }
}

/// The name of an order on the command line.
pub fn order_name(order: Order) -> &'static str {
    match order {
        Order::Scan => "scan",
        Order::Bisect => "bisect",
        Order::BestFirst => "best-first",
    }
}
