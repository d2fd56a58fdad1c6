//! What a search executes next, step by step, and where that leaves it: small questions whose answers are worked out by hand.

use super::{Couple, Offer, Order, RuleAnswer, Search, SearchEnding, SearchQuestion, Stands, TriedWords, play};
use crate::{
    proof::{ProofSample, Terms},
    trajectory::{Executions, Void},
};

/// The arms of step `n` of [`question`]: as recorded, with other words. Arm 0 is the whole record.
fn control(step: usize) -> usize {
    1 + 2 * step
}

fn treated(step: usize) -> usize {
    2 + 2 * step
}

/// A question about steps that are tried with the words of these, all equally suspicious; couples have the arms after those.
fn question(order: Order, by: &[TriedWords], couples: &[(usize, usize)]) -> SearchQuestion {
    let other = |(step, by): (usize, &TriedWords)| Offer::Other {
        control: control(step),
        treated: treated(step),
        by: *by,
        suspicion: 0.5,
    };
    let couple = |(place, steps): (usize, &(usize, usize))| Couple {
        steps: *steps,
        control: control(by.len() + place),
        treated: treated(by.len() + place),
    };
    SearchQuestion {
        steps: by.iter().enumerate().map(other).collect(),
        couples: couples.iter().enumerate().map(couple).collect(),
        arms: control(by.len() + couples.len()),
        sanity: 0,
        order,
        earliest: true,
        last: true,
        terms: Terms::default(),
    }
}

/// The samples of a text: `p` passed, `f` failed, `v` void.
fn take(search: &mut Search, arm: usize, text: &str) {
    for letter in text.chars() {
        let sample = match letter {
            'p' => ProofSample::Passed,
            'f' => ProofSample::Failed,
            _ => ProofSample::Void(Void::Unanswered),
        };
        search.take(arm, sample);
    }
}

/// Searches to the end, one execution at a time, where just these arms pass. Gives the arms in the order of their execution.
fn executed(search: &mut Search, passing: &[usize]) -> Vec<usize> {
    let mut arms = Vec::new();
    while let Some(arm) = search.next(1).first().copied() {
        search.take(arm, if passing.contains(&arm) { ProofSample::Passed } else { ProofSample::Failed });
        arms.push(arm);
        assert!(arms.len() < 1_000, "a search ends");
    }
    arms
}

/// A search whose record was seen to fail.
fn failing(question: SearchQuestion) -> Search {
    let mut search = Search::new(question);
    take(&mut search, 0, "f");
    search
}

#[test]
fn each_step_is_looked_at_before_any_is_pursued() {
    let mut search = Search::new(question(Order::Scan, &[TriedWords::Given; 2], &[]));
    let arms = executed(&mut search, &[treated(1)]);
    // The record; a look at the first; the second heals: in pairs until its effect is shown; then the first is cleared.
    let look = [0, treated(0), treated(0), treated(1), treated(1)];
    let pair = |pair| if Terms::treated_first(0, pair) { [treated(1), control(1)] } else { [control(1), treated(1)] };
    let pairs = [[control(1), control(1)], pair(2), pair(3), pair(4)].concat();
    assert_eq!(arms.get(..13), Some([&look[..], &pairs[..]].concat().as_slice()));
    assert!(arms[13..].iter().all(|arm| *arm == treated(0)), "alone: at half the price, {arms:?}");
    assert_eq!(search.found().earliest_flip, RuleAnswer::Step(1));
}

#[test]
fn halves_close_in_on_the_step_from_which_on_other_words_heal() {
    for (decisive, looks) in [(5, [4, 6, 5]), (2, [4, 2, 1]), (7, [4, 6, 7])] {
        let mut search = failing(question(Order::Bisect, &[TriedWords::Given; 8], &[]));
        let healing: Vec<usize> = (decisive..8).map(treated).collect();
        for step in looks {
            assert_eq!(search.next(1), [treated(step)], "decisive {decisive}");
            take(&mut search, treated(step), if healing.contains(&treated(step)) { "p" } else { "f" });
        }
    }
    // A fresh draw heals up to the decisive step instead.
    let mut search = failing(question(Order::Bisect, &[TriedWords::Drawn; 8], &[]));
    for (step, outcome) in [(4, "f"), (2, "p"), (3, "p")] {
        assert_eq!(search.next(1), [treated(step)]);
        take(&mut search, treated(step), outcome);
    }
}

