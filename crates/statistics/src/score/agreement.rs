//! How far people agree: raw agreement of pairs, and Krippendorff's α, which leaves out what chance alone would give.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Interval, Share, bootstrap, real};

/// Seed of the intervals; the same data has the same interval everywhere.
const SEED: u64 = 0;

/// Agreement on one question over units that several people answered. Units that fewer than two answered say nothing
/// and are left out.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Agreement {
    /// Units that at least two people answered.
    pub units: usize,
    /// Pairs of answers to one unit, and those of them that are the same.
    pub pairs: Share,
    /// Krippendorff's α for names: 1 is full agreement, 0 is what chance gives. `None` where all answers are the same one,
    /// so that nothing can be told from chance.
    pub alpha: Option<f64>,
    /// 95 % interval of α, by resampling units; a resample of one answer alone counts as 0. `None` of fewer than six units.
    pub interval: Option<Interval>,
}

/// Agreement of answers, a list a unit. `same` says which pairs agree; α always asks for equal ones.
pub fn agreement(answers: &[Vec<String>], same: impl Fn(&str, &str) -> bool) -> Agreement {
    let units: Vec<&Vec<String>> = answers.iter().filter(|unit| unit.len() > 1).collect();
    let mut pairs = (0, 0);
    for unit in &units {
        for (at, one) in unit.iter().enumerate() {
            for other in unit.iter().skip(at + 1) {
                pairs = (pairs.0 + usize::from(same(one, other)), pairs.1 + 1);
            }
        }
    }
    let figure = alpha(&units);
    let resampled = |rows: &[usize]| {
        let chosen: Vec<&Vec<String>> = rows.iter().filter_map(|row| units.get(*row).copied()).collect();
        alpha(&chosen).unwrap_or(0.0)
    };
    let interval = figure.and_then(|_| bootstrap(units.len(), SEED, resampled));
    Agreement { units: units.len(), pairs: Share::new(pairs.0, pairs.1), alpha: figure, interval }
}

/// Krippendorff's α of nominal values (Krippendorff 2011, *Computing Krippendorff's Alpha-Reliability*), of units with at
/// least two values each.
fn alpha(units: &[&Vec<String>]) -> Option<f64> {
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    let mut observed = 0.0;
    for unit in units {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for value in *unit {
            *counts.entry(value).or_default() += 1.0;
            *totals.entry(value).or_default() += 1.0;
        }
        observed += unequal(&counts) / (real(unit.len()) - 1.0);
    }
    let all: f64 = totals.values().sum();
    let expected = unequal(&totals) / (all - 1.0);
    (expected > 0.0).then(|| 1.0 - observed / expected)
}

/// Ordered pairs of unequal values.
fn unequal(counts: &BTreeMap<&str, f64>) -> f64 {
    let all: f64 = counts.values().sum();
    counts.values().map(|count| count * (all - count)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of a table of observers' values, `.` where one has none.
    fn units(observers: &[&str]) -> Vec<Vec<String>> {
        let rows: Vec<Vec<&str>> = observers.iter().map(|row| row.split(' ').collect()).collect();
        let width = rows.first().map_or(0, Vec::len);
        (0..width)
            .map(|at| {
                rows.iter().filter_map(|row| row.get(at)).filter(|v| **v != ".").map(|v| (*v).to_owned()).collect()
            })
            .collect()
    }

    #[test]
    fn alpha_as_published() {
        // Krippendorff 2011, section C: four observers, twelve units, nominal data, missing values.
        let table = units(&[
            "1 2 3 3 2 1 4 1 2 . . .",
            "1 2 3 3 2 2 4 1 2 5 . 3",
            ". 3 3 3 2 3 4 2 2 5 1 .",
            "1 2 3 3 2 4 4 1 2 5 1 .",
        ]);
        let found = agreement(&table, |a, b| a == b);
        assert_eq!(found.units, 11);
        assert!((found.alpha.expect("a figure") - 0.743).abs() < 5e-4, "{found:?}");
        let interval = found.interval.expect("an interval");
        assert!(interval.low < 0.743 && interval.high > 0.743, "{interval:?}");
        // Section A: two observers, ten units, binary data.
        let table = units(&["0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0"]);
        assert!((agreement(&table, |a, b| a == b).alpha.expect("a figure") - 0.095).abs() < 5e-4);
    }

    #[test]
    fn nothing_is_claimed_of_nothing() {
        let none = agreement(&[vec!["a".to_owned()], vec![]], |a, b| a == b);
        assert_eq!((none.units, none.pairs.of, none.alpha), (0, 0, None));
        let one = agreement(&[vec!["a".to_owned(), "a".to_owned()]], |a, b| a == b);
        assert_eq!((one.pairs.hits, one.alpha), (1, None), "one answer alone cannot be told from chance");
        let near = agreement(&[vec!["3".to_owned(), "4".to_owned()]], |a, b| a != b);
        assert_eq!(near.pairs.hits, 1);
    }
}
