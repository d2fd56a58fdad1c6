//! The detectability probe: can a shallow classifier tell an injected reply from the clean twin's?
//!
//! Logistic regression over hashed words and pairs of words, digits masked, cross-validated so that no task is on both
//! sides. An injection that it tells with ease would teach a tracer the injection's style instead of the error.

use std::collections::BTreeMap;

use super::{
    Probed,
    pairs::{TwinPair, pairs},
};
use crate::{
    dataset::{Dataset, DatasetError, Index, split::words},
    trajectory::Interval,
};

/// Slots of hashed features.
const SLOTS: usize = 1 << 15;
/// Most features of one reply.
const FEATURES: usize = 400;
/// Parts of the cross-validation.
const FOLDS: u64 = 5;
/// Replies of each class, and tasks, from which on parts of several tasks are left out at a time.
pub(in crate::dataset) const FEWEST: usize = 10;
/// Fewest tasks for a figure: below, not even a perfect one is more than chance.
pub(in crate::dataset) const FEW_TASKS: usize = 4;
/// Rounds of training.
const ROUNDS: u32 = 12;
const RATE: f64 = 0.5;
const DECAY: f64 = 1e-4;
/// Words that are named as tells.
const TELLS: usize = 6;

/// A reply as numbers.
#[derive(Debug, Clone)]
struct ProbedReply {
    features: Vec<u32>,
    injected: bool,
    task: u64,
}

/// Replies by a name (the manipulator, or more), and the words behind the features.
#[derive(Debug, Default)]
pub(in crate::dataset) struct Replies {
    of: BTreeMap<String, Vec<ProbedReply>>,
    words: BTreeMap<u32, String>,
}

/// Probes all manipulators together, then each.
pub(super) fn probe(dataset: &Dataset, index: &Index) -> Result<Vec<Probed>, DatasetError> {
    let mut replies = Replies::default();
    pairs(dataset, index, |pair| {
        replies.pair(pair.error.operator.clone().unwrap_or_default(), pair);
        Ok(())
    })?;
    if replies.of.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<ProbedReply> = replies.of.values().flatten().cloned().collect();
    let mut probed = vec![probed("all", &all, &replies.words)];
    probed.extend(replies.each());
    Ok(probed)
}

impl Replies {
    /// Probes what was gathered under each name.
    pub(in crate::dataset) fn each(&self) -> Vec<Probed> {
        self.of.iter().map(|(name, own)| probed(name, own, &self.words)).collect()
    }

    /// Takes the two replies of a pair under a name.
    pub(in crate::dataset) fn pair(&mut self, name: String, pair: &TwinPair<'_>) {
        let (Some(said), Some(clean)) = (&pair.step.output, &pair.other.output) else { return };
        let task = hash(&words(&pair.failure.task.question));
        let of = [(&said.text, true), (&clean.text, false)].map(|(text, injected)| {
            let features = self.features(text);
            ProbedReply { features, injected, task }
        });
        self.of.entry(name).or_default().extend(of);
    }

    /// The slots of words and pairs of words, digits masked so that no number is learnt by heart.
    fn features(&mut self, text: &str) -> Vec<u32> {
        let masked: String =
            text.chars().flat_map(char::to_lowercase).map(|c| if c.is_numeric() { '0' } else { c }).collect();
        let words: Vec<&str> = masked.split_whitespace().collect();
        let pairs = words.windows(2).map(|pair| pair.join(" "));
        let mut features = Vec::new();
        for gram in words.iter().map(|word| (*word).to_owned()).chain(pairs).take(FEATURES) {
            let slot = u32::try_from(hash(&gram) % SLOTS as u64).unwrap_or_default();
            features.push(slot);
            self.words.entry(slot).or_insert_with(|| gram.chars().take(40).collect());
        }
        features.sort_unstable();
        features.dedup();
        features
    }
}

