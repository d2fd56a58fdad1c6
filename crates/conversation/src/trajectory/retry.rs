//! Whether a request is a call of its own or another try of an earlier one, as it is written down.

use serde::{Deserialize, Serialize};

use super::{AgentName, StepIndex};

/// Why a request counts as another try of an earlier call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryEvidence {
    /// The client counts its tries and says so (`x-stainless-retry-count`).
    Counted,
    /// The program asks this less often where nothing fails: a run of it without faults tells.
    Reference,
    /// The same words follow a call that failed, and nothing says that the program asks them more than once.
    Equal,
}

/// What the record of a request says of its place among the calls of its agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RecordedRelation {
    /// Why it counts as another try of its step; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryEvidence>,
    /// The earlier step that it may try again, where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_repeat: Option<StepIndex>,
    /// Whether it comes with another credential than the try before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_key: bool,
    /// The agent that a tool is called for, where the request names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<AgentName>,
}

impl RecordedRelation {
    /// That of a call of its own.
    pub fn first() -> &'static Self {
        static FIRST: RecordedRelation =
            RecordedRelation { retry: None, may_repeat: None, other_key: false, called_by: None };
        &FIRST
    }
}
