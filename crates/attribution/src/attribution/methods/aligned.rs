//! Two runs of one task side by side: turns of the same agent in order, and what was said in each.

use std::collections::BTreeMap;

use super::{LoggedRun, LoggedTurn};

/// A turn's place in its run that another run may have too: the agent, and the number of its call.
pub(super) type Seat<'a> = (&'a str, u32);

/// The seat of each turn, in order.
pub(super) fn seats(run: &LoggedRun) -> Vec<(Seat<'_>, &LoggedTurn)> {
    let mut calls: BTreeMap<&str, u32> = BTreeMap::new();
    let mut seats = Vec::with_capacity(run.turns.len());
    for turn in &run.turns {
        let call = calls.entry(turn.agent.as_str()).or_default();
        seats.push(((turn.agent.as_str(), *call), turn));
        *call += 1;
    }
    seats
}

/// A text by which equal words are equal: blanks joined, case folded.
pub(super) fn folded_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// How many seats of both runs hold the same words.
pub(super) fn alike(a: &LoggedRun, b: &LoggedRun) -> usize {
    let said: BTreeMap<Seat<'_>, String> =
        seats(b).into_iter().map(|(seat, turn)| (seat, folded_words(&turn.words_and_calls()))).collect();
    seats(a)
        .into_iter()
        .filter(|(seat, turn)| said.get(seat).is_some_and(|said| *said == folded_words(&turn.words_and_calls())))
        .count()
}
