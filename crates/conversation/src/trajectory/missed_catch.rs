//! Whether a later agent could have saved a run from the error that its label names.

use serde::{Deserialize, Serialize};

use super::{AgentName, Call, Executed, StepIndex};

/// What executions say of one agent that spoke after the error of a failed run: its step got another reply, all else ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MissedCatch {
    /// The agent.
    pub agent: AgentName,
    /// Its instance, 0-based.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instance: u32,
    /// The step of the run that stood for it, 0-based: the first of its steps that saves the run, else the first that was tried.
    pub step: StepIndex,
    /// The call of the agent instance, 0-based.
    pub call: Call,
    /// What is shown.
    pub state: CatchState,
    /// Where the other reply came from: `twin`, `analyzer`, `file` or `redraw`.
    pub source: String,
    /// What was executed: as recorded, and with the other reply.
    pub executed: Executed,
}

/// Whether a later agent could have saved a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchState {
    /// With another reply of the agent, and nothing else, the run passes: it missed the catch.
    Missed,
    /// An effect of its replies of the size that counts is excluded.
    Impossible,
    /// Neither is shown.
    Unknown,
}

impl CatchState {
    /// The words for it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Missed => "could have saved the run",
            Self::Impossible => "could not have saved the run",
            Self::Unknown => "not known whether it could have saved the run",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
