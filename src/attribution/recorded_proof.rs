//! What a proof keeps beside its run, so that a later one goes on from it.

use serde::{Deserialize, Serialize};

use super::prove::ProofOf;
use crate::{
    proof::{Arm, LeaveOneOut, NeedTerms, ProofSample, Sham},
    trajectory::Void,
};

/// What was executed so far, arm by arm: kept beside the run, so that a later proof goes on from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptProof {
    /// What was executed and how it was judged.
    pub of: ProofOf,
    /// Executions that were begun: one that was ended before its end has a recording too.
    pub begun: u32,
    /// With the injection.
    pub treated: Vec<ExecutionSaid>,
    /// Without it.
    pub null: Vec<ExecutionSaid>,
    /// Neutral changes of runs without it that failed, executed once more as the injection is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shams: Vec<KeptSham>,
    /// For each error of several, in their order. Earlier versions kept runs without one that were not made in turn with runs with
    /// all: those are not gone on from.
    #[serde(default)]
    pub left_out: Vec<KeptLeftOut>,
}

/// The neutral change of a run without the injection, executed once more as the injection is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptSham {
    /// The run's number in its arm, 0-based.
    pub control: u32,
    /// What each execution said.
    pub executions: Vec<ExecutionSaid>,
}

/// What was executed for one of several errors, in turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptLeftOut {
    /// Without what one injection did to one agent.
    pub without: Vec<ExecutionSaid>,
    /// With all.
    pub with_all: Vec<ExecutionSaid>,
}

/// What one execution said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionSaid {
    /// The task was solved.
    Passed,
    /// It was not.
    Failed,
    /// Nothing, and why.
    Void(Void),
}

impl From<ExecutionSaid> for ProofSample {
    fn from(said: ExecutionSaid) -> Self {
        match said {
            ExecutionSaid::Passed => ProofSample::Passed,
            ExecutionSaid::Failed => ProofSample::Failed,
            ExecutionSaid::Void(why) => ProofSample::Void(why),
        }
    }
}

impl From<ProofSample> for ExecutionSaid {
    fn from(sample: ProofSample) -> Self {
        match sample {
            ProofSample::Passed => ExecutionSaid::Passed,
            ProofSample::Failed => ExecutionSaid::Failed,
            ProofSample::Void(why) => ExecutionSaid::Void(why),
        }
    }
}

impl KeptSham {
    pub(super) fn sham(&self) -> Sham {
        Sham { control: self.control, samples: samples(&self.executions) }
    }
}

impl KeptLeftOut {
    /// Asks what these runs say of the error.
    pub(super) fn asked<T>(&self, terms: NeedTerms, ask: impl FnOnce(LeaveOneOut<'_>) -> T) -> T {
        let (without, with_all) = (samples(&self.without), samples(&self.with_all));
        ask(LeaveOneOut { without: &without, with_all: &with_all, terms })
    }

    pub(super) fn add(&mut self, arm: Arm, said: ExecutionSaid) {
        match arm {
            Arm::Null => self.without.push(said),
            Arm::Treated => self.with_all.push(said),
        }
    }
}
pub(super) fn samples(said: &[ExecutionSaid]) -> Vec<ProofSample> {
    said.iter().copied().map(ProofSample::from).collect()
}
