//! A call that met trouble, with all that rules need to know of it.

use std::time::Duration;

use super::Met;
use crate::trajectory::{self, AgentName, Outcome, ProgramEnd, RetryEvidence, StepIndex, Verdict};

/// The shortest pause between two equal requests that shows by itself that somebody waits in order to try again.
pub(super) const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// How long after a failure calls of a program that the failure ends may still begin, where several are made at once.
const PARALLEL: Duration = Duration::from_secs(1);

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
    /// When calls began, whoever made them, after the last try had ended: the latest, since the beginning of the recording.
    pub asked_on: Option<Duration>,
    /// A later step that may be another try of it, which cannot be told.
    pub may_go_on_at: Option<StepIndex>,
    /// Whether its agent asked the same words again after they had been answered: then equal words are no sign of a retry.
    pub repeated: bool,
    /// When the program ended, since the beginning of the recording, where that is known.
    pub program_ended: Option<Duration>,
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
    /// Why it counts as another try; `None` for the first, and in recordings that do not say.
    pub retry: Option<RetryEvidence>,
    /// Whether it came with another credential than the try before.
    pub other_key: bool,
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

    /// The same without what may be a call of its own: equal words that follow a failure at once, only once, are no proof of a
    /// try.
    pub fn sure_waits(&self) -> impl Iterator<Item = (&Try, &Try, Duration)> {
        let pairs = self.tries.iter().zip(self.tries.iter().skip(1));
        let waits = pairs.map(|(one, next)| (one, next, next.began.saturating_sub(one.ended)));
        waits.filter(|(_, next, waited)| self.is_sure(next, *waited))
    }

    fn is_sure(&self, next: &Try, waited: Duration) -> bool {
        match next.retry {
            Some(RetryEvidence::Equal) => !self.repeated && (waited >= SHORTEST_PAUSE || self.tries.len() > 2),
            Some(RetryEvidence::Counted | RetryEvidence::Reference) | None => true,
        }
    }

    /// Whether some of its tries may be calls of their own.
    pub fn has_doubtful_tries(&self) -> bool {
        self.sure_waits().count() + 1 < self.tries.len()
    }

    /// Whether the client was still waiting for the last try when its program was ended for its time.
    pub fn was_ended_waiting(&self) -> bool {
        let at_the_end = |last: &Try| self.program_ended.is_none_or(|ended| ended <= last.ended + PARALLEL);
        self.program == Some(ProgramEnd::TimedOut) && self.last().is_some_and(at_the_end)
    }

    /// Whether the program ended by an error right after the call, and nobody called that a success. Calls that began at the
    /// same time were others' that were made beside it.
    pub fn ends_in_error(&self) -> bool {
        let failed = match self.program {
            Some(ProgramEnd::Exited(code)) => code != 0,
            Some(ProgramEnd::Signalled(_)) => true,
            _ => false,
        };
        let beside = |began: Duration| self.last().is_some_and(|last| began <= last.ended + PARALLEL);
        failed && self.asked_on.is_none_or(beside) && self.outcome.verdict != Verdict::Success
    }

    /// Whether the program ended by itself and well.
    pub fn program_ended_well(&self) -> bool {
        self.program == Some(ProgramEnd::Exited(0)) && self.outcome.verdict != Verdict::Failure
    }
}
