//! What a trace is expected to cost, before any of it is spent.

use serde::Serialize;

use super::{Corrections, TraceSettings, arms::Arms};
use crate::{
    proof::{self, Offer, Order},
    replay::{AtFork, Cassette},
    trajectory::StepIndex,
};

/// What a trace costs where the error is at a step, with a model that repeats itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    let arms = Arms::of(cassette, corrections, settings);
    let steps = cassette.bare_steps();
    let prices: Vec<u64> = arms
        .arms
        .iter()
        .map(|arm| {
            let at = steps.iter().find(|step| step.step == arm.fork.step);
            let recorded = at.map_or(0, |at| super::arms::prefix(cassette, at).len());
            let set = usize::from(arm.also.is_some());
            let live = steps.len().saturating_sub(recorded + set) + usize::from(arm.fork.at == AtFork::Live);
            live as u64
        })
        .collect();
    let offered = arms.question.steps.iter().enumerate();
    let offered: Vec<usize> =
        offered.filter(|(_, offer)| matches!(offer, Offer::Other { .. })).map(|(place, _)| place).collect();
    let mut supposed: Vec<Option<usize>> = [offered.first(), offered.last()].map(Option::<&usize>::copied).into();
    supposed.dedup();
    supposed.push(None);
    let foretold = supposed.into_iter().map(|place| {
        let (executions, calls) = proof::play(&arms.question, place, &prices);
        ForetoldTrace { step: place.and_then(|place| steps.get(place)).map(|step| step.step), executions, calls }
    });
    foretold.collect()
}

/// The name of an order on the command line.
pub fn order_name(order: Order) -> &'static str {
    match order {
        Order::Scan => "scan",
        Order::Bisect => "bisect",
        Order::BestFirst => "best-first",
    }
}
