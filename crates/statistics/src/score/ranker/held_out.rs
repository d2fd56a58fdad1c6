//! What a ranker is worth on runs that it did not learn from, beside the order of the run itself.

use std::collections::BTreeMap;

use super::{
    super::{Interval, bootstrap},
    LinearRanker, RankerRun, real,
};

/// Most groups that are left out one by one; more are put together, by turns.
const FOLDS_MAX: usize = 40;

/// How soon the blamed step comes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LooksTaken {
    /// Steps that are looked at until then, it included, in the mean.
    pub mean: f64,
    /// Runs in which it is the first.
    pub first: usize,
    /// Runs in which it is among the first three.
    pub top_3: usize,
}

/// What came of runs that were left out of learning, group by group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOut {
    /// Groups that were left out.
    pub groups: usize,
    /// Runs in them.
    pub runs: usize,
    /// In the order of the ranker.
    pub ranker: LooksTaken,
    /// In the order of the run.
    pub scan: LooksTaken,
    /// Looks that the ranker saves a run, in the mean.
    pub saved: f64,
    /// The same at 95 %, over tasks; `None` where there are fewer than [`RESAMPLED_MIN`](super::super::RESAMPLED_MIN).
    pub interval: Option<Interval>,
}

impl HeldOut {
    /// Whether it saves looks, for sure.
    pub fn beats_scan(&self) -> bool {
        self.interval.is_some_and(|interval| interval.low > 0.0)
    }
}

/// Leaves out each group of runs, learns from the others, and ranks every step of those that were left out. `None` where there
/// are no two groups.
pub fn held_out(runs: &[RankerRun], group: impl Fn(&RankerRun) -> String) -> Option<HeldOut> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        let next = numbers.len();
        numbers.entry(group(run)).or_insert(next);
    }
    let groups = numbers.len();
    if groups < 2 {
        return None;
    }
    let fold = |run: &RankerRun| numbers.get(&group(run)).map(|number| number % FOLDS_MAX);
    let mut looks: Vec<(&str, usize, usize)> = Vec::new();
    for left in 0..groups.min(FOLDS_MAX) {
        let (test, train): (Vec<&RankerRun>, Vec<&RankerRun>) = runs.iter().partition(|run| fold(run) == Some(left));
        let ranker = LinearRanker::train(&train);
        looks.extend(test.iter().filter_map(|run| {
            let (ranked, scanned) = looks_of(run, &ranker)?;
            Some((run.task.as_str(), ranked, scanned))
        }));
    }
    let of = |which: fn(&(&str, usize, usize)) -> usize| LooksTaken {
        mean: looks.iter().map(|looks| real(which(looks))).sum::<f64>() / real(looks.len().max(1)),
        first: looks.iter().filter(|looks| which(looks) == 1).count(),
        top_3: looks.iter().filter(|looks| which(looks) <= 3).count(),
    };
    let (ranker, scan) = (of(|(_, ranked, _)| *ranked), of(|(_, _, scanned)| *scanned));
    let interval = resampled(&looks);
    Some(HeldOut { groups, runs: looks.len(), ranker, scan, saved: scan.mean - ranker.mean, interval })
}

/// How many steps are looked at until the first blamed one, by the ranker and in the order of the run. Every step of the run
/// counts, also those of which nothing is known: a ranker that likes the wrong ones pays for it.
fn looks_of(run: &RankerRun, ranker: &LinearRanker) -> Option<(usize, usize)> {
    let scores: Vec<f64> = run.steps.iter().map(|step| ranker.score(step)).collect();
    let mut ranked: Vec<usize> = (0..scores.len()).collect();
    let score = |place: usize| scores.get(place).copied().unwrap_or(f64::NEG_INFINITY);
    // Stable: of equals the earlier step stays first.
    ranked.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
    let is_blamed = |place: &usize| run.blamed.contains(place);
    Some((ranked.iter().position(is_blamed)? + 1, (0..scores.len()).position(|place| is_blamed(&place))? + 1))
}

/// The mean saving at 95 %, where tasks are drawn again: runs of one task are no independent evidence.
fn resampled(looks: &[(&str, usize, usize)]) -> Option<Interval> {
    let mut by_task: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (task, ranked, scanned) in looks {
        let entry = by_task.entry(task).or_default();
        (entry.0, entry.1) = (entry.0 + real(*scanned) - real(*ranked), entry.1 + 1.0);
    }
    let tasks: Vec<(f64, f64)> = by_task.into_values().collect();
    bootstrap(tasks.len(), 1, |drawn| {
        let drawn = drawn.iter().filter_map(|task| tasks.get(*task));
        let (saved, runs) = drawn.fold((0.0, 0.0), |sum, task| (sum.0 + task.0, sum.1 + task.1));
        if runs > 0.0 { saved / runs } else { 0.0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of ten steps whose blamed step is marked by the second number, or by nothing; all else is drawn.
    fn runs(marked: bool) -> Vec<RankerRun> {
        let run = |number: usize| {
            let mut draws = blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof();
            let mut drawn = || {
                let mut bytes = [0; 4];
                draws.fill(&mut bytes);
                f64::from(u32::from_le_bytes(bytes)) / 4_294_967_296.0
            };
            let blamed = (drawn() * 10.0) as usize;
            let mark = |place: usize| if marked && place == blamed { 1.0 } else { 0.0 };
            RankerRun {
                system: format!("s{}", number % 3),
                task: format!("t{number}"),
                steps: (0..10).map(|place| vec![real(place), mark(place), drawn(), drawn()]).collect(),
                blamed: vec![blamed],
                cleared: (0..10).filter(|place| *place != blamed).collect(),
            }
        };
        (0..40).map(run).collect()
    }

    #[test]
    fn what_is_learned_saves_looks_and_noise_does_not() {
        for by in [|run: &RankerRun| run.system.clone(), |run: &RankerRun| run.task.clone()] {
            let learned = held_out(&runs(true), by).expect("groups");
            assert_eq!((learned.runs, learned.ranker.first, learned.ranker.mean), (40, 40, 1.0), "{learned:?}");
            assert!(
                learned.beats_scan()
                    && learned.saved > 2.0
                    && learned.interval.is_some_and(|interval| interval.low <= learned.saved),
                "{learned:?}"
            );
            assert_eq!(held_out(&runs(true), by), Some(learned), "the same each time");
            let noise = held_out(&runs(false), by).expect("groups");
            assert!(!noise.beats_scan(), "{noise:?}");
        }
        assert_eq!(held_out(&runs(true), |_| "one".to_owned()), None);
        let few = held_out(&runs(true)[..5], |run| run.task.clone()).expect("groups");
        assert!(few.saved > 0.0 && !few.beats_scan(), "five tasks are luck: {few:?}");
        assert_eq!(held_out(&[], |run| run.task.clone()), None);
    }
}
