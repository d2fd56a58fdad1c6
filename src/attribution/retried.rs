//! What a round of a retry came to, arm by arm.

use std::path::PathBuf;

use serde::Serialize;

use super::Critique;
use crate::{
    proof::{self, ProofSample},
    trajectory::{Executions, Interval, RunId, StepIndex, difference},
};

/// What a round executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
#[derive(Debug, Clone, Serialize)]
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
    pub sample: ProofSample,
}

/// What an arm came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
#[derive(Debug, Clone, Serialize)]
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
    /// All of them, in the order in which each sample executes them.
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
    /// Whether the critique repaired the run at least once.
    pub fn is_repaired(&self) -> bool {
        self.arm(RetryArm::Critique).is_some_and(|arm| arm.executed.passed > 0)
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

    /// Counts what was executed.
    pub(super) fn conclude(&mut self) {
        for arm in RetryArm::ALL {
            let samples: Vec<ProofSample> =
                self.executions.iter().filter(|one| one.arm == arm).map(|one| one.sample).collect();
            if samples.is_empty() {
                continue;
            }
            let executed = proof::counted(&samples);
            let told = executed.passed + executed.failed;
            let share = if told == 0 { 0.0 } else { f64::from(executed.passed) / f64::from(told) };
            let interval = Interval::wilson(f64::from(executed.passed), f64::from(told));
            self.arms.push(RetryArmFinding { arm, executed, share, interval });
        }
        self.gain = gain(&self.arms);
    }
}

/// What the critique adds to the best of the others.
fn gain(arms: &[RetryArmFinding]) -> Option<RetryGain> {
    let told = |arm: &RetryArmFinding| arm.executed.passed + arm.executed.failed;
    let critique = arms.iter().find(|arm| arm.arm == RetryArm::Critique).filter(|arm| told(arm) > 0)?;
    let others = arms.iter().filter(|arm| arm.arm != RetryArm::Critique && told(arm) > 0);
    // Of equal ones the first.
    let best = others.rev().max_by(|one, other| one.share.total_cmp(&other.share))?;
    let of = |arm: &RetryArmFinding| (arm.executed.passed, told(arm));
    let (gain, interval) = difference(of(critique), of(best));
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
