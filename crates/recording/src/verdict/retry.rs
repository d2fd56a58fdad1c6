//! Rules on tries that follow a try.

use std::time::Duration;

use super::{Met, TroubledCall, call::SHORTEST_PAUSE, met::seconds};

/// How much earlier than it was told a client may come: its clock and ours are not read at the same moment.
const EARLY: Duration = Duration::from_millis(50);
/// The shortest wait that is a backoff. Both SDKs wait 375 ms at least.
const SHORTEST_BACKOFF: Duration = SHORTEST_PAUSE;
/// Most tries of one call: the first and the ten retries of the `OpenAI` Cookbook's example.
const MOST_TRIES: usize = 11;
/// Most tries that may begin within [`WINDOW`]; the SDKs' own three take 1.3 s.
const MOST_TRIES_IN_WINDOW: usize = 5;
const WINDOW: Duration = Duration::from_secs(1);

/// A later try was answered.
pub(super) fn healed(call: &TroubledCall) -> Option<String> {
    let healed = call.tries.len() > 1 && call.is_answered() && !call.has_doubtful_tries();
    healed.then(|| format!("answered at try {}, {}", call.tries.len(), waited(call)))
}

/// It was tried again, in vain.
pub(super) fn retried(call: &TroubledCall) -> Option<String> {
    let in_vain = call.tries.len() > 1 && !call.is_answered() && !call.has_doubtful_tries();
    in_vain.then(|| format!("{} tries, {}", call.tries.len(), waited(call)))
}

/// A try came too early.
pub(super) fn ignored_retry_after(call: &TroubledCall) -> Option<String> {
    let early = call.sure_waits().find_map(|(one, _, waited)| match one.met {
        // Not to be tried again at all: another rule's business.
        Met::Refusal { wait_ms: Some(told), retryable: true, .. } => {
            let told = Duration::from_millis(told);
            (waited + EARLY < told).then_some((waited, told))
        }
        _ => None,
    });
    early.map(|(waited, told)| format!("tried again after {}, told to wait {}", seconds(waited), seconds(told)))
}

/// A try that cannot help.
pub(super) fn retried_non_retryable(call: &TroubledCall) -> Option<String> {
    call.sure_waits().find_map(|(one, next, _)| match one.met {
        // A token that was renewed is what such a refusal asks for.
        Met::Refusal { status: 401 | 403, .. } if next.other_key => None,
        Met::Refusal { status, retryable: false, .. } => Some(format!("tried again after {status}")),
        _ => None,
    })
}

/// Tries without a pause.
pub(super) fn no_backoff(call: &TroubledCall) -> Option<String> {
    // One try at once after a lost connection is good practice (RFC 9110 §9.2.2); a second one is not.
    let mut lost = 0;
    call.sure_waits().find_map(|(one, _, waited)| {
        let at_once = waited < SHORTEST_BACKOFF;
        let hasty = match one.met {
            Met::Refusal { wait_ms: None, retryable: true, .. } => at_once,
            Met::NoReply | Met::BrokenOff => {
                lost += u32::from(at_once);
                at_once && lost > 1
            }
            _ => false,
        };
        hasty.then(|| format!("tried again after {}", seconds(waited)))
    })
}

/// Too many tries.
pub(super) fn retry_storm(call: &TroubledCall) -> Option<String> {
    if call.has_doubtful_tries() {
        return None;
    }
    let tries = call.tries.len();
    if tries > MOST_TRIES {
        return Some(format!("{tries} tries"));
    }
    let crowded = call.tries.windows(MOST_TRIES_IN_WINDOW + 1).find_map(|window| {
        let (first, last) = (window.first()?, window.last()?);
        (last.began.saturating_sub(first.began) <= WINDOW).then_some(window.len())
    });
    crowded.map(|count| format!("{count} tries within {}", seconds(WINDOW)))
}

/// Whether the call was tried again cannot be told.
pub(super) fn why_undecided(call: &TroubledCall) -> Option<String> {
    if call.has_doubtful_tries() {
        let why = if call.repeated {
            "the program asks the same words more than once"
        } else {
            "nothing but equal words says so"
        };
        return Some(format!("whether the calls with the same words are tries of this one; {why}"));
    }
    let step = call.may_go_on_at.filter(|_| !call.is_answered())?;
    Some(format!("whether step {step} tries it again; the request says neither"))
}

fn waited(call: &TroubledCall) -> String {
    let waits: Vec<String> = call.waits().map(|(_, waited)| seconds(waited)).collect();
    format!("after {}", waits.join(", "))
}
