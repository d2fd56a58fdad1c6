//! Rules on what is said and done again.

use super::{
    Past, Sighting, WatchedStep,
    past::{long, outcomes},
    text::first,
};

/// How often the same tool is called the same way before that is a sign.
const CALLS: u32 = 3;
/// Longest cycle, in turns.
const LONGEST: usize = 4;
/// How often a cycle comes before it is one.
const ROUNDS: usize = 3;

/// Word for word what the agent said before.
pub(super) fn repetition(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    let before = past.agent(step)?.replies.get(long(step)?)?;
    Sighting::new(format!("the agent says again word for word what it said at step {before}"), first(&step.reply))
}

/// The last turns are those before them, and those before these.
pub(super) fn cycle(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    let own = Past::turn(step);
    let turns: Vec<_> = past.turns.iter().copied().chain([own]).collect();
    let length = (2..=LONGEST).find(|length| {
        let Some(from) = turns.len().checked_sub(ROUNDS * length) else { return false };
        let last = turns.get(from..).unwrap_or_default();
        let several = last.iter().take(*length).any(|turn| Some(turn) != last.first());
        several && last.iter().zip(last.iter().skip(*length)).all(|(one, other)| one == other)
    })?;
    Sighting::new(
        format!("the last {length} turns have come {ROUNDS} times in a row, with the same words"),
        first(&step.reply),
    )
}

/// The same tool, called the same way.
pub(super) fn same_call(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    let own = past.agent(step);
    // Within one reply too.
    let times = |at: usize, key: u64| {
        let before = own.and_then(|own| own.called.get(key)).map_or(0, |(times, _)| times);
        let here = step.calls.iter().take(at).filter(|call| call.key() == key).count();
        before + u32::try_from(here).unwrap_or(u32::MAX) + 1
    };
    let call = step.calls.iter().enumerate().find(|(at, call)| times(*at, call.key()) == CALLS)?.1;
    Sighting::new(format!("the agent calls `{}` the same way for the third time", call.tool), call.quote())
}

/// A call that ended in an error, again.
pub(super) fn retried_call(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    let own = past.agent(step)?;
    let errors = outcomes(own, step);
    let failed = |key: u64| {
        let now =
            errors.iter().rev().find(|(call, _)| *call == Some(key)).map(|(_, failed)| failed.unwrap_or_default());
        now.unwrap_or_else(|| own.called.get(key).is_some_and(|(_, failed)| failed))
    };
    let call = step.calls.iter().find(|call| failed(call.key()))?;
    Sighting::new(format!("the agent calls `{}` again just as it failed before", call.tool), call.quote())
}
