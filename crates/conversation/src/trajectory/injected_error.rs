//! What was really applied to one side of one step.

use serde::{Deserialize, Serialize};

use super::{AgentName, Call, FailureMode, PrincipalKind, StepIndex};

/// The part of an exchange that an injection touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// What the agent's model is asked (the papers' prompt injection).
    Request,
    /// What the agent's model answered (the papers' response corruption).
    Response,
}

/// What was really applied to one side of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InjectedError {
    /// Index of the injection in its plan, 0-based.
    pub injection: u32,
    /// The agent that was hit.
    pub agent: AgentName,
    /// Its instance, 0-based.
    pub instance: u32,
    /// The planted failure mode; `None` for faults, and where nobody planted anything.
    pub failure_mode: Option<FailureMode>,
    /// Which side was edited.
    pub side: Side,
    /// The manipulator or fault, by name.
    pub operator: String,
    /// The agent whose words alone were edited, by the name that the upstream gives it, where the reply is that of a team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<AgentName>,
    /// Step of the run, 0-based.
    pub step: StepIndex,
    /// Call of the agent instance, 0-based; of an agent that the upstream names, its number among the replies in which it speaks.
    pub call: Call,
    /// Attempt of the step that it was last applied to, 0-based.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// blake3 of the body's bytes before the edit, as the log has them. Earlier versions wrote it as `before`.
    #[serde(rename = "before_bytes", alias = "before")]
    pub before: String,
    /// blake3 of the body's bytes after the edit.
    #[serde(rename = "after_bytes", alias = "after")]
    pub after: String,
    /// Whether the altered bytes reached whom they were meant for.
    pub delivered: bool,
}

/// The manipulator that alters what an agent got of a tool.
pub const ALTERS_TOOL_RESULTS: &str = "corrupt_tool_result";
/// The operator of a request that tells the upstream what its program got, where the upstream keeps another reply.
pub const RETELL: &str = "retell";

impl InjectedError {
    /// What erred. An altered result is an error of the tool, also where it was altered on its way to an agent's model.
    pub fn culprit(&self) -> PrincipalKind {
        if self.operator == ALTERS_TOOL_RESULTS { PrincipalKind::Tool } else { self.agent.kind() }
    }
}

/// The faults of plans, by name: at a tool or a peer, where neither faults nor edits plant a mode, the name alone tells one from the
/// other. A test beside the list of faults holds that these are all.
pub const FAULTS: [&str; 24] = [
    "latency",
    "slow_stream",
    "hang",
    "refuse_connection",
    "reset",
    "cut",
    "status",
    "rate_limit",
    "rpc_error",
    "html_page",
    "empty_body",
    "wrong_content_type",
    "malformed_chunk",
    "bad_utf8",
    "repeat_frames",
    "reorder_frames",
    "drop_frames",
    "error_event",
    "wrong_model",
    "wrong_finish",
    "wrong_field",
    "stale_answer",
    "spoil_answer",
    "spoil_tool_call",
];

impl InjectedError {
    /// Whether the agent goes by the name that the upstream gives it, not by that of the agent that asks.
    pub fn is_named_by_upstream(&self) -> bool {
        self.speaker.as_ref() == Some(&self.agent)
    }

    /// Whether it is the error of an agent; that of a tool or a peer has no failure mode.
    pub fn is_of_agent(&self) -> bool {
        self.agent.is_agent()
    }

    /// Whether it is a fault: those plant no mode. What acts on a request plants none either where it only mends what
    /// the upstream keeps.
    pub fn is_fault(&self) -> bool {
        let is_fault = self.is_of_agent() || FAULTS.contains(&self.operator.as_str());
        self.failure_mode.is_none() && self.side == Side::Response && is_fault
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
