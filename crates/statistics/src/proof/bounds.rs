//! What counts of executions can amount to, where their order is not kept.

use std::collections::BTreeMap;

use super::pairs::{Expected, PairEvidence};
use crate::trajectory::Executions;

/// Pairs up to which every order is looked at. Of more, the bound is what pairs without a flaw give.
const EVERY_ORDER: u32 = 64;

/// The least and the most that so many pairs of these executions can give, over every order of the executions of each arm;
/// `None` where there are not so many. An arm may have more executions than pairs: which of them are paired is not kept.
pub fn e_bounds(expected: Expected, pairs: u32, control: &Executions, treated: &Executions) -> Option<(f64, f64)> {
    let tell = |arm: &Executions| arm.passed.saturating_add(arm.failed);
    if pairs > tell(control).min(tell(treated)) {
        return None;
    }
    if pairs > EVERY_ORDER {
        return Some((0.0, without_a_flaw(expected, pairs)));
    }
    let none = PairEvidence::none(expected);
    // By how many of each arm passed: what these pairs give at least and at most.
    let mut reached = BTreeMap::from([((0, 0), [none, none])]);
    for number in 0..pairs {
        let fits = |passed: u32, arm: &Executions| passed <= arm.passed && number + 1 - passed <= arm.failed;
        let mut next: BTreeMap<(u32, u32), [PairEvidence; 2]> = BTreeMap::new();
        for ((controls, treats), [least, most]) in reached {
            for (control_passed, treated_passed) in [(true, true), (true, false), (false, true), (false, false)] {
                let at = (controls + u32::from(control_passed), treats + u32::from(treated_passed));
                if !fits(at.0, control) || !fits(at.1, treated) {
                    continue;
                }
                let (low, high) = (least.and(control_passed, treated_passed), most.and(control_passed, treated_passed));
                let known = next.entry(at).or_insert([low, high]);
                if low.e < known[0].e {
                    known[0] = low;
                }
                if high.e > known[1].e {
                    known[1] = high;
                }
            }
        }
        reached = next;
    }
    let bounds = reached
        .into_values()
        .fold((f64::INFINITY, 0.0f64), |(low, high), [least, most]| (low.min(least.e), high.max(most.e)));
    Some(bounds)
}

/// What pairs give that all speak for the claim.
fn without_a_flaw(expected: Expected, pairs: u32) -> f64 {
    let (control, treated) = expected.best();
    let mut evidence = PairEvidence::none(expected);
    for _ in 0..pairs {
        evidence = evidence.and(control, treated);
        if !evidence.e.is_finite() {
            break;
        }
    }
    evidence.e
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::e_value;

    fn arm(passed: u32, failed: u32) -> Executions {
        Executions { passed, failed, ..Executions::default() }
    }

    #[test]
    fn every_order_lies_within_the_bounds_and_some_orders_reach_them() {
        // Each arm as the bits of a number, in the order of its executions.
        let order = |bits: u32, of: u32| (0..of).map(move |at| bits & (1 << at) != 0);
        for expected in [Expected::Breaks, Expected::Heals] {
            for (controls, treats) in
                (0..=5).flat_map(|controls: u32| (0..=5).map(move |treats: u32| (controls, treats)))
            {
                let of = |passed: u32| (0..32u32).filter(move |bits| bits.count_ones() == passed);
                let all = of(controls).flat_map(|control| of(treats).map(move |treated| (control, treated)));
                let values: Vec<f64> =
                    all.map(|(control, treated)| e_value(expected, order(control, 5).zip(order(treated, 5)))).collect();
                let (low, high) =
                    e_bounds(expected, 5, &arm(controls, 5 - controls), &arm(treats, 5 - treats)).expect("enough");
                let (least, most) = values.iter().fold((f64::INFINITY, 0.0f64), |(a, b), e| (a.min(*e), b.max(*e)));
                assert!((low - least).abs() < 1e-9 && (high - most).abs() < 1e-9, "{controls} {treats}");
            }
        }
    }

    #[test]
    fn known_bounds() {
        let most = |pairs, control: Executions, treated: Executions| {
            e_bounds(Expected::Breaks, pairs, &control, &treated).map(|(_, most)| (most * 100.0).round() / 100.0)
        };
        assert_eq!(most(0, arm(0, 0), arm(0, 1)), Some(1.0));
        assert_eq!(most(2, arm(2, 0), arm(0, 2)), Some(10.97));
        assert_eq!(most(6, arm(6, 0), arm(0, 6)), Some(1792.03));
        assert_eq!(most(3, arm(2, 0), arm(0, 3)), None, "more pairs than executions");
        assert!(most(6, arm(6, 0), arm(3, 3)).expect("enough") < 100.0);
        // Executions that are in no pair leave a choice, and count for nothing else.
        assert_eq!(most(6, arm(6, 4), arm(3, 6)), Some(1792.03));
        assert_eq!(most(u32::MAX, arm(u32::MAX, 0), arm(0, u32::MAX)), Some(f64::INFINITY));
    }

    #[test]
    fn every_order_is_tried_up_to_a_number_of_pairs_and_beyond_it_nothing_is_the_least() {
        let least = |pairs| e_bounds(Expected::Breaks, pairs, &arm(pairs, 0), &arm(0, pairs)).expect("enough").0;
        assert!(least(EVERY_ORDER) > 1.0);
        assert!(least(EVERY_ORDER + 1) == 0.0);
    }
}
