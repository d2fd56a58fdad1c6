//! The order of steps in a sample: that of the recording, but for calls that overlapped, which arrive by chance and
//! are put in an order that does not depend on it.

use std::collections::BTreeMap;

use super::content;
use crate::{
    equality,
    recording::Recording,
    surface::{self, door},
    trajectory::{Step, StepIndex},
};

/// When a step was under way, by the places of its first and last record in the log.
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

/// For each step in canonical order, whether it overlaps with the one before it, directly or by others between them.
pub(super) fn overlaps(recording: &Recording) -> Vec<bool> {
    // Steps that overlapped stand together in both orders.
    let spans = spans(recording);
    let span = |step: &Step| spans.get(&step.step).map_or((0, Some(0)), |span| (span.from, Some(span.to)));
    equality::joins(recording.trajectory.steps.iter().map(span))
}

/// Takes, again and again, the least of the steps before which no other of the group had ended.
fn settle<'a>(group: &mut Vec<&'a Step>, span: &impl Fn(&Step) -> Span, ordered: &mut Vec<&'a Step>) {
    if group.len() < 2 {
        ordered.append(group);
        return;
    }
    let mut keyed: Vec<_> = group.drain(..).map(|step| (key(step), step)).collect();
    while !keyed.is_empty() {
        let first_end = keyed.iter().map(|(_, step)| span(step).to).min().unwrap_or_default();
        let free = keyed.iter().enumerate().filter(|(_, (_, step))| span(step).from <= first_end);
        let least = free.min_by_key(|(_, (key, _))| key).map(|(number, _)| number);
        ordered.push(keyed.remove(least.unwrap_or(0)).1);
    }
}

/// What decides among steps that overlapped: whose they are, and what they ask, whatever ids a backend gave.
fn key(step: &Step) -> (&str, u32, String, u32) {
    let surface = surface::named(&step.surface);
    let asked = surface.and_then(|surface| door::request_at(surface, &step.path, &step.request).ok());
    let asked = asked.map_or_else(|| content::of_bytes(&step.request), |asked| content::of_request(&asked));
    (step.attribution.agent.as_str(), step.attribution.instance, asked, step.call)
}

fn spans(recording: &Recording) -> BTreeMap<StepIndex, Span> {
    let mut spans: BTreeMap<StepIndex, Span> = BTreeMap::new();
    for exchange in &recording.exchanges {
        let (from, to) = (exchange.opened, exchange.closed.unwrap_or(u64::MAX));
        let span = spans.entry(exchange.step).or_insert(Span { from, to });
        span.from = span.from.min(from);
        span.to = span.to.max(to);
    }
    spans
}
