//! What a search pays and finds, on the systems on which the former rules were measured.

use super::{
    By, Offer, Order, RuleAnswer, SearchQuestion, play,
    systems::{Case, Source, Topology, Weather, search},
};
use crate::proof::Terms;

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
        offers.push(Offer::Other { null: prices.len(), treated: prices.len() + 1, by: By::Given, suspicion });
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
                let searched =
                    search(&case, Weather { noise, unanswered: 0.0 }, &format!("chain5 {order:?} {noise} {number}"));
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
