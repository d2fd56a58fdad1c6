//! How surely a search names the decisive step: eight topologies, three orders, noise, four sources of corrections.

use super::{
    Offer, Order, RuleAnswer, Search, SearchEnding, Stands, TriedWords,
    systems::{Case, LiveChances, Source, Topology, search},
};
use crate::{
    proof::{ProofSample, Terms},
    trajectory::Void,
};

const ORDERS: [Order; 3] = [Order::Scan, Order::Bisect, Order::BestFirst];
const CALM: LiveChances = LiveChances { noise: 0.0, unanswered: 0.0 };

fn unsure(shown: Option<usize>, open: &[usize]) -> RuleAnswer {
    RuleAnswer::Unsure { shown, open: open.to_vec() }
}

#[test]
fn without_noise_each_order_says_the_same_and_it_is_right() {
    use Source::{File, Model, Redraw, Twin};
    use Topology::{Approval, Branches, Chain5, Coupled, Late, ParallelVote, Stubborn, Vote};
    let (step, none, proposed) = (RuleAnswer::Step, || RuleAnswer::None, RuleAnswer::Proposed);
    for (topology, source, earliest, last) in [
        (Chain5, Twin, step(2), step(4)),
        (Chain5, Redraw, step(2), step(2)),
        (Chain5, File, unsure(Some(2), &[0, 1]), step(4)),
        (Chain5, Model, proposed(2), proposed(4)),
        (Stubborn, Twin, step(2), step(4)),
        (Stubborn, Redraw, none(), none()),
        (Late, Twin, step(1), step(7)),
        // The second error is made on top of the first: before the first is undone, it changes nothing.
        (Late, Redraw, step(1), step(1)),
        (Branches, Twin, step(0), step(4)),
        (Branches, Redraw, step(0), step(0)),
        // The second decides: the first alone is outvoted.
        (Vote, Twin, step(1), step(3)),
        (Vote, Redraw, step(1), step(1)),
        (ParallelVote, Twin, step(0), step(3)),
        (ParallelVote, Redraw, step(0), step(1)),
        (Approval, Twin, step(0), step(2)),
        (Coupled, Twin, none(), none()),
        (Coupled, Redraw, none(), none()),
    ] {
        for order in ORDERS {
            let searched = search(&Case::new(topology, source, order, false), CALM, "calm");
            let found = (searched.found.earliest_flip, searched.found.commitment);
            assert_eq!(found, (earliest.clone(), last.clone()), "{topology:?} {source:?} {order:?}");
        }
    }
}

#[test]
fn two_errors_that_heal_only_together_are_named_together() {
    for order in ORDERS {
        let searched = search(&Case::new(Topology::Coupled, Source::Twin, order, true), CALM, "calm");
        assert_eq!(searched.found.coupled, Some((0, 1)));
        assert_eq!(searched.search.claims(), 3, "two steps and one couple: each claim pays for all");
        let single = search(&Case::new(Topology::Chain5, Source::Twin, order, true), CALM, "calm");
        assert_eq!((single.found.coupled, single.found.earliest_flip), (None, RuleAnswer::Step(2)));
        let unasked = search(&Case::new(Topology::Coupled, Source::Twin, order, false), CALM, "calm");
        assert_eq!(unasked.found.coupled, None);
    }
}

/// A row of [`the_bound_holds_at_any_rate_of_chance_errors`].
#[derive(Default)]
struct Tally {
    traces: u32,
    named: u32,
    flips: u32,
    unsure: u32,
    none: u32,
    wrong: u32,
    missed: u32,
    executions: u32,
    calls: u32,
}

/// Whether a step is said to flip whose correction heals no more often than chance.
fn is_wrong(effects: &[Option<f64>], found: &super::Found) -> bool {
    found.flips.iter().any(|step| effects[*step].is_none_or(|effect| effect < 0.05))
}

/// Whether a step is said to be the earliest, or the last, although another in its place has an effect that counts.
fn has_missed(effects: &[Option<f64>], found: &super::Found) -> bool {
    let counts = |effect: &Option<f64>| effect.is_some_and(|effect| effect >= Terms::default().effect);
    let before = if let RuleAnswer::Step(step) = found.earliest_flip { &effects[..step] } else { &[] };
    let after = if let RuleAnswer::Step(step) = found.commitment { &effects[step + 1..] } else { &[] };
    before.iter().chain(after).any(counts)
}

