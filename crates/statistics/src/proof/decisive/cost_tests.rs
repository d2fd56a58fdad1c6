//! What a search pays and finds, on the systems on which the former rules were measured.

use super::{
    Offer, Order, RuleAnswer, Search, SearchQuestion, TriedWords, play,
    systems::{Case, LiveChances, Source, Topology, search},
};
use crate::proof::{ProofSample, Terms};

const ORDERS: [Order; 3] = [Order::Scan, Order::Bisect, Order::BestFirst];

/// A row of agents in which one errs and the others carry that on, with its clean twin: a live call for each step after the
/// fork.
fn row(steps: usize, error: usize, order: Order, last: bool) -> (SearchQuestion, Vec<u64>) {
    let (mut prices, mut offers) = (vec![0], Vec::new());
    for step in 0..steps {
        if step < error {
            offers.push(Offer::Same);
            continue;
        }
        let suspicion = 1.0 / (step + 2) as f64;
        offers.push(Offer::Other {
            control: prices.len(),
            treated: prices.len() + 1,
            by: TriedWords::Given,
            suspicion,
        });
        prices.extend([(steps - 1 - step) as u64; 2]);
    }
    let (terms, arms) = (Terms::default(), prices.len());
    let couples = Vec::new();
    (SearchQuestion { steps: offers, couples, arms, sanity: 0, order, earliest: true, last, terms }, prices)
}

/// Under the former rules, of (30 steps, 100 steps): `scan` (84, 546), (240, 4680); `scan --first` (6, 78), (6, 234); `bisect`
/// (25, 192), (31, 746); `best-first` (12, 150), (12, 462) executions and calls, three a step.
#[test]
fn a_long_run_costs_little_more_than_its_decisive_steps() {
    for (steps, error, most) in [(30, 16, 36), (100, 60, 40)] {
        for order in ORDERS {
            for last in [true, false] {
                let (question, prices) = row(steps, error, order, last);
                let (executions, calls) = play(&question, Some(error), &prices);
                println!("{steps} steps, {order:?}, last {last}: {executions} executions, {calls} calls");
                assert!(executions <= most, "{steps} {order:?}: {executions}");
            }
        }
    }
}

/// Under the former rules, of 80 and 20 runs of three samples an arm: at 5 % `scan` named a wrong step, verified, in 15 of 80; at
/// 20 % `scan` 10, `bisect` 9, `best-first` 4 of 20.
#[test]
fn noise_names_no_later_step() {
    let of = std::env::var("AEGIS_PROOF_TRACES").ok().and_then(|traces| traces.parse().ok()).unwrap_or(20);
    for noise in [0.05, 0.2] {
        for order in ORDERS {
            let (mut right, mut flips, mut unsure, mut wrong, mut executions, mut calls) = (0, 0, 0, 0, 0, 0);
            let case = Case::new(Topology::Chain5, Source::Twin, order, false);
            for number in 0..of {
                let searched = search(
                    &case,
                    LiveChances { noise, unanswered: 0.0 },
                    &format!("chain5 {order:?} {noise} {number}"),
                );
                executions += searched.executions;
                calls += searched.calls;
                match (&searched.found.earliest_flip, searched.found.flips.is_empty()) {
                    (RuleAnswer::Step(2), _) => right += 1,
                    (RuleAnswer::Step(_), _) => wrong += 1,
                    (_, false) => flips += 1,
                    _ => unsure += 1,
                }
            }
            println!(
                "chain5 with a twin, noise {noise}, {order:?}: right {right}, flip only {flips}, not sure {unsure}, wrong {wrong} \
                 of {of}; {} executions, {} calls a trace",
                executions / of,
                calls / of
            );
            assert!(wrong * 100 <= of, "{wrong} of {of}");
        }
    }
}

