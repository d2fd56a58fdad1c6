//! What a search is expected to cost, before any of it is spent.

use super::{ENOUGH, Offer, Search, SearchQuestion, TriedWords};
use crate::proof::ProofSample;

/// Executions of the record as it is, before it is given up or taken for a failure.
const SANITY: u64 = 5;

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
            (Offer::Other { control, treated, by: TriedWords::Drawn, .. }, Some(at)) => {
                set(control, place < at);
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

/// Most executions of an arm, whatever they come to. A claim wants an arm while it has fewer verdicts than the claim may have
/// pairs and no more than every third execution says nothing; the record as it is wants up to three verdicts, and is given up
/// where three executions and most of all say nothing.
pub fn most_executions(question: &SearchQuestion, arm: usize) -> u64 {
    let pairs = u64::from(question.terms.pairs.max(1));
    let claimed = (pairs + (pairs - 1) / 2).max(u64::from(ENOUGH));
    let is_claimed = question.steps.iter().any(|offer| match offer {
        Offer::Other { control, treated, .. } => arm == *control || arm == *treated,
        Offer::None | Offer::Same => false,
    });
    let is_claimed = is_claimed || question.couples.iter().any(|couple| arm == couple.control || arm == couple.treated);
    let sanity = if arm == question.sanity { SANITY } else { 0 };
    sanity.max(if is_claimed { claimed } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        proof::{Couple, Order, Terms},
        trajectory::Void,
    };

    /// Steps that share arms as fresh draws do, steps with arms of their own, and a couple.
    fn question(order: Order, pairs: u32) -> SearchQuestion {
        let other = |control, treated, by| Offer::Other { control, treated, by, suspicion: 0.5 };
        SearchQuestion {
            steps: vec![
                other(1, 0, TriedWords::Drawn),
                other(2, 1, TriedWords::Drawn),
                Offer::Same,
                other(3, 4, TriedWords::Given),
                other(5, 6, TriedWords::Proposed),
                other(7, 8, TriedWords::Given),
            ],
            couples: vec![Couple { steps: (3, 5), control: 9, treated: 10 }],
            arms: 11,
            sanity: 7,
            order,
            earliest: true,
            last: true,
            terms: Terms { pairs, ..Terms::default() },
        }
    }

    #[test]
    fn an_arm_is_executed_for_its_verdicts_and_for_what_may_say_nothing_beside_them() {
        for (pairs, claimed) in [(1, 3), (5, 7), (8, 11), (40, 59)] {
            let question = question(Order::Scan, pairs);
            assert_eq!(most_executions(&question, 3), claimed, "{pairs} pairs");
            assert_eq!(most_executions(&question, question.sanity), claimed.max(SANITY), "{pairs} pairs");
        }
    }

    #[test]
    fn no_search_executes_an_arm_more_often_than_is_foretold() {
        let mut state = 7_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 100
        };
        for (order, pairs) in [(Order::Scan, 1), (Order::Bisect, 5), (Order::BestFirst, 8), (Order::Scan, 40)] {
            for _ in 0..60 {
                let question = question(order, pairs);
                let (mut search, void) = (Search::new(question.clone()), draw() / 3);
                let rates: Vec<u64> = (0..question.arms).map(|_| draw()).collect();
                let mut made = vec![0_u64; question.arms];
                let room = 1 + (draw() % 4) as usize;
                loop {
                    let arms = search.next(room);
                    if arms.is_empty() {
                        break;
                    }
                    for arm in arms {
                        made[arm] += 1;
                        search.take(
                            arm,
                            match () {
                                () if draw() < void => ProofSample::Void(Void::TimedOut),
                                () if draw() < rates[arm] => ProofSample::Passed,
                                () => ProofSample::Failed,
                            },
                        );
                    }
                }
                for (arm, made) in made.into_iter().enumerate() {
                    let most = most_executions(&question, arm);
                    assert!(made <= most, "{order:?} {pairs}: arm {arm} was executed {made} times, at most {most}");
                }
            }
        }
    }
}
