//! The expected F1 of a guess that is drawn evenly, one a run: no dice are thrown, and no seed is left out.
//!
//! Micro F1 is linear in the number of hits, for each run is answered once. The F1 of a class is not: it is summed over how often
//! the class may be guessed where it is right, and where it is not, each a sum of independent draws.

use std::collections::{BTreeMap, BTreeSet};

use super::{real, sets::RuleF1};

/// Less probable counts are left out.
const NEGLIGIBLE: f64 = 1e-15;

/// One run: what is right, and what may be drawn with which probability.
pub(super) type DrawnRow<K> = (BTreeSet<K>, BTreeMap<K, f64>);

/// The expected figures; `None` where no run has anything right.
pub(super) fn expected_f1<K: Ord>(rows: &[DrawnRow<K>]) -> Option<RuleF1> {
    let classes: BTreeSet<&K> = rows.iter().flat_map(|(right, _)| right).collect();
    let labels: usize = rows.iter().map(|(right, _)| right.len()).sum();
    if classes.is_empty() {
        return None;
    }
    let chance = |drawn: &BTreeMap<K, f64>, class: &K| drawn.get(class).copied().unwrap_or_default();
    let hits: f64 = rows.iter().flat_map(|(right, drawn)| right.iter().map(|class| chance(drawn, class))).sum();
    let guesses: f64 = rows.iter().flat_map(|(_, drawn)| drawn.values()).sum();
    let of_class = |class: &K| {
        let (with, without): (Vec<&DrawnRow<K>>, Vec<_>) = rows.iter().partition(|(right, _)| right.contains(class));
        let counts = |rows: &[&DrawnRow<K>]| distribution(rows.iter().map(|(_, drawn)| chance(drawn, class)));
        let (true_counts, false_counts) = (counts(&with), counts(&without));
        let mut expected = 0.0;
        for (hits, hit_chance) in true_counts.iter().enumerate().skip(1) {
            for (extra, extra_chance) in false_counts.iter().enumerate() {
                expected += hit_chance * extra_chance * 2.0 * real(hits) / real(hits + extra + with.len());
            }
        }
        expected
    };
    let sum: f64 = classes.iter().map(|class| of_class(class)).sum();
    Some(RuleF1 { micro: 2.0 * hits / (guesses + real(labels)), macro_: sum / real(classes.len()) })
}

/// How often independent events of these chances come, by number.
fn distribution(chances: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut counts = vec![1.0];
    for chance in chances.filter(|chance| *chance > 0.0) {
        let mut before = 0.0;
        for count in &mut counts {
            let stays = *count * (1.0 - chance);
            let comes = before * chance;
            before = *count;
            *count = stays + comes;
        }
        if before * chance > NEGLIGIBLE {
            counts.push(before * chance);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(right: &[&'static str], drawn: &[(&'static str, f64)]) -> DrawnRow<&'static str> {
        (right.iter().copied().collect(), drawn.iter().copied().collect())
    }

    /// All answers that can be drawn, one after another.
    fn by_enumeration(rows: &[DrawnRow<&'static str>]) -> (f64, f64) {
        let mut all: Vec<(f64, Vec<&str>)> = vec![(1.0, Vec::new())];
        for (_, drawn) in rows {
            all = all
                .iter()
                .flat_map(|(chance, answers)| {
                    drawn.iter().map(move |(answer, one)| (chance * one, [answers.as_slice(), &[*answer]].concat()))
                })
                .collect();
        }
        let classes: BTreeSet<&str> = rows.iter().flat_map(|(right, _)| right.iter().copied()).collect();
        let labels: usize = rows.iter().map(|(right, _)| right.len()).sum();
        let (mut micro, mut macro_) = (0.0, 0.0);
        for (chance, answers) in all {
            let hits = rows.iter().zip(&answers).filter(|((right, _), answer)| right.contains(*answer)).count();
            micro += chance * 2.0 * real(hits) / real(answers.len() + labels);
            for class in &classes {
                let tp = rows
                    .iter()
                    .zip(&answers)
                    .filter(|((right, _), answer)| right.contains(*answer) && *answer == class);
                let (tp, said) = (tp.count(), answers.iter().filter(|answer| *answer == class).count());
                let right = rows.iter().filter(|(right, _)| right.contains(class)).count();
                if tp > 0 {
                    macro_ += chance * 2.0 * real(tp) / real(said + right) / real(classes.len());
                }
            }
        }
        (micro, macro_)
    }

    #[test]
    fn it_is_the_mean_over_all_that_can_be_drawn() {
        let rows = [
            row(&["a", "b"], &[("a", 0.5), ("c", 0.5)]),
            row(&["a"], &[("a", 0.25), ("b", 0.25), ("c", 0.5)]),
            row(&[], &[("a", 0.5), ("b", 0.5)]),
            row(&["b"], &[("b", 1.0)]),
        ];
        let (micro, macro_) = by_enumeration(&rows);
        let found = expected_f1(&rows).expect("labels");
        assert!((found.micro - micro).abs() < 1e-12 && (found.macro_ - macro_).abs() < 1e-12, "{found:?}");
        assert_eq!(expected_f1(&[row(&[], &[("a", 1.0)])]), None);
    }

    #[test]
    fn a_thousand_runs_are_counted_and_sum_to_one() {
        let counts = distribution((0..1000).map(|_| 1.0 / 14.0));
        assert!((counts.iter().sum::<f64>() - 1.0).abs() < 1e-9 && counts.len() < 250, "{}", counts.len());
    }
}
