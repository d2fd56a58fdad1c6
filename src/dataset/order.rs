//! The order of steps in a sample: that of the recording, but for calls that overlapped, which arrive by chance and
//! are put in an order that does not depend on it.

use std::collections::BTreeMap;

use crate::{
    recording::Recording,
    trajectory::{Step, StepIndex},
};

/// When a step was under way, in microseconds of its recording.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
}

/// The steps in canonical order. A step that had ended before another arrived stays before it; among steps that
/// overlapped, agent, instance, request and call decide.
pub(super) fn canonical(recording: &Recording) -> Vec<&Step> {
    let spans = spans(recording);
    let span = |step: &Step| spans.get(&step.step).copied().unwrap_or(Span { from: 0, to: 0 });
    let mut ordered = Vec::with_capacity(recording.trajectory.steps.len());
    let mut group: Vec<&Step> = Vec::new();
    let mut group_ends = 0;
    for step in &recording.trajectory.steps {
        let Span { from, to } = span(step);
        if from >= group_ends {
            settle(&mut group, &span, &mut ordered);
        }
        group_ends = group_ends.max(to);
        group.push(step);
    }
    settle(&mut group, &span, &mut ordered);
    ordered
}

/// Takes, again and again, the least of the steps before which no other of the group had ended.
fn settle<'a>(group: &mut Vec<&'a Step>, span: &impl Fn(&Step) -> Span, ordered: &mut Vec<&'a Step>) {
    while !group.is_empty() {
        let first_end = group.iter().map(|step| span(step).to).min().unwrap_or_default();
        let free = group.iter().enumerate().filter(|(_, step)| span(step).from <= first_end);
        let least = free.min_by_key(|(_, step)| key(step)).map(|(number, _)| number);
        ordered.push(group.remove(least.unwrap_or(0)));
    }
}

fn key(step: &Step) -> (&str, u32, [u8; 32], u32) {
    let request = blake3::hash(&step.request);
    (step.attribution.agent.as_str(), step.attribution.instance, *request.as_bytes(), step.call)
}

fn spans(recording: &Recording) -> BTreeMap<StepIndex, Span> {
    let attempts = recording.trajectory.steps.iter().flat_map(|step| {
        step.attempts.iter().map(|attempt| ((step.step, attempt.attempt), attempt.last_byte_us.unwrap_or_default()))
    });
    let took: BTreeMap<(StepIndex, u32), u64> = attempts.collect();
    let mut spans: BTreeMap<StepIndex, Span> = BTreeMap::new();
    for exchange in &recording.exchanges {
        let took = took.get(&(exchange.step, exchange.attempt)).copied().unwrap_or_default();
        let ended = exchange.at_us.saturating_add(took);
        let span = spans.entry(exchange.step).or_insert(Span { from: exchange.at_us, to: ended });
        span.from = span.from.min(exchange.at_us);
        span.to = span.to.max(ended);
    }
    spans
}