#[test]
fn the_bound_holds_at_any_rate_of_chance_errors() {
    // `scripts/measure-trace` asks for more.
    let each = std::env::var("AEGIS_PROOF_TRACES").ok().and_then(|each| each.parse().ok()).unwrap_or(5);
    let (mut traces, mut wrong, mut missed) = (0, 0, 0);
    for (noise, unanswered) in [(0.0, 0.0), (0.05, 0.0), (0.05, 0.02), (0.2, 0.0), (0.5, 0.0)] {
        for source in Source::ALL {
            for order in ORDERS {
                let mut tally = Tally::default();
                for topology in Topology::ALL {
                    let case = Case::new(topology, source, order, false);
                    let effects: Vec<Option<f64>> =
                        (0..topology.steps()).map(|step| case.effect(step, noise)).collect();
                    for number in 0..each {
                        let name = format!("{topology:?} {source:?} {order:?} {noise} {unanswered} {number}");
                        let searched = search(&case, LiveChances { noise, unanswered }, &name);
                        let found = &searched.found;
                        tally.traces += 1;
                        tally.executions += searched.executions;
                        tally.calls += searched.calls;
                        let (bad, passed_over) = (is_wrong(&effects, found), has_missed(&effects, found));
                        tally.wrong += u32::from(bad);
                        tally.missed += u32::from(passed_over);
                        if bad || passed_over {
                            println!("{}: {name}: {found:?} of {effects:?}", if bad { "wrong" } else { "missed" });
                        }
                        match (&found.earliest_flip, found.flips.is_empty()) {
                            (RuleAnswer::Step(_), _) => tally.named += 1,
                            (_, false) => tally.flips += 1,
                            (RuleAnswer::None, _) => tally.none += 1,
                            _ => tally.unsure += 1,
                        }
                        let model = source == Source::Model;
                        assert!(!model || !matches!(found.earliest_flip, RuleAnswer::Step(_)), "{name}");
                    }
                }
                traces += tally.traces;
                wrong += tally.wrong;
                missed += tally.missed;
                let Tally { traces: of, named, flips, unsure, none, wrong, missed, executions, calls } = tally;
                println!(
                    "noise {noise}, unanswered {unanswered}, {source:?}, {order:?}: of {of} earliest flip {named}, flip \
                     only {flips}, not sure {unsure}, none {none}, wrong {wrong}, missed {missed}; {} executions, {} calls a trace",
                    executions / of,
                    calls / of
                );
            }
        }
    }
    println!("of {traces} traces {wrong} name a step without effect, {missed} miss an effect that counts");
    assert!(wrong * 100 <= traces, "{wrong} of {traces} traces name a step without effect");
    assert!(missed * 100 <= traces, "{missed} of {traces} traces miss one that stands in its place");
}

/// Only the last step, or only the third, is corrected.
#[test]
fn a_step_is_not_the_earliest_among_the_untested() {
    let topology = Topology::Chain5;
    let only = |step: usize| {
        let right = topology.clean();
        (0..5).map(|at| (at == step).then(|| (TriedWords::Given, Some(right[at])))).collect::<Vec<_>>()
    };
    for order in ORDERS {
        let case = Case::with_words(topology, &only(4), |_| false, order, false);
        let found = search(&case, CALM, "only the last").found;
        assert_eq!((found.flips, found.commitment), (vec![4], RuleAnswer::Step(4)));
        assert_eq!(found.earliest_flip, unsure(Some(4), &[0, 1, 2, 3]));
        let case = Case::with_words(topology, &only(2), |_| false, order, false);
        assert_eq!(search(&case, CALM, "only the third").found.commitment, unsure(Some(2), &[3, 4]));
    }
}

#[test]
fn a_search_that_was_cut_short_names_no_commitment() {
    for order in ORDERS {
        let case = Case::new(Topology::Chain5, Source::Twin, order, false);
        let mut search = Search::new(case.question.clone());
        let mut draws = crate::proof::systems_tests::Draws::seeded("cut");
        for _ in 0..200 {
            let Some(arm) = search.next(1).first().copied() else { break };
            let (passed, _) = case.execute(arm, 0.0, &mut draws);
            search.take(arm, if passed { ProofSample::Passed } else { ProofSample::Failed });
            if let RuleAnswer::Step(step) = search.found().commitment {
                assert_eq!(step, 4, "{order:?}");
            }
            if let RuleAnswer::Step(step) = search.found().earliest_flip {
                assert_eq!(step, 2, "{order:?}");
            }
        }
        assert!(search.next(1).is_empty());
    }
}

#[test]
fn what_says_nothing_ends_the_search_and_shows_nothing() {
    for source in [Source::Twin, Source::Redraw] {
        for order in ORDERS {
            let case = Case::new(Topology::Chain5, source, order, false);
            let searched = search(&case, LiveChances { noise: 0.0, unanswered: 1.0 }, "dead");
            assert_eq!(searched.found.ending, Some(SearchEnding::Void(Void::Unanswered)));
            assert!(searched.found.flips.is_empty() && searched.executions <= 4, "{}", searched.executions);
        }
    }
}

