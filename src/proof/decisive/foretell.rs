//! What a search is expected to cost, before any of it is spent.

use super::{By, Offer, Search, SearchQuestion};
use crate::proof::ProofSample;

/// Plays a search of a system that repeats itself, whose first decisive step is `at` (`None`: nothing heals). Other words heal
/// from that step on, a fresh draw up to it. Gives executions, and what they cost by the price of each arm.
pub fn play(question: &SearchQuestion, at: Option<usize>, prices: &[u64]) -> (u64, u64) {
    let mut heals = vec![false; question.arms];
    let mut set = |arm: usize, passes: bool| {
        if let Some(heals) = heals.get_mut(arm) {
            *heals |= passes;
        }
    };
    for (place, offer) in question.steps.iter().enumerate() {
        match (*offer, at) {
            (Offer::Other { null, treated, by: By::Drawn, .. }, Some(at)) => {
                set(null, place < at);
                set(treated, place <= at);
            }
            (Offer::Other { treated, .. }, Some(at)) => set(treated, place >= at),
            _ => {}
        }
    }
    let mut search = Search::new(question.clone());
    let (mut executions, mut cost) = (0, 0);
    while let Some(arm) = search.next(1).first().copied() {
        let passes = heals.get(arm).copied().unwrap_or_default();
        search.take(arm, if passes { ProofSample::Passed } else { ProofSample::Failed });
        executions += 1;
        cost += prices.get(arm).copied().unwrap_or_default();
    }
    (executions, cost)
}
