//! What a proof keeps beside its run, so that a later one goes on from it.

use serde::{Deserialize, Serialize};

use crate::proof::{Arm, LeaveOneOut, NeedTerms, ProofSample, Shams};

/// What executions are made of, each as the first 16 hex digits of a blake3: those of another check, program or upstream
/// say nothing here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProofOf {
    /// The command that judges.
    pub check: String,
    /// The program and its arguments.
    pub command: String,
    /// Where live calls go.
    pub upstream: String,
    /// Whether each had neutral changes of its own: earlier versions executed without.
    #[serde(default)]
    pub perturbed: bool,
    /// The user's own neutral sentences; empty where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sentences: String,
}

/// What was executed so far, arm by arm: kept beside the run, so that a later proof goes on from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RecordedProof {
    /// What was executed and how it was judged.
    pub of: ProofOf,
    /// Executions that were begun: one that was ended before its end has a recording too.
    pub begun: u32,
    /// With the injection.
    pub treated: Vec<ProofSample>,
    /// Without it.
    #[serde(rename = "null")]
    pub control: Vec<ProofSample>,
    /// Neutral changes of runs without it that failed, executed once more as the injection is.
    #[serde(default, skip_serializing_if = "Shams::is_empty")]
    pub shams: Shams,
    /// For each error of several, in their order. Earlier versions kept runs without one that were not made in turn with runs with
    /// all: those are not gone on from.
    #[serde(default)]
    pub left_out: Vec<LeaveOneOutRuns>,
}

impl RecordedProof {
    /// The executions of an arm, in order.
    pub(super) fn samples(&mut self, arm: Arm) -> &mut Vec<ProofSample> {
        match arm {
            Arm::Control => &mut self.control,
            Arm::Treated => &mut self.treated,
        }
    }
}

/// What was executed for one of several errors, in turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeaveOneOutRuns {
    /// Without what one injection did to one agent.
    pub without: Vec<ProofSample>,
    /// With all.
    pub with_all: Vec<ProofSample>,
}

impl LeaveOneOutRuns {
    /// Asks what these runs say of the error.
    pub(super) fn with_runs<T>(&self, terms: NeedTerms, ask: impl FnOnce(LeaveOneOut<'_>) -> T) -> T {
        ask(LeaveOneOut { without: &self.without, with_all: &self.with_all, terms })
    }

    /// Adds what an execution says.
    pub(super) fn add(&mut self, arm: Arm, sample: ProofSample) {
        match arm {
            Arm::Control => self.without.push(sample),
            Arm::Treated => self.with_all.push(sample),
        }
    }
}