#[test]
fn of_the_two_steps_round_the_place_where_the_row_parts_the_one_that_heals_is_first() {
    for first in ["f", "fp"] {
        let mut search = failing(question(Order::Bisect, &[TriedWords::Given; 2], &[]));
        take(&mut search, treated(1), "p");
        take(&mut search, treated(0), first);
        assert_eq!(search.next(1), [treated(1)], "{first}");
    }
}

#[test]
fn the_most_suspicious_and_the_first_are_looked_at_by_turns_where_one_that_is_shown_is_enough() {
    let with = |suspicions: &[f64], clears: bool, by: TriedWords| {
        let mut question = question(Order::BestFirst, &vec![by; suspicions.len()], &[]);
        (question.earliest, question.last) = (clears, clears);
        for (step, given) in question.steps.iter_mut().zip(suspicions) {
            if let Offer::Other { suspicion, .. } = step {
                *suspicion = *given;
            }
        }
        failing(question)
    };
    let order = |search: &Search| -> Vec<usize> { search.next(9).into_iter().map(|arm| (arm - 1) / 2).collect() };
    let suspicions = [0.2, 0.5, 0.3, 0.5, 0.9];
    let mut search = with(&suspicions, false, TriedWords::Given);
    // Of equals the earlier; what one turn took is no choice of the next.
    assert_eq!(order(&search), [4, 0, 1, 2, 3]);
    // Each is looked at once; then a second time, from the front.
    for (step, left) in [(4, vec![0, 1, 2, 3, 4]), (0, vec![1, 2, 3, 0, 4]), (1, vec![2, 3, 0, 1, 4])] {
        take(&mut search, treated(step), "f");
        assert_eq!(order(&search), left);
    }
    // What heals is pursued, as long as its pairs speak for it.
    take(&mut search, treated(3), "p");
    assert_eq!(search.next(1), [treated(3)]);
    take(&mut search, treated(3), "p");
    take(&mut search, control(3), "p");
    assert_eq!(order(&search), [2, 0, 1, 4, 3], "it passes without the words too");
    // Where every other step has to be cleared nothing is gained by looking elsewhere first; a proposal clears nothing.
    assert_eq!(order(&with(&suspicions, true, TriedWords::Given)), [0, 1, 2, 3, 4]);
    assert_eq!(order(&with(&suspicions, true, TriedWords::Proposed)), [4, 0, 1, 2, 3]);
}

#[test]
fn couples_are_tried_where_neither_step_heals_alone_and_only_looked_at() {
    let couples = [(0, 1), (0, 2), (1, 2)];
    let mut search = failing(question(Order::Scan, &[TriedWords::Given; 3], &couples));
    while (0..3).any(|step| search.stands(step) == Stands::Open) {
        let arm = search.next(1)[0];
        assert!(arm <= treated(2), "no couple before its steps are cleared");
        take(&mut search, arm, "f");
    }
    assert_eq!(search.next(9), [3, 4, 5].map(treated));
    for (couple, left) in [(3, vec![4, 5]), (5, vec![4]), (4, vec![])] {
        take(&mut search, treated(couple), "f");
        take(&mut search, treated(couple), "f");
        assert_eq!(search.next(9), left.into_iter().map(treated).collect::<Vec<_>>());
    }
    let found = search.found();
    assert_eq!((found.coupled, found.earliest_flip, found.flips), (None, RuleAnswer::None, vec![]));
}

#[test]
fn a_couple_that_heals_is_pursued_shown_and_ends_the_search() {
    let couples = [(0, 1), (1, 2)];
    let mut search = failing(question(Order::Scan, &[TriedWords::Given; 3], &couples));
    executed(&mut search, &[treated(4)]);
    assert_eq!(search.found().coupled, Some((1, 2)));
    let executed =
        |couple| search.executed_of_couple(couple).map(|executed| (executed.control.all(), executed.treated.all()));
    // 5 claims: an e-value of 500 takes six pairs.
    assert_eq!((executed(0), executed(1), executed(2)), (Some((0, 2)), Some((6, 6)), None));
    assert_eq!((search.claims(), search.target()), (5, 500.0));
}

