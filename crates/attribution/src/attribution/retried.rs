//! What a round of a retry came to, arm by arm.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Critique;
use crate::{
    proof::{self, ProofSample},
    trajectory::{Executions, Interval, RunId, StepIndex, difference},
};

/// What a round executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryArm {
    /// The step drawn anew, nothing said.
    Resample,
    /// The same note, to whoever speaks at another step, drawn anew for each execution.
    Elsewhere,
    /// A note at the step that says nothing in particular.
    CheckWork,
    /// The critique at the step.
    Critique,
}

/// One execution.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct RetryExecution {
    /// Its arm.
    pub arm: RetryArm,
    /// The step at which it left the record.
    pub step: StepIndex,
    /// Its run.
    pub run: RunId,
    /// Where that lies.
    #[serde(skip)]
    pub dir: PathBuf,
    /// What it says.
    #[serde(serialize_with = "in_a_word")]
    #[schemars(with = "String")]
    pub sample: ProofSample,
}

/// What an arm came to.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RetryArmFinding {
    /// The arm.
    pub arm: RetryArm,
    /// Its executions.
    #[serde(flatten)]
    pub executed: Executions,
    /// The share that passed, of those that tell.
    pub share: f64,
    /// Wilson's 95 % interval.
    pub interval: Interval,
}

/// What the critique adds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RetryGain {
    /// Its share less that of the best of the others.
    pub gain: f64,
    /// Newcombe's 95 % interval of that difference. That the best of three was picked is not in it.
    #[serde(flatten)]
    pub interval: Interval,
    /// The best of the others.
    pub over: RetryArm,
}

/// What a round came to.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct RetryRound {
    /// Its number, from 1.
    pub round: u32,
    /// The failed run that it started from.
    pub run: RunId,
    /// What was said to whom.
    pub critique: Critique,
    /// The arms, in order.
    pub arms: Vec<RetryArmFinding>,
    /// What the critique adds; none where one of the sides tells nothing.
    pub gain: Option<RetryGain>,
    /// The executions, in the order in which they were begun.
    pub executions: Vec<RetryExecution>,
    /// Whether the budget ended it.
    pub out_of_budget: bool,
    /// What a check said that could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrunnable_check: Option<String>,
}

impl RetryArm {
    /// All of them, in the order in which they are told.
    pub const ALL: [RetryArm; 4] = [RetryArm::Resample, RetryArm::Elsewhere, RetryArm::CheckWork, RetryArm::Critique];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            RetryArm::Resample => "resample",
            RetryArm::Elsewhere => "same note elsewhere",
            RetryArm::CheckWork => "check your work",
            RetryArm::Critique => "critique",
        }
    }
}

impl RetryRound {
    /// Whether a run with the critique passed at least once: alone it does not show that the critique did it.
    pub fn is_repaired(&self) -> bool {
        self.arm(RetryArm::Critique).is_some_and(|arm| arm.executed.passed > 0)
    }

    /// Whether any execution with the critique tells something.
    pub fn is_tried(&self) -> bool {
        self.arm(RetryArm::Critique).is_some_and(|arm| arm.executed.passed + arm.executed.failed > 0)
    }

    /// Why no execution with the critique tells anything: there was none, or none came to a verdict.
    pub fn untold(&self) -> String {
        let Some(arm) = self.arm(RetryArm::Critique) else { return "the note was not tried".to_owned() };
        let reasons: Vec<String> =
            arm.executed.void.iter().map(|(why, count)| format!("{count} {}", why.words())).collect();
        format!("no execution with the note tells anything ({})", reasons.join(", "))
    }

    /// An arm's figures.
    pub fn arm(&self, arm: RetryArm) -> Option<&RetryArmFinding> {
        self.arms.iter().find(|finding| finding.arm == arm)
    }

    /// The newest run in which the critique did not help.
    pub fn newest_failure(&self) -> Option<&RetryExecution> {
        let failed = |one: &&RetryExecution| one.arm == RetryArm::Critique && one.sample == ProofSample::Failed;
        self.executions.iter().rev().find(failed)
    }

