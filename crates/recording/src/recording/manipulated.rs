//! What a record says of edits beside what they changed.

use bytes::Bytes;

use crate::trajectory::{StepIndex, Usage};

/// An edit that could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManipulatorFailure {
    /// Step of the run.
    pub step: StepIndex,
    /// Attempt of the step.
    pub attempt: u32,
    /// Index of the injection in its plan.
    pub injection: u32,
    /// The manipulator, by name.
    pub operator: String,
    /// Why.
    pub why: String,
    /// Whether there was nothing to edit, as against an edit that failed.
    pub nothing: bool,
}

/// What a manipulator asked its model, and what that said.
#[derive(Debug, Clone, PartialEq)]
pub struct ManipulatorQuestion {
    /// Step of the run.
    pub step: StepIndex,
    /// Attempt of the step.
    pub attempt: u32,
    /// Index of the injection in its plan.
    pub injection: u32,
    /// The manipulator, by name.
    pub operator: String,
    /// Whom it asked.
    pub upstream: String,
    /// The model that was asked for.
    pub model: String,
    /// What the question was made from, with its version.
    pub template: String,
    /// The question's body.
    pub question: Bytes,
    /// The answer's body; empty when none came.
    pub answer: Bytes,
    /// Why there is no answer that could be read.
    pub error: Option<String>,
    /// What was changed in the question on its way, because the upstream refuses it: in words.
    pub changed: Option<String>,
    /// Token counts as the backend said them.
    pub usage: Option<Usage>,
    /// What it cost, in the unit of the configured prices.
    pub cost: Option<f64>,
    /// How long it took, in microseconds.
    pub took_us: u64,
}