/// A run of as many steps with other words for each, or a fresh draw; `heals` says which arms pass. One step that is shown is
/// enough, unless `clears`. Gives what is named and the executions.
fn hunt(
    order: Order,
    by: TriedWords,
    clears: bool,
    suspicions: &[f64],
    heals: impl Fn(usize, bool) -> bool,
) -> ((Vec<usize>, RuleAnswer), u64) {
    let steps = suspicions.len();
    // A fresh draw of a step is the record up to the step before it: arm 1 is the run anew, arm n + 1 takes n steps.
    let arm = |step: usize, treated: bool| match (by, treated) {
        (TriedWords::Drawn, treated) => step + 1 + usize::from(!treated),
        (_, treated) => 1 + 2 * step + usize::from(treated),
    };
    let (mut offers, mut passes) = (Vec::new(), vec![false; 2 * steps + 2]);
    for (step, suspicion) in suspicions.iter().enumerate() {
        let (control, treated) = (arm(step, false), arm(step, true));
        (passes[control], passes[treated]) = (heals(step, false), heals(step, true));
        offers.push(Offer::Other { control, treated, by, suspicion: *suspicion });
    }
    let question = SearchQuestion {
        steps: offers,
        couples: Vec::new(),
        arms: passes.len(),
        sanity: 0,
        order,
        earliest: clears,
        last: clears,
        terms: Terms::default(),
    };
    let (mut search, mut executions) = (Search::new(question), 0);
    while let Some(arm) = search.next(1).first().copied() {
        search.take(arm, if passes[arm] { ProofSample::Passed } else { ProofSample::Failed });
        executions += 1;
    }
    let found = search.found();
    ((found.flips, found.earliest_flip), executions)
}

/// The worst that may be suspected: the decisive step least of all, and the others from the end, or in any order.
fn adversaries(steps: usize, decisive: usize) -> Vec<Vec<f64>> {
    let from_the_end: Vec<f64> = (0..steps).map(|step| (step + 1) as f64).collect();
    let scattered: Vec<f64> = (0..steps).map(|step| ((step * 17 + 5) % steps + 1) as f64).collect();
    let least = |mut suspicions: Vec<f64>| {
        suspicions[decisive] = 0.5;
        suspicions
    };
    vec![least(from_the_end), least(scattered)]
}

/// Which arm of a step passes: as recorded, or treated.
type Heals<'a> = &'a dyn Fn(usize, bool) -> bool;

#[test]
fn whoever_is_suspected_in_vain_costs_one_execution_more_than_a_scan_at_most() {
    let (steps, flat) = (30, vec![1.0; 30]);
    for decisive in 0..steps {
        // One step whose words heal; one error that is carried on; one of chance that a fresh draw heals.
        let alone = |step: usize, treated: bool| treated && step == decisive;
        let carried = |step: usize, treated: bool| treated && step >= decisive;
        let drawn = |step: usize, treated: bool| step < decisive + usize::from(treated);
        let none = |_: usize, _: bool| false;
        let systems: [(TriedWords, Heals<'_>, bool); 4] = [
            (TriedWords::Given, &alone, true),
            (TriedWords::Given, &carried, false),
            (TriedWords::Drawn, &drawn, true),
            (TriedWords::Given, &none, true),
        ];
        for (by, heals, one) in systems {
            for clears in [false, true] {
                let scan = hunt(Order::Scan, by, clears, &flat, heals);
                for suspicions in adversaries(steps, decisive) {
                    let best = hunt(Order::BestFirst, by, clears, &suspicions, heals);
                    assert!(best.1 <= scan.1 + 1, "{by:?} {decisive} {clears}: {} against {}", best.1, scan.1);
                    // Where several steps heal, any of them is a flip; which is the earliest does not depend on the order.
                    if one || clears {
                        assert_eq!(best.0, scan.0, "{by:?} {decisive} {clears}");
                    }
                    assert_eq!(best.0.0.is_empty(), scan.0.0.is_empty());
                }
                if !clears {
                    let mut right = flat.clone();
                    right[decisive] = 2.0;
                    let best = hunt(Order::BestFirst, by, false, &right, heals);
                    assert!(best.1 <= scan.1, "{by:?} {decisive}: {} against {}", best.1, scan.1);
                }
            }
        }
    }
}
