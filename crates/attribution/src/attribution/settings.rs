//! How a trace is made, and who hears of it.

use serde::Serialize;

use crate::{
    proof::{Order, ProofSample, Terms},
    trajectory::{RunId, StepIndex},
};

/// What a search has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SearchSpent {
    /// Executions of the program.
    pub runs: u64,
    /// Those of them that earlier starts of the same trace made.
    #[serde(skip_serializing_if = "is_zero")]
    pub resumed: u64,
    /// Live model calls of this start, those to an analyzer included.
    pub calls: u64,
    /// Tokens of the program's live calls, as the upstream counted them.
    pub live_tokens: u64,
    /// Tokens that came from the record instead.
    pub recorded_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How a trace is made.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// On what terms something counts as shown.
    pub terms: Terms,
    /// Which step is tested next.
    pub order: Order,
    /// Whether the steps before the first one that is shown are to be cleared.
    pub earliest: bool,
    /// Whether the last decisive step is sought too.
    pub last: bool,
    /// Whether pairs of steps are tried where no step heals the run alone.
    pub coupled: bool,
    /// Most executions of the program by this start.
    pub runs: Option<u64>,
    /// Executions at once, each for another step.
    pub jobs: u32,
    /// How often each agent as a whole is executed with its replies all corrected, or emptied; 0: not.
    pub agents: u32,
    /// What the ids of its runs are made from, where it goes on from no earlier start.
    pub salt: String,
}

/// Hears what a trace does.
pub trait Watch: Sync {
    /// An execution ended.
    fn executed(&self, told: &EndedExecution<'_>);
}

/// An execution that ended.
#[derive(Debug)]
pub struct EndedExecution<'a> {
    /// Its number in the trace, from 1.
    pub number: u64,
    /// Where it left the record.
    pub step: StepIndex,
    /// What it was: `as recorded`, `corrected`, …
    pub arm: &'static str,
    /// Its run.
    pub run: &'a RunId,
    /// What it says.
    pub sample: ProofSample,
}