    /// Counts what was executed; a sample is one execution of each of so many arms.
    pub(super) fn conclude(&mut self, arms: usize) {
        self.arms = findings(&self.executions);
        let whole = self.executions.len() - self.executions.len() % arms.max(1);
        self.gain = gain(&findings(self.executions.get(..whole).unwrap_or_default()), arms);
    }
}

/// What each arm came to.
fn findings(executions: &[RetryExecution]) -> Vec<RetryArmFinding> {
    let of_arm = |arm: RetryArm| {
        let samples: Vec<ProofSample> = executions.iter().filter(|one| one.arm == arm).map(|one| one.sample).collect();
        let executed = proof::counted(&samples);
        let told = executed.passed + executed.failed;
        let share = if told == 0 { 0.0 } else { f64::from(executed.passed) / f64::from(told) };
        let interval = Interval::wilson(f64::from(executed.passed), f64::from(told));
        (!samples.is_empty()).then_some(RetryArmFinding { arm, executed, share, interval })
    };
    RetryArm::ALL.into_iter().filter_map(of_arm).collect()
}

/// What the critique adds to the best of the others; nothing where one of so many arms tells nothing, for that could be the best.
fn gain(arms: &[RetryArmFinding], planned: usize) -> Option<RetryGain> {
    let told = |arm: &RetryArmFinding| arm.executed.passed + arm.executed.failed;
    if arms.len() < planned || arms.iter().any(|arm| told(arm) == 0) {
        return None;
    }
    let critique = arms.iter().find(|arm| arm.arm == RetryArm::Critique)?;
    let others = arms.iter().filter(|arm| arm.arm != RetryArm::Critique);
    // Of equal ones the first.
    let best = others.rev().max_by(|one, other| one.share.total_cmp(&other.share))?;
    let (gain, interval) = difference(critique.executed.tally(), best.executed.tally());
    Some(RetryGain { gain, interval, over: best.arm })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn in_a_word<S: serde::Serializer>(sample: &ProofSample, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match sample {
        ProofSample::Passed => "passed",
        ProofSample::Failed => "failed",
        ProofSample::Void(why) => why.words(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Void;

    /// The gain over what these executions came to, of three arms a sample.
    fn gain_of(executed: &[(RetryArm, ProofSample)]) -> Option<(f64, RetryArm)> {
        let execution = |(at, (arm, sample)): (usize, &(RetryArm, ProofSample))| RetryExecution {
            arm: *arm,
            step: 0,
            run: RunId::parse(&format!("f-{at}")).expect("an id"),
            dir: std::path::PathBuf::new(),
            sample: *sample,
        };
        let executions: Vec<_> = executed.iter().enumerate().map(execution).collect();
        let whole = executions.len() - executions.len() % 3;
        gain(&findings(&executions[..whole]), 3).map(|gain| (gain.gain, gain.over))
    }

    #[test]
    fn a_gain_is_over_all_that_else_could_have_helped_or_is_not_told() {
        use ProofSample::{Failed, Passed};
        use RetryArm::{CheckWork, Critique, Resample};
        let void = ProofSample::Void(Void::TimedOut);
        for (executed, gain) in [
            (&[(Critique, Passed), (Resample, Failed), (CheckWork, Failed)][..], Some((1.0, Resample))),
            (&[(Critique, Passed), (Resample, Failed), (CheckWork, Passed)], Some((0.0, CheckWork))),
            // Ended before the others were executed: one of them could have done as well.
            (&[(Critique, Passed), (Resample, Failed)], None),
            (&[(Critique, Passed), (Resample, Failed), (CheckWork, void)], None),
            (&[(Critique, void), (Resample, Failed), (CheckWork, Failed)], None),
            // A sample that was not ended counts for none of the arms.
            (
                &[(Resample, Failed), (CheckWork, Passed), (Critique, Passed), (Critique, Failed), (Resample, Failed)],
                Some((0.0, CheckWork)),
            ),
        ] {
            assert_eq!(gain_of(executed), gain, "{executed:?}");
        }
    }
}
