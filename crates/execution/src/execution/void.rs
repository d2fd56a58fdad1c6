//! When an execution says nothing, whatever its outcome: the one rule of all verbs.

use super::{Halt, Judge};
use crate::{
    launch::Ending,
    replay::ReplayReport,
    surface::{answers_unread, is_unread},
    trajectory::{
        CallEnding, CloseCause, InjectedError, RefusalKind, Step, Void, ended_by_upstream, refused_as_edited,
    },
};

/// How an execution ended, as far as it decides whether it counts.
pub(super) struct ExecutionEnd<'a> {
    pub(super) steps: &'a [Step],
    /// What came from a record, where one answered.
    pub(super) replay: Option<&'a ReplayReport>,
    pub(super) ending: Ending,
    pub(super) halt: Option<Halt>,
    pub(super) judge: &'a Judge,
    /// Whether the recorded program was ended by a signal too: then that is what the program does.
    pub(super) crashed_before: bool,
}

impl ExecutionEnd<'_> {
    /// Why the execution says nothing.
    pub(super) fn void(&self) -> Option<Void> {
        let mut attempts = self.steps.iter().flat_map(|step| &step.attempts);
        let refused = attempts.any(|attempt| attempt.cause == Some(CloseCause::Refused));
        let is_live = |step: &&Step| self.replay.is_none_or(|report| report.live.contains(&step.step));
        let live = || self.steps.iter().filter(is_live);
        let diverged = self.replay.is_some_and(|report| report.diverged.is_some());
        match (self.halt, self.ending) {
            (Some(Halt::Diverged), _) => Some(Void::Diverged),
            _ if diverged => Some(Void::Diverged),
            (Some(Halt::Budget | Halt::Price), _) => Some(Void::Budget),
            _ if refused || live().any(|step| ended_by_upstream(step) && !self.is_beyond_calls(step)) => {
                Some(Void::Unanswered)
            }
            (Some(Halt::Calls), _) => Some(Void::TimedOut),
            _ if live().any(is_refused) => Some(Void::Unanswered),
            (_, Ending::TimedOut) => Some(Void::TimedOut),
            (_, Ending::Signalled(_)) if !self.crashed_before => Some(Void::Crashed),
            (_, ending) if self.judge.is_crash(ending) => Some(Void::Crashed),
            _ => None,
        }
    }

    /// Whether a step was asked beyond the calls that the program may make: then we refused it, with 402, and not the upstream.
    fn is_beyond_calls(&self, step: &Step) -> bool {
        let status = step.last_attempt().and_then(|last| last.status);
        self.halt == Some(Halt::Calls) && status == Some(402)
    }
}

/// Whether a model was to answer: not so of a token count, nor of what older recordings call `opaque`.
fn asks_model(step: &Step) -> bool {
    step.surface != "opaque" && (!is_unread(&step.surface) || answers_unread(&step.surface))
}

/// Whether the upstream refused a step for what an edit had made of it, or for a reason that is not about what was asked. A
/// planted fault is no refusal of the upstream, and what is no model call asks the model nothing.
fn is_refused(step: &Step) -> bool {
    // No such place, or another request in the way: the kind of a refusal does not tell these from faults of the request.
    const ABOUT_THE_PLACE: [u16; 2] = [404, 409];
    let about_the_caller = step.last_attempt().is_some_and(|last| {
        let kind = last.ending.filter(|_| last.cause != Some(CloseCause::Refused));
        let by_kind = kind == Some(CallEnding::Refused(RefusalKind::Auth));
        by_kind || last.status.is_some_and(|status| ABOUT_THE_PLACE.contains(&status))
    });
    let planted = step.injected.iter().any(InjectedError::is_fault);
    refused_as_edited(step) || (about_the_caller && !planted && asks_model(step))
}