fn probed(manipulator: &str, replies: &[ProbedReply], words: &BTreeMap<u32, String>) -> Probed {
    let injected = replies.iter().filter(|reply| reply.injected).count();
    let clean = replies.len() - injected;
    let mut tasks: Vec<u64> = replies.iter().map(|reply| reply.task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let few = injected.min(clean).min(tasks.len()) < FEWEST;
    // Of few tasks each is left out by itself, so that there is something to learn from.
    let fold = |reply: &ProbedReply| if few { reply.task } else { reply.task % FOLDS };
    let folds: Vec<u64> = if few { tasks.clone() } else { (0..FOLDS).collect() };
    let auc = (tasks.len() >= FEW_TASKS).then(|| {
        let scored = folds.iter().flat_map(|of| {
            let (left_out, rest): (Vec<&ProbedReply>, Vec<&ProbedReply>) =
                replies.iter().partition(|reply| fold(reply) == *of);
            let model = ProbeModel::train(&rest);
            left_out.into_iter().map(move |reply| (model.score(&reply.features), reply.injected)).collect::<Vec<_>>()
        });
        area(scored.collect())
    });
    let interval = auc.map(|auc| if few { by_tasks(auc, tasks.len()) } else { interval(auc, injected, clean) });
    // Where chance explains the figure, no word tells anything.
    let told = interval.filter(|(low, _)| *low > 0.5);
    let tells = told.map(|_| ProbeModel::train(&replies.iter().collect::<Vec<_>>()).telling_words(words));
    Probed {
        manipulator: manipulator.to_owned(),
        injected: injected as u64,
        clean: clean as u64,
        auc,
        interval,
        tells: tells.unwrap_or_default(),
    }
}

/// Logistic regression, one weight a slot.
struct ProbeModel {
    weights: Vec<f64>,
    bias: f64,
}

impl ProbeModel {
    /// Stochastic gradient descent in a fixed order, so that the figure is the same each time.
    fn train(replies: &[&ProbedReply]) -> Self {
        let mut model = Self { weights: vec![0.0; SLOTS], bias: 0.0 };
        let mut order: Vec<(u64, &&ProbedReply)> =
            (0u64..).map(|number| hash(&number.to_string())).zip(replies).collect();
        order.sort_by_key(|(key, _)| *key);
        for round in 0..ROUNDS {
            let rate = RATE / f64::from(round + 1).sqrt();
            for (_, reply) in &order {
                model.step(reply, rate);
            }
        }
        model
    }

    fn step(&mut self, reply: &ProbedReply, rate: f64) {
        let value = scale(&reply.features);
        let wanted = if reply.injected { 1.0 } else { 0.0 };
        let slip = wanted - 1.0 / (1.0 + (-self.score(&reply.features)).exp());
        self.bias += rate * slip * 0.1;
        for slot in &reply.features {
            if let Some(weight) = self.weights.get_mut(*slot as usize) {
                *weight += rate * (slip * value - DECAY * *weight);
            }
        }
    }

    fn score(&self, features: &[u32]) -> f64 {
        let sum: f64 = features.iter().filter_map(|slot| self.weights.get(*slot as usize)).sum();
        self.bias + sum * scale(features)
    }

    fn telling_words(&self, words: &BTreeMap<u32, String>) -> Vec<String> {
        let mut heavy: Vec<(f64, &String)> = words
            .iter()
            .filter_map(|(slot, word)| self.weights.get(*slot as usize).map(|weight| (*weight, word)))
            .filter(|(weight, _)| *weight > 0.05)
            .collect();
        heavy.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        heavy.into_iter().take(TELLS).map(|(_, word)| word.clone()).collect()
    }
}

/// Long replies weigh no more than short ones.
#[expect(clippy::cast_precision_loss, reason = "at most a few hundred features")]
fn scale(features: &[u32]) -> f64 {
    1.0 / (features.len().max(1) as f64).sqrt()
}

/// The share of (injected, clean) pairs in which the injected one scores higher; ties count half.
#[expect(clippy::cast_precision_loss, reason = "ranks are far below 2^52")]
pub(in crate::dataset) fn area(mut scored: Vec<(f64, bool)>) -> f64 {
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let injected = scored.iter().filter(|(_, injected)| *injected).count();
    let clean = scored.len() - injected;
    let (mut ranks, mut begin) = (0.0, 0);
    while let Some((score, _)) = scored.get(begin) {
        let rest = scored.get(begin..).unwrap_or_default();
        let tied = rest.iter().take_while(|(other, _)| other.total_cmp(score).is_eq()).count().max(1);
        let ours = rest.iter().take(tied).filter(|(_, injected)| *injected).count();
        let middle = begin as f64 + f64::midpoint(tied as f64, 1.0);
        ranks += ours as f64 * middle;
        begin += tied;
    }
    let pairs = (injected * clean) as f64;
    if pairs == 0.0 { 0.5 } else { (ranks - (injected * (injected + 1)) as f64 / 2.0) / pairs }
}

/// The 95 % interval of an area (Hanley, `McNeil` 1982).
#[expect(clippy::cast_precision_loss, reason = "counts of replies")]
fn interval(auc: f64, injected: usize, clean: usize) -> (f64, f64) {
    let (injected, clean) = (injected as f64, clean as f64);
    let (q1, q2) = (auc / (2.0 - auc), 2.0 * auc * auc / (1.0 + auc));
    let variance = auc * (1.0 - auc) + (injected - 1.0) * (q1 - auc * auc) + (clean - 1.0) * (q2 - auc * auc);
    let spread = 1.96 * (variance.max(0.0) / (injected * clean)).sqrt();
    ((auc - spread).max(0.0), (auc + spread).min(1.0))
}

/// The 95 % interval of an area over few tasks (Wilson's, of so many draws): a perfect one is no certain one.
#[expect(clippy::cast_precision_loss, reason = "fewer than ten tasks")]
fn by_tasks(auc: f64, tasks: usize) -> (f64, f64) {
    let Interval { low, high } = Interval::wilson(auc * tasks as f64, tasks as f64);
    (low, high)
}

fn hash(text: &str) -> u64 {
    twox_hash::XxHash3_64::oneshot(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas() {
        for (scored, expected) in [
            (vec![(0.1, false), (0.9, true)], 1.0),
            (vec![(0.9, false), (0.1, true)], 0.0),
            (vec![(0.5, false), (0.5, true)], 0.5),
            (vec![(0.1, false), (0.2, true), (0.3, false), (0.4, true)], 0.75),
            (vec![(0.1, true)], 0.5),
        ] {
            assert!((area(scored.clone()) - expected).abs() < 1e-12, "{scored:?}");
        }
    }

    #[test]
    fn few_tasks_leave_a_wide_interval() {
        for (tasks, least) in [(4, 0.51), (7, 0.64), (9, 0.70)] {
            let (low, high) = by_tasks(1.0, tasks);
            assert!(low > least && low < least + 0.02 && (high - 1.0).abs() < 1e-9, "{tasks}: {low}");
        }
        assert!(by_tasks(1.0, FEW_TASKS - 1).0 < 0.5, "fewer say nothing");
    }

    #[test]
    fn a_perfect_area_has_no_spread() {
        let (low, high) = interval(1.0, 20, 20);
        assert!((low - 1.0).abs() < 1e-9 && (high - 1.0).abs() < 1e-9);
        let (low, high) = interval(0.5, 20, 20);
        assert!(low > 0.3 && low < 0.35 && high > 0.65 && high < 0.7, "{low} {high}");
    }
}
