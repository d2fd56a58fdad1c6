//! A recorded run as it is compared with another.

use std::collections::HashMap;

use crate::{
    equality::{self, Rules, Told},
    recording::Recording,
    trajectory::StepIndex,
};

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
