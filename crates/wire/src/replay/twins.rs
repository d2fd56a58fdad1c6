//! Equal questions that were asked at the same time and answered otherwise: nothing in a request says which is which.
//!
//! What says it is what came later. A request that quotes several of the answers has them in an order, which is that of
//! the calls in most programs: the first to ask is given what is quoted first. Where the program of a replay then asks
//! what the record's asked, quotes and all, each answer is where it was; where nothing that it asks quotes them, that
//! cannot be known.

use std::collections::HashMap;

use super::{reading::reply_of, recorded_calls::RecordedCalls};
use crate::{equality, trajectory::Step};

/// The twins of a recording, by position.
#[derive(Debug, Default)]
pub(super) struct RecordedTwins {
    /// Whose answer is given in whose place.
    given: HashMap<usize, usize>,
    /// Of each twin: the requests that quote its answer, and no other twin's for it.
    quoted: HashMap<usize, Vec<usize>>,
}

/// An answer of a twin, as it stands in a JSON body.
struct TwinAnswer {
    position: usize,
    text: String,
}

impl RecordedTwins {
    /// Looks through groups of equal requests, each in recorded order.
    pub(super) fn find<'a>(record: &impl RecordedCalls, groups: impl Iterator<Item = &'a [usize]>) -> Self {
        let mut twins = Self::default();
        for group in groups.filter(|group| group.len() > 1) {
            let steps = record.steps();
            let spans = group.iter().filter_map(|at| Some(record.span(steps.get(*at)?)));
            let joins = equality::joins(spans.map(|(opened, closed)| (opened, Some(closed))));
            let mut from = 0;
            for to in 1..=group.len() {
                if joins.get(to).is_some_and(|joins| *joins) {
                    continue;
                }
                twins.add(record, group.get(from..to).unwrap_or_default());
                from = to;
            }
        }
        twins
    }

    fn add(&mut self, record: &impl RecordedCalls, group: &[usize]) {
        let steps = record.steps();
        let answer = |at: &usize| Some(TwinAnswer { position: *at, text: quotable(steps.get(*at)?)? });
        let answers: Vec<TwinAnswer> = group.iter().filter_map(answer).collect();
        let Some(first) = answers.first() else { return };
        if group.len() < 2 || (answers.len() == group.len() && answers.iter().all(|answer| answer.text == first.text)) {
            return;
        }
        self.quoted.extend(group.iter().map(|at| (*at, Vec::new())));
        let alone =
            |answer: &&TwinAnswer| answers.iter().filter(|other| other.text.contains(&answer.text)).count() == 1;
        let told: Vec<&TwinAnswer> = answers.iter().filter(alone).collect();
        let ended = group.iter().filter_map(|at| Some(record.span(steps.get(*at)?).1)).min().unwrap_or_default();
        let mut ordered = false;
        for (at, _) in steps.iter().enumerate().filter(|(_, step)| record.span(step).0 > ended) {
            let request = record.request(at);
            let Ok(request) = std::str::from_utf8(&request) else { continue };
            let places = told.iter().filter_map(|answer| Some((request.find(&answer.text)?, answer.position)));
            let mut places: Vec<(usize, usize)> = places.collect();
            places.sort_unstable();
            for (_, position) in &places {
                self.quoted.entry(*position).or_default().push(at);
            }
            if !ordered && places.len() > 1 {
                ordered = true;
                let mut slots: Vec<usize> = places.iter().map(|(_, position)| *position).collect();
                slots.sort_unstable();
                self.given.extend(slots.into_iter().zip(places.iter().map(|(_, position)| *position)));
            }
        }
    }

    /// The record whose answer is given in the place of another.
    pub(super) fn answering_record(&self, position: usize) -> usize {
        self.given.get(&position).copied().unwrap_or(position)
    }

    /// Whether a request quotes several answers to equal questions.
    pub(super) fn meet_in(&self, position: usize) -> bool {
        self.quoted.values().filter(|quotes| quotes.contains(&position)).nth(1).is_some()
    }

    /// Whether it cannot be known that an answer came where it was: nothing that was served quotes it.
    pub(super) fn is_unsure(&self, position: usize, served: impl Fn(usize) -> bool) -> bool {
        self.quoted.get(&position).is_some_and(|quotes| !quotes.iter().any(|at| served(*at)))
    }
}

/// What a later request would quote of a step's answer: its words, else the id of its first tool call.
fn quotable(step: &Step) -> Option<String> {
    let reply = reply_of(step)?;
    let message = &reply.answers.first()?.message;
    let text = message.text();
    let text = if text.is_empty() { message.tool_calls.first()?.id.clone() } else { text };
    let json = serde_json::to_string(text.trim()).ok()?;
    let inner = json.get(1..json.len() - 1)?.to_owned();
    (!inner.is_empty()).then_some(inner)
}
