//! A step that a record does not have.

use crate::trajectory::StepIndex;

/// The fork point is not in the record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step {step} is not in the record: {}", match last { Some(last) => format!("expected 0 to {last}"), None => "it has no step at all".to_owned() })]
pub struct NoSuchStep {
    /// The step that was asked for.
    pub step: StepIndex,
    /// The last recorded step.
    pub last: Option<StepIndex>,
}