#[test]
fn a_couple_with_a_step_that_is_not_cleared_is_not_tried() {
    for by in [[TriedWords::Given, TriedWords::Proposed], [TriedWords::Proposed, TriedWords::Given]] {
        let mut search = failing(question(Order::Scan, &by, &[(0, 1)]));
        let arms = executed(&mut search, &[]);
        assert!(arms.iter().all(|arm| *arm <= treated(1)), "{arms:?}");
        assert_eq!(search.found().coupled, None);
    }
}

#[test]
fn nothing_is_said_of_what_nobody_looked_at() {
    let search = failing(question(Order::Scan, &[TriedWords::Given; 2], &[(0, 1)]));
    let (open, found) = (RuleAnswer::Unsure { shown: None, open: vec![0, 1] }, search.found());
    assert_eq!((found.earliest_flip, found.commitment), (open.clone(), open));
    assert_eq!((found.flips, found.coupled, found.ending), (vec![], None, None));
}

#[test]
fn a_rule_that_is_not_sought_is_not_answered_nor_paid_for() {
    for (earliest, last) in [(true, false), (false, true), (false, false)] {
        let question = SearchQuestion { earliest, last, ..question(Order::Scan, &[TriedWords::Given; 3], &[]) };
        let mut search = failing(question);
        executed(&mut search, &[treated(1)]);
        let found = search.found();
        let answer = |sought: bool| if sought { RuleAnswer::Step(1) } else { RuleAnswer::NotSought };
        assert_eq!((found.earliest_flip, found.commitment), (answer(earliest), answer(last)));
        let cleared = |step| search.stands(step) == Stands::Excluded;
        // The first was looked at before anything was shown.
        assert_eq!(
            (cleared(0), cleared(2), search.executed(2).map(|of| of.treated.all())),
            match (earliest, last) {
                (true, _) => (true, false, Some(0)),
                (_, true) => (false, true, search.executed(2).map(|of| of.treated.failed)),
                _ => (false, false, Some(0)),
            }
        );
    }
}

#[test]
fn what_blames_and_what_clears_costs_more_the_more_steps_there_are() {
    for (steps, couples, target, clearing) in
        [(1, &[][..], 100.0, 40.0), (2, &[], 200.0, 40.0), (5, &[], 500.0, 160.0), (2, &[(0, 1)], 300.0, 40.0)]
    {
        let search = Search::new(question(Order::Scan, &vec![TriedWords::Given; steps], couples));
        assert_eq!((search.target(), search.clearing()), (target, clearing), "{steps} steps");
    }
    let none = SearchQuestion { steps: vec![Offer::None, Offer::Same], ..question(Order::Scan, &[], &[]) };
    let search = Search::new(none);
    assert_eq!((search.claims(), search.target(), search.clearing()), (0, 100.0, 40.0));
    assert_eq!(
        (search.stands(0), search.stands(1), search.stands(2)),
        (Stands::Untouched, Stands::Same, Stands::Untouched)
    );
    assert_eq!((search.executed(0), search.executed(1)), (None, None));
}

#[test]
fn as_many_executions_as_may_be_made_leave_a_step_unsettled() {
    for (controls, treateds, expected) in [
        ("pp", "pp", Stands::Unsettled),
        ("p", "pp", Stands::Open),
        ("pp", "p", Stands::Open),
        // What never healed needs no control arm.
        ("", "ff", Stands::Unsettled),
        ("", "f", Stands::Open),
    ] {
        let terms = Terms { pairs: 2, ..Terms::default() };
        let mut search = failing(SearchQuestion { terms, ..question(Order::Scan, &[TriedWords::Given; 9], &[]) });
        take(&mut search, control(0), controls);
        take(&mut search, treated(0), treateds);
        assert_eq!(search.stands(0), expected, "null {controls}, treated {treateds}");
        let executed = search.executed(0).expect("tried");
        assert_eq!((executed.control.all(), executed.treated.all()), (controls.len() as u32, treateds.len() as u32));
    }
}

