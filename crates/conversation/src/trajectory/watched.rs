//! What a rule saw in a run while it was under way, or afterwards in its record.

use serde::{Deserialize, Serialize};

use super::{AgentName, FailureMode, StepIndex};

/// A sign of trouble. It is a suspicion, never a label: nothing was executed to show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WatchSign {
    /// The rule, by name.
    pub rule: String,
    /// The agent at whose step it shows.
    pub agent: AgentName,
    /// Its instance, 0-based.
    #[serde(default)]
    pub instance: u32,
    /// The step at which it shows.
    pub step: StepIndex,
    /// The failure mode that it is a sign of, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<FailureMode>,
    /// What was seen, in words.
    pub seen: String,
    /// Words of the step that show it; empty where something is missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// Whether the run was stopped for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stops: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