#[test]
fn a_record_that_succeeds_as_it_is_ends_the_search() {
    let question = || Case::new(Topology::Chain5, Source::Twin, Order::Scan, false).question;
    for (first, next, ending) in [
        ("f", 2, None),
        ("p", 0, None),
        ("pf", 0, None),
        ("pff", 2, None),
        ("pp", 0, Some(SearchEnding::NotReproduced)),
        ("pfp", 0, Some(SearchEnding::NotReproduced)),
        ("vvv", 0, Some(SearchEnding::Void(Void::NoVerdict))),
    ] {
        let mut search = Search::new(question());
        for letter in first.chars() {
            let sample = match letter {
                'p' => ProofSample::Passed,
                'f' => ProofSample::Failed,
                _ => ProofSample::Void(Void::NoVerdict),
            };
            search.take(0, sample);
        }
        assert_eq!(search.found().ending, ending, "{first}");
        match (ending, search.next(1).first()) {
            (Some(_), arm) => assert_eq!(arm, None, "{first}"),
            (None, Some(arm)) => assert_eq!((*arm == 0, next == 0), (next == 0, *arm == 0), "{first}"),
            (None, None) => panic!("{first}: there is more to do"),
        }
    }
}

/// What turns a right reply into one that makes up for a later error is no correction.
#[test]
fn a_proposal_that_makes_up_for_another_error_blames_nobody() {
    let topology = Topology::Stubborn;
    let right = topology.clean();
    let spoilt: Vec<_> = (0..5).map(|step| (step == 0).then(|| (TriedWords::Proposed, Some(right[0] - 10)))).collect();
    for order in ORDERS {
        let case = Case::with_words(topology, &spoilt, |_| false, order, false);
        let found = search(&case, CALM, "makes up").found;
        assert_eq!(
            (found.flips, found.earliest_flip),
            (vec![0], RuleAnswer::Proposed(0)),
            "it flips, and no more is said"
        );
    }
}

/// The twin's critic approved too, but of a right solution: its words clear nothing here.
#[test]
fn the_same_words_to_another_question_clear_no_step() {
    for order in ORDERS {
        let case = Case::new(Topology::Approval, Source::Twin, order, false);
        assert_eq!(case.question.steps[1], Offer::None);
        let mut two = case.question.clone();
        two.steps.truncate(2);
        let mut search = Search::new(two);
        let mut draws = crate::proof::systems_tests::Draws::seeded("approval");
        while let Some(arm) = search.next(1).first().copied() {
            let (passed, _) = case.execute(arm, 0.0, &mut draws);
            search.take(arm, if passed { ProofSample::Passed } else { ProofSample::Failed });
        }
        assert_eq!(search.found().earliest_flip, RuleAnswer::Step(0));
        assert_eq!(search.found().commitment, unsure(Some(0), &[1]));
    }
}

#[test]
fn what_is_drawn_anew_needs_one_arm_more_than_there_are_steps() {
    let case = Case::new(Topology::Late, Source::Redraw, Order::Scan, false);
    assert_eq!((case.question.steps.len(), case.arms.len()), (8, 9));
    let searched = search(&case, CALM, "shared");
    assert!(searched.executions <= 90, "{}", searched.executions);
    assert!((0..8).all(|step| searched.search.stands(step) != Stands::Open));
}

#[test]
fn executions_at_once_are_of_different_steps_and_conclude_the_same() {
    for order in ORDERS {
        let case = Case::new(Topology::Chain5, Source::Redraw, order, false);
        let mut search = Search::new(case.question.clone());
        let mut draws = crate::proof::systems_tests::Draws::seeded("at once");
        loop {
            let arms = search.next(4);
            if arms.is_empty() {
                break;
            }
            let mut different = arms.clone();
            different.sort_unstable();
            different.dedup();
            assert_eq!(different.len(), arms.len());
            for arm in arms {
                let (passed, _) = case.execute(arm, 0.0, &mut draws);
                search.take(arm, if passed { ProofSample::Passed } else { ProofSample::Failed });
            }
        }
        assert_eq!(search.found().earliest_flip, RuleAnswer::Step(2), "{order:?}");
    }
}

/// Any of the claims of a run might be wrong: what one has to reach, and what it reached, are shared by all of them.
#[test]
fn what_is_told_of_a_shown_step_reaches_what_it_has_to_reach() {
    let case = Case::new(Topology::Chain5, Source::Twin, Order::Scan, false);
    let mut search = Search::new(case.question.clone());
    let mut draws = crate::proof::systems_tests::Draws::seeded("told");
    while let Some(arm) = search.next(1).first().copied() {
        let (passed, _) = case.execute(arm, 0.0, &mut draws);
        search.take(arm, if passed { ProofSample::Passed } else { ProofSample::Failed });
    }
    let shown: Vec<usize> = (0..5).filter(|step| search.stands(*step) == Stands::Shown).collect();
    assert!(!shown.is_empty() && search.claims() > 1, "{shown:?} of {}", search.claims());
    for step in shown {
        let executed = search.executed(step).expect("something was tried");
        let (e, target) = (executed.e.expect("a number"), executed.target.expect("a bound"));
        assert!(e >= target && (target * case.question.terms.alpha - 1.0).abs() < 1e-9, "{e} of {target}");
    }
}