#[test]
fn a_proposal_that_does_not_heal_clears_nothing() {
    for (by, treateds, expected) in [
        (TriedWords::Proposed, "f", Stands::Open),
        (TriedWords::Proposed, "ff", Stands::Unsettled),
        (TriedWords::Given, "ff", Stands::Open),
        (TriedWords::Given, "vvf", Stands::Void),
        // The e-value of 40 that clears one step of one: 27 after seven, 50 after eight.
        (TriedWords::Given, "fffffff", Stands::Open),
        (TriedWords::Given, "ffffffff", Stands::Excluded),
        (TriedWords::Drawn, "ffffffff", Stands::Excluded),
        (TriedWords::Proposed, "ffffffff", Stands::Unsettled),
    ] {
        let mut search = failing(question(Order::Scan, &[by], &[]));
        take(&mut search, treated(0), treateds);
        assert_eq!(search.stands(0), expected, "{by:?} {treateds}");
    }
}

#[test]
fn a_search_of_which_most_says_nothing_is_over() {
    for (outcomes, ending) in [
        ("vv", None),
        ("vvv", Some(SearchEnding::Void(Void::Unanswered))),
        ("vvvfff", None),
        ("vvvppp", None),
        ("vvvvfff", Some(SearchEnding::Void(Void::Unanswered))),
        ("vvvvpff", Some(SearchEnding::Void(Void::Unanswered))),
    ] {
        let mut search = Search::new(question(Order::Scan, &[TriedWords::Given; 2], &[]));
        // Spread over the arms of the steps: what is asked of the record is another question.
        for (place, outcome) in outcomes.chars().enumerate() {
            take(&mut search, 1 + place % 4, &outcome.to_string());
        }
        assert_eq!((search.ended(), search.next(1).is_empty()), (ending, ending.is_some()), "{outcomes}");
    }
    let mut search = Search::new(question(Order::Scan, &[TriedWords::Given], &[]));
    search.take(control(0), ProofSample::Void(Void::Crashed));
    take(&mut search, treated(0), "vv");
    assert_eq!(search.ended(), Some(SearchEnding::Void(Void::Unanswered)), "the most frequent reason");
}

#[test]
fn samples_are_kept_in_order_and_counted() {
    let mut search = Search::new(question(Order::Scan, &[TriedWords::Given], &[]));
    take(&mut search, treated(0), "pf");
    assert_eq!(search.samples(treated(0)), [ProofSample::Passed, ProofSample::Failed]);
    assert_eq!(search.counted(treated(0)), Executions { passed: 1, failed: 1, ..Executions::default() });
    take(&mut search, 99, "p");
    assert!(search.samples(99).is_empty(), "there is no such arm");
}

#[test]
fn a_forecast_plays_the_search_that_would_be_made() {
    // Other words heal from the decisive step on; a fresh draw up to it, and what is drawn before it heals of itself.
    let cases: [(TriedWords, Option<usize>, &[usize]); 4] = [
        (TriedWords::Given, Some(1), &[treated(1), treated(2)]),
        (TriedWords::Proposed, Some(1), &[treated(1), treated(2)]),
        (TriedWords::Drawn, Some(1), &[control(0), treated(0), treated(1)]),
        (TriedWords::Given, None, &[]),
    ];
    for (by, at, passing) in cases {
        for order in [Order::Scan, Order::Bisect, Order::BestFirst] {
            let question = question(order, &[by; 3], &[]);
            let prices: Vec<u64> = (0..question.arms).map(|arm| 100_u64.pow(arm as u32 / 2) + arm as u64).collect();
            let arms = executed(&mut Search::new(question.clone()), passing);
            let cost = arms.iter().map(|arm| prices[*arm]).sum();
            assert_eq!(play(&question, at, &prices), (arms.len() as u64, cost), "{by:?} {at:?} {order:?}");
        }
    }
    // One step: the record once, then four pairs, which are worth 136 of 100.
    let one = question(Order::Scan, &[TriedWords::Given], &[]);
    assert_eq!(play(&one, Some(0), &[1, 10, 100]), (9, 441));
}
