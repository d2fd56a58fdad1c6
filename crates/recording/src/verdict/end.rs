//! Rules on how it ended: the wait, the call, the program.

use std::time::Duration;

use super::{Met, TroubledCall, met::seconds, reply, retry};
use crate::trajectory::ProgramEnd;

/// The longest wait for a reply that is no stall. Whole replies of large models take tens of seconds.
const STALL: Duration = Duration::from_mins(1);

/// The client closed the connection itself.
pub(super) fn hung_up(call: &TroubledCall) -> Option<String> {
    let ended_by_us = |at: usize| at + 1 == call.tries.len() && call.was_ended_waiting();
    let mut tries = call.tries.iter().enumerate();
    let (_, left) = tries.find(|(at, one)| one.met == Met::HungUp && !ended_by_us(*at))?;
    Some(format!("after {}", seconds(left.ended.saturating_sub(left.began))))
}

/// It waited for a reply that never ended.
pub(super) fn endured_stall(call: &TroubledCall) -> Option<String> {
    call.tries.iter().find_map(|one| {
        let waited = one.ended.saturating_sub(one.began);
        let in_vain = matches!(one.met, Met::NoReply | Met::BrokenOff) && waited >= STALL;
        in_vain.then(|| format!("waited {}", seconds(waited)))
    })
}

/// No try was answered, and the program went on, or ended well, without.
pub(super) fn gave_up(call: &TroubledCall) -> Option<String> {
    let unanswered = !call.is_answered() && reply::accepted_truncated(call).is_none();
    let over = call.ends_in_error() || stuck(call).is_some() || retry::why_undecided(call).is_some();
    (unanswered && !over).then(|| {
        let tries = match call.tries.len() {
            1 => "after the first try".to_owned(),
            tries => format!("after {tries} tries"),
        };
        if reply::may_have_been_used(call) {
            return format!("{tries}; whether what had come of the reply was used is not seen on the wire");
        }
        tries
    })
}

/// The program ended with it.
pub(super) fn crashed(call: &TroubledCall) -> Option<String> {
    let hurt = !call.is_answered() || call.last()?.met == Met::Altered;
    if !hurt || !call.ends_in_error() {
        return None;
    }
    match call.program? {
        ProgramEnd::Exited(code) => Some(format!("the program then exited with {code}")),
        ProgramEnd::Signalled(signal) => Some(format!("the program was then ended by signal {signal}")),
        ProgramEnd::TimedOut | ProgramEnd::Interrupted => None,
    }
}

/// The program did nothing more until its time was up.
pub(super) fn stuck(call: &TroubledCall) -> Option<String> {
    let stuck = call.program == Some(ProgramEnd::TimedOut) && call.asked_on.is_none() && !call.is_answered();
    stuck.then(|| match call.tries.len() {
        1 if call.was_ended_waiting() => "the program still waited for it when its time was up".to_owned(),
        1 => "the program made no further call until its time was up".to_owned(),
        tries => format!("the program's time was up after {tries} tries"),
    })
}
