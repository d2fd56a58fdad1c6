//! A call that met trouble, with all that rules need to know of it.

use std::time::Duration;

use super::Met;
use crate::trajectory::{self, AgentName, Outcome, ProgramEnd, StepIndex, Verdict};

/// A model call that met trouble: its tries, whoever made them (an SDK, or the program with the same request), and what
/// came after.
#[derive(Debug, Clone)]
pub struct TroubledCall {
    /// Who made it.
    pub agent: AgentName,
    /// Which of several equal agents, 0-based.
    pub instance: u32,
    /// The step of its first try.
    pub step: StepIndex,
    /// The agent's own number of that step, 0-based.
    pub call: trajectory::Call,
    /// The tries, oldest first; never empty.
    pub tries: Vec<Try>,
    /// The later step whose request quotes the last reply.
    pub quoted_at: Option<StepIndex>,
    /// Whether any agent asked anything after the last try had ended.
    pub asked_on: bool,
    /// How the program ended, where that is known.
    pub program: Option<ProgramEnd>,
    /// What the run achieved.
    pub outcome: Outcome,
}

/// One try of a call.
#[derive(Debug, Clone)]
pub struct Try {
    /// Its step: another than the call's where the program itself asked again.
    pub step: StepIndex,
    /// Its number within that step, 0 for the first.
    pub attempt: u32,
    /// The planned faults that acted on it, by their index in the plan.
    pub faults: Vec<u32>,
    /// What it met.
    pub met: Met,
    /// When its request arrived, since the beginning of the recording.
    pub began: Duration,
    /// When its reply was over.
    pub ended: Duration,
}

impl TroubledCall {
    /// The last try.
    pub fn last(&self) -> Option<&Try> {
        self.tries.last()
    }

    /// Whether the last try was answered with a reply that can be read to its end.
    pub fn is_answered(&self) -> bool {
        self.last().is_some_and(|last| last.met.is_answer())
    }

    /// Each try but the last, with the time that the client waited before the next one.
    pub fn waits(&self) -> impl Iterator<Item = (&Try, Duration)> {
        self.tries.iter().zip(self.tries.iter().skip(1)).map(|(one, next)| (one, next.began.saturating_sub(one.ended)))
    }

    /// Whether the program ended by an error right after the call, and nobody called that a success.
    pub fn ends_in_error(&self) -> bool {
        let failed = match self.program {
            Some(ProgramEnd::Exited(code)) => code != 0,
            Some(ProgramEnd::Signalled(_)) => true,
            _ => false,
        };
        failed && !self.asked_on && self.outcome.verdict != Verdict::Success
    }

    /// Whether the program ended by itself and well.
    pub fn program_ended_well(&self) -> bool {
        self.program == Some(ProgramEnd::Exited(0)) && self.outcome.verdict != Verdict::Failure
    }
}
