//! What critiques add over many failed runs: each arm over all of them, and run by run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{RetryArm, RetryRound};
use crate::{
    score,
    trajectory::{Interval, Proportion, difference},
};

/// Seed of the bootstrap, so that two sums of the same runs say the same.
const SEED: u64 = 0;

/// The first round of one run's retry: later rounds start from other failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RetriedRun {
    /// The run, by its directory's name.
    pub run: String,
    /// Who was asked for the error, as the user named it.
    pub asked: String,
    /// Who named it: a method, a tracer, or `label`.
    pub source: String,
    /// Each arm's executions that passed, and those that tell.
    pub arms: BTreeMap<RetryArm, [u32; 2]>,
}

/// What one method's critiques add.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CorpusGain {
    /// Who was asked.
    pub asked: String,
    /// Runs with executions of every arm that was planned.
    pub runs: usize,
    /// Runs whose step a label named: it was executed, and outranks a suspicion.
    pub labelled: usize,
    /// Each arm's executions over all runs.
    pub arms: BTreeMap<RetryArm, [u32; 2]>,
    /// The best of the other arms.
    pub over: RetryArm,
    /// The critique's share less that arm's, over all executions.
    pub gain: f64,
    /// Newcombe's 95 % interval of it.
    pub interval: Interval,
    /// The mean over runs of the same difference within each run.
    pub paired: f64,
    /// Its 95 % bootstrap interval over runs; none of fewer than six.
    pub paired_interval: Option<Interval>,
}

impl RetriedRun {
    /// What a round came to.
    pub fn of_round(run: &str, asked: &str, round: &RetryRound) -> Self {
        let counts = round.arms.iter().map(|found| {
            let executed = &found.executed;
            (found.arm, [executed.passed, executed.passed + executed.failed])
        });
        Self {
            run: run.to_owned(),
            asked: asked.to_owned(),
            source: round.critique.source.clone(),
            arms: counts.collect(),
        }
    }

    fn share(&self, arm: RetryArm) -> Option<f64> {
        self.arms.get(&arm).copied().and_then(share)
    }
}

fn share([passed, told]: [u32; 2]) -> Option<f64> {
    (told > 0).then(|| f64::from(passed) / f64::from(told))
}

impl CorpusGain {
    /// The sum of the runs for which one source was asked; `None` where no run tells something in the critique and in another arm.
    pub fn of_runs(asked: &str, runs: &[RetriedRun]) -> Option<Self> {
        let is_told = |run: &&RetriedRun| run.share(RetryArm::Critique).is_some() && run.arms.len() > 1;
        let runs: Vec<&RetriedRun> = runs.iter().filter(|run| run.asked == asked).filter(is_told).collect();
        let mut arms: BTreeMap<RetryArm, [u32; 2]> = BTreeMap::new();
        for (arm, [passed, told]) in runs.iter().flat_map(|run| &run.arms) {
            let sum = arms.entry(*arm).or_default();
            *sum = [sum[0] + passed, sum[1] + told];
        }
        let others = arms.iter().filter(|(arm, _)| **arm != RetryArm::Critique);
        let others = others.filter_map(|(arm, counts)| Some((*arm, share(*counts)?)));
        let (over, _) = others.rev().max_by(|one, other| one.1.total_cmp(&other.1))?;
        let counts =
            |arm: RetryArm| arms.get(&arm).map_or(Proportion::new(0, 0), |[passed, of]| Proportion::new(*passed, *of));
        let (gain, interval) = difference(counts(RetryArm::Critique), counts(over));
        let within = |run: &&&RetriedRun| Some(run.share(RetryArm::Critique)? - run.share(over)?);
        let differences: Vec<f64> = runs.iter().filter_map(|run| within(&run)).collect();
        let mean = |rows: &[usize]| {
            let sum: f64 = rows.iter().filter_map(|row| differences.get(*row)).sum();
            sum / f64::from(u32::try_from(rows.len().max(1)).unwrap_or(u32::MAX))
        };
        let all: Vec<usize> = (0..differences.len()).collect();
        Some(Self {
            asked: asked.to_owned(),
            runs: runs.len(),
            labelled: runs.iter().filter(|run| run.source == super::LABEL_SOURCE).count(),
            paired: mean(&all),
            paired_interval: score::bootstrap(differences.len(), SEED, mean),
            arms,
            over,
            gain,
            interval,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, asked: &str, arms: &[(RetryArm, [u32; 2])]) -> RetriedRun {
        RetriedRun {
            run: name.to_owned(),
            asked: asked.to_owned(),
            source: if name == "a" { super::super::LABEL_SOURCE.to_owned() } else { asked.to_owned() },
            arms: arms.iter().copied().collect(),
        }
    }

    #[test]
    fn a_gain_is_over_the_best_of_all_others_and_within_each_run() {
        use RetryArm::{CheckWork, Critique, Resample};
        let runs = [
            run("a", "x", &[(Critique, [3, 3]), (Resample, [0, 3]), (CheckWork, [1, 3])]),
            run("b", "x", &[(Critique, [1, 2]), (Resample, [0, 3]), (CheckWork, [1, 2])]),
            run("c", "x", &[(Critique, [0, 0]), (Resample, [3, 3])]),
            run("d", "y", &[(Critique, [0, 3]), (Resample, [3, 3])]),
        ];
        let gain = CorpusGain::of_runs("x", &runs).expect("two runs tell something");
        assert_eq!((gain.runs, gain.labelled, gain.over), (2, 1, CheckWork));
        assert_eq!((gain.arms[&Critique], gain.arms[&CheckWork]), ([4, 5], [2, 5]));
        assert!((gain.gain - 0.4).abs() < 1e-9 && gain.interval.low < 0.4 && gain.interval.high > 0.4);
        assert!((gain.paired - 1.0 / 3.0).abs() < 1e-9, "2/3 and 0: {}", gain.paired);
        assert_eq!(gain.paired_interval, None, "two runs are few");
        // A control that wins is said as one.
        let lost = CorpusGain::of_runs("y", &runs).expect("a run");
        assert!(lost.gain < -0.99 && lost.over == Resample);
        assert_eq!(CorpusGain::of_runs("z", &runs), None);
    }

    #[test]
    fn many_runs_have_an_interval_of_their_pairs() {
        use RetryArm::{Critique, Resample};
        let runs: Vec<RetriedRun> =
            (0..10).map(|at| run(&format!("r{at}"), "x", &[(Critique, [at % 2, 1]), (Resample, [0, 1])])).collect();
        let gain = CorpusGain::of_runs("x", &runs).expect("runs");
        let interval = gain.paired_interval.expect("an interval");
        assert!((gain.paired - 0.5).abs() < 1e-9 && interval.low > 0.0 && interval.high < 1.0, "{interval:?}");
    }
}
