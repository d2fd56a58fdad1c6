//! F1 over sets of labels, micro and macro. Which classes a macro average runs over is where the published scorers
//! disagree, so it is an argument here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    interval::{Interval, bootstrap},
    ratio, real,
};

/// The F1 of a rule, over the classes of the labels as in [`Report`](super::Report).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RuleF1 {
    /// Over all runs and classes at once.
    pub micro: f64,
    /// Unweighted mean of the classes.
    #[serde(rename = "macro")]
    pub macro_: f64,
}

/// The classes of a macro average.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Classes<K> {
    /// All that occur, in gold or prediction: an invented class is a class with F1 0.
    Union,
    /// Those of the gold labels.
    Gold,
    /// These, whether they occur or not; an absent one has F1 0.
    Fixed(Vec<K>),
}

/// True and false positives, false negatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Counts {
    /// In gold and predicted.
    pub tp: usize,
    /// Predicted only.
    pub fp: usize,
    /// In gold only.
    #[serde(rename = "fn")]
    pub missed: usize,
}

/// Precision, recall and their harmonic mean; 0 where undefined.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Figures {
    /// Share of predicted that is true.
    pub precision: f64,
    /// Share of true that is predicted.
    pub recall: f64,
    /// Harmonic mean.
    pub f1: f64,
}

impl Counts {
    /// The three figures, in the order of operations that both public scorers use.
    pub fn figures(self) -> Figures {
        let precision = ratio(self.tp, self.tp + self.fp);
        let recall = ratio(self.tp, self.tp + self.missed);
        let sum = precision + recall;
        let f1 = if sum > 0.0 { 2.0 * (precision * recall) / sum } else { 0.0 };
        Figures { precision, recall, f1 }
    }

    fn add(&mut self, hit: SetHit) {
        match hit {
            SetHit::True => self.tp += 1,
            SetHit::False => self.fp += 1,
            SetHit::Missed => self.missed += 1,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum SetHit {
    True,
    False,
    Missed,
}

/// The F1 of one kind of set.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SetScore {
    /// Over all rows and classes at once.
    pub micro: Figures,
    /// 95 % bootstrap interval of the micro F1.
    pub micro_f1_interval: Option<Interval>,
    /// Unweighted mean of the classes.
    #[serde(rename = "macro")]
    pub macro_: Figures,
    /// 95 % bootstrap interval of the macro F1.
    pub macro_f1_interval: Option<Interval>,
    /// How many classes the mean runs over.
    pub classes: usize,
    /// What the micro figures are made of.
    pub counts: Counts,
}

/// Gold and predicted sets, row by row, as hits of numbered classes.
#[derive(Debug)]
pub(super) struct SetTally<K> {
    classes: Vec<K>,
    rows: Vec<Vec<(usize, SetHit)>>,
    rule: Classes<K>,
}

impl<K: Ord + Clone> SetTally<K> {
    /// Compares each row's gold set with its predicted set.
    pub(super) fn new(rows: &[(BTreeSet<K>, BTreeSet<K>)], rule: Classes<K>) -> Self {
        let mut known: BTreeMap<K, usize> =
            rows.iter().flat_map(|(gold, said)| gold.union(said)).map(|class| (class.clone(), 0)).collect();
        if let Classes::Fixed(fixed) = &rule {
            known.extend(fixed.iter().map(|class| (class.clone(), 0)));
        }
        for (number, slot) in known.values_mut().enumerate() {
            *slot = number;
        }
        let number = |class: &K| known.get(class).copied().unwrap_or_default();
        let rows = rows
            .iter()
            .map(|(gold, said)| {
                let both = gold.intersection(said).map(|class| (number(class), SetHit::True));
                let extra = said.difference(gold).map(|class| (number(class), SetHit::False));
                let missed = gold.difference(said).map(|class| (number(class), SetHit::Missed));
                both.chain(extra).chain(missed).collect()
            })
            .collect();
        Self { classes: known.into_keys().collect(), rows, rule }
    }

    /// Counts by class, in class order, over these rows.
    fn by_class(&self, rows: impl Iterator<Item = usize>) -> Vec<Counts> {
        let mut counts = vec![Counts::default(); self.classes.len()];
        for (class, hit) in rows.filter_map(|row| self.rows.get(row)).flatten() {
            if let Some(count) = counts.get_mut(*class) {
                count.add(*hit);
            }
        }
        counts
    }

    /// Each class that the rule counts, with its counts.
    fn counted<'a>(&'a self, counts: &'a [Counts]) -> impl Iterator<Item = (&'a K, Counts)> {
        self.classes.iter().zip(counts.iter().copied()).filter(|(class, count)| match &self.rule {
            Classes::Union => count.tp + count.fp + count.missed > 0,
            Classes::Gold => count.tp + count.missed > 0,
            Classes::Fixed(fixed) => fixed.contains(class),
        })
    }

    /// Micro counts, macro figures and number of classes over these rows. The macro sum runs in class order: the
    /// public scorer that sums over a hash set has no order of its own.
    fn figures(&self, rows: impl Iterator<Item = usize>) -> (Counts, Figures, usize) {
        let by_class = self.by_class(rows);
        let total = by_class.iter().fold(Counts::default(), |sum, count| Counts {
            tp: sum.tp + count.tp,
            fp: sum.fp + count.fp,
            missed: sum.missed + count.missed,
        });
        let (mut sum, mut classes) = (Figures::default(), 0);
        for (_, count) in self.counted(&by_class) {
            let figures = count.figures();
            sum.precision += figures.precision;
            sum.recall += figures.recall;
            sum.f1 += figures.f1;
            classes += 1;
        }
        let mean = |value: f64| if classes == 0 { 0.0 } else { value / real(classes) };
        let mean = Figures { precision: mean(sum.precision), recall: mean(sum.recall), f1: mean(sum.f1) };
        (total, mean, classes)
    }

    /// The score without intervals.
    pub(super) fn without_intervals(&self) -> SetScore {
        let (counts, macro_, classes) = self.figures(0..self.rows.len());
        SetScore { micro: counts.figures(), micro_f1_interval: None, macro_, macro_f1_interval: None, classes, counts }
    }

    /// The score with bootstrap intervals over rows.
    pub(super) fn with_intervals(&self, seed: u64) -> SetScore {
        let over = |pick: &dyn Fn((Counts, Figures, usize)) -> f64| {
            bootstrap(self.rows.len(), seed, |sample| pick(self.figures(sample.iter().copied())))
        };
        SetScore {
            micro_f1_interval: over(&|(counts, ..)| counts.figures().f1),
            macro_f1_interval: over(&|(_, mean, _)| mean.f1),
            ..self.without_intervals()
        }
    }

    /// The counted classes with their counts.
    pub(super) fn classes(&self) -> Vec<(K, Counts)> {
        let by_class = self.by_class(0..self.rows.len());
        self.counted(&by_class).map(|(class, counts)| (class.clone(), counts)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&[&'static str], &[&'static str])]) -> Vec<(BTreeSet<&'static str>, BTreeSet<&'static str>)> {
        rows.iter().map(|(gold, said)| (gold.iter().copied().collect(), said.iter().copied().collect())).collect()
    }

