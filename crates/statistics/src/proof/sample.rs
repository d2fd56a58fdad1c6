//! What one execution says of a claim.

use serde::{Deserialize, Serialize};

use crate::trajectory::{Executions, Void};

/// What one execution says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProofSample {
    /// The task was solved.
    Passed,
    /// It was not.
    Failed,
    /// Nothing, and why.
    Void(Void),
}

impl ProofSample {
    /// Whether the task was solved; `None` where the execution says nothing.
    pub fn verdict(self) -> Option<bool> {
        match self {
            ProofSample::Passed => Some(true),
            ProofSample::Failed => Some(false),
            ProofSample::Void(_) => None,
        }
    }
}

/// The samples of an arm, counted.
pub fn counted(samples: &[ProofSample]) -> Executions {
    let mut counted = Executions::default();
    for sample in samples {
        match sample {
            ProofSample::Passed => counted.passed += 1,
            ProofSample::Failed => counted.failed += 1,
            ProofSample::Void(why) => *counted.void.entry(*why).or_default() += 1,
        }
    }
    counted
}

/// The samples of an arm that have a verdict, in order.
pub(super) fn verdicts(samples: &[ProofSample]) -> Vec<bool> {
    samples.iter().filter_map(|sample| sample.verdict()).collect()
}
