//! What one execution says.

use super::trial;
use crate::{
    launch::Ending,
    proof::ProofSample,
    surface::{answers_unread, is_unread},
    trajectory::{CloseCause, InjectedError, Step, Verdict, Void, ended_by_upstream},
};

/// What an execution says: its verdict, or why it has none that counts. `crashed`: the recorded program was ended by a signal
/// too. `spent`: the budget has refused calls.
pub fn sample(execution: &trial::ForkSample, steps: &[Step], crashed: bool, spent: bool) -> ProofSample {
    let tried = &execution.tried;
    let mut attempts = steps.iter().flat_map(|step| &step.attempts);
    let refused = attempts.any(|attempt| attempt.cause == Some(CloseCause::Refused));
    let mut live = steps.iter().filter(|step| execution.report.live.contains(&step.step));
    let void = match tried.ending {
        _ if execution.report.diverged.is_some() => Some(Void::Diverged),
        _ if refused && spent => Some(Void::Budget),
        _ if refused || live.any(is_unanswered) => Some(Void::Unanswered),
        Ending::TimedOut => Some(Void::TimedOut),
        Ending::Signalled(_) if !crashed => Some(Void::Crashed),
        _ => None,
    };
    match (void, tried.outcome.verdict) {
        (Some(why), _) => ProofSample::Void(why),
        (None, Verdict::Success) => ProofSample::Passed,
        (None, Verdict::Failure) => ProofSample::Failed,
        (None, Verdict::Unknown) => ProofSample::Void(Void::NoVerdict),
    }
}

/// Whether a model was to answer: not so of a token count, nor of what older recordings call `opaque`.
fn asks_model(step: &Step) -> bool {
    step.surface != "opaque" && (!is_unread(&step.surface) || answers_unread(&step.surface))
}

/// Whether the upstream left a step without a reply of the model: no answer, an error of its own, or a refusal that is not
/// about what was asked. A planted fault is no failure of the upstream, and what is no model call asks the model nothing.
fn is_unanswered(step: &Step) -> bool {
    const ABOUT_THE_CALLER: [u16; 6] = [401, 402, 403, 404, 408, 409];
    let status = step.last_attempt().and_then(|attempt| attempt.status);
    let refused = status.is_some_and(|status| ABOUT_THE_CALLER.contains(&status));
    let planted = step.injected.iter().any(InjectedError::is_fault);
    ended_by_upstream(step) || (refused && !planted && asks_model(step))
}