    #[test]
    fn micro_and_the_three_macros() {
        let rows = rows(&[(&["a", "b"], &["a"]), (&["a"], &["c"]), (&[], &[])]);
        let union = SetTally::new(&rows, Classes::Union).without_intervals();
        assert_eq!(union.counts, Counts { tp: 1, fp: 1, missed: 2 });
        assert!((union.micro.f1 - 0.4).abs() < 1e-12);
        // a: 2/3, b: 0, c: 0
        assert_eq!(union.classes, 3);
        assert!((union.macro_.f1 - 2.0 / 9.0).abs() < 1e-12);
        let gold = SetTally::new(&rows, Classes::Gold).without_intervals();
        assert_eq!(gold.classes, 2);
        assert!((gold.macro_.f1 - 1.0 / 3.0).abs() < 1e-12);
        let fixed = SetTally::new(&rows, Classes::Fixed(vec!["a", "x", "y", "z"])).without_intervals();
        assert_eq!(fixed.classes, 4);
        assert!((fixed.macro_.f1 - 1.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_zero_not_a_crash() {
        let empty = SetTally::<String>::new(&[], Classes::Union).with_intervals(0);
        assert_eq!((empty.micro.f1, empty.macro_.f1, empty.classes), (0.0, 0.0, 0));
    }

    #[test]
    fn a_class_that_a_resample_does_not_hold_does_not_count_in_it() {
        let classes: [&[&'static str]; 6] = [&["a"], &["b"], &["c"], &["d"], &["e"], &["f"]];
        let rows = rows(&classes.map(|class| (class, class)));
        for rule in [Classes::Union, Classes::Gold] {
            let score = SetTally::new(&rows, rule).with_intervals(0);
            assert_eq!(score.macro_f1_interval, Some(Interval { low: 1.0, high: 1.0 }), "all are right in each");
        }
    }

    #[test]
    fn intervals_hold_the_figure() {
        let rows: Vec<_> =
            (0..60).map(|i| (BTreeSet::from([i % 3]), BTreeSet::from([if i % 2 == 0 { i % 3 } else { 9 }]))).collect();
        let score = SetTally::new(&rows, Classes::Gold).with_intervals(5);
        let interval = score.micro_f1_interval.expect("asked for");
        assert!(interval.low < score.micro.f1 && score.micro.f1 < interval.high, "{score:?}");
        assert!(interval.high - interval.low < 0.35);
    }
}
