//! What labels and answers name, as sets: agents, failure modes, and pairs of both.

use std::collections::BTreeSet;

use super::{
    accuracy::Judged,
    gold::Gold,
    names::{agent_key, mode_key},
    prediction::PredictedAnswer,
    sets::{Classes, SetTally},
};

/// What an answer claims, as a set.
fn claimed_set<K: Ord>(answer: Option<&PredictedAnswer>, key: impl Fn(&super::Guess) -> Option<K>) -> BTreeSet<K> {
    answer.map(PredictedAnswer::claimed).unwrap_or_default().iter().filter_map(key).collect()
}

/// The tally of one kind of set, unless no label holds it.
fn sets<K: Ord + Clone>(
    rows: &[Judged<'_>],
    gold: impl Fn(&Gold) -> BTreeSet<K>,
    said: impl Fn(Option<&PredictedAnswer>) -> BTreeSet<K>,
) -> Option<SetTally<K>> {
    let rows: Vec<_> = rows.iter().map(|row| (gold(row.gold), said(row.answer))).collect();
    rows.iter().any(|(gold, _)| !gold.is_empty()).then(|| SetTally::new(&rows, Classes::Gold))
}

/// The agents of labels and answers.
pub(super) fn agent_sets(rows: &[Judged<'_>]) -> Option<SetTally<String>> {
    sets(rows, agents_of, |answer| claimed_set(answer, |guess| guess.agent.as_deref().map(agent_key)))
}

/// The failure modes of labels and answers.
pub(super) fn mode_sets(rows: &[Judged<'_>]) -> Option<SetTally<String>> {
    sets(rows, modes_of, |answer| claimed_set(answer, |guess| guess.mode.as_deref().map(mode_key)))
}

/// The pairs of an agent and a failure mode of labels and answers.
pub(super) fn pair_sets(rows: &[Judged<'_>]) -> Option<SetTally<(String, String)>> {
    sets(rows, pairs_of, |answer| {
        claimed_set(answer, |guess| Some((agent_key(guess.agent.as_deref()?), mode_key(guess.mode.as_deref()?))))
    })
}

pub(super) fn agents_of(gold: &Gold) -> BTreeSet<String> {
    gold.culprits.iter().filter_map(|culprit| culprit.agent.as_deref()).map(agent_key).collect()
}

pub(super) fn modes_of(gold: &Gold) -> BTreeSet<String> {
    gold.culprits.iter().filter_map(|culprit| culprit.mode.as_deref()).map(mode_key).collect()
}

pub(super) fn pairs_of(gold: &Gold) -> BTreeSet<(String, String)> {
    let pair =
        |culprit: &super::Culprit| Some((agent_key(culprit.agent.as_deref()?), mode_key(culprit.mode.as_deref()?)));
    gold.culprits.iter().filter_map(pair).collect()
}
