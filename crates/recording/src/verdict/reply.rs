//! Rules on replies that a client took although it should, or could, not know better.

use super::{Met, TroubledCall};

/// A reply without its end was taken for the answer.
pub(super) fn accepted_truncated(call: &TroubledCall) -> Option<String> {
    let last = call.last()?;
    if let (Some(step), Met::CutShort | Met::BrokenOff | Met::Failed) = (call.quoted_at, last.met) {
        return Some(format!("step {step} goes on from what had come of it"));
    }
    // A broken connection and an error event raise an error in every SDK; a clean cut shows only who looks for the end.
    let unnoticed = last.met == Met::CutShort && call.program_ended_well() && call.quoted_at.is_none();
    unnoticed.then(|| "it was not asked for again, and the program ended as if it were whole".to_owned())
}

/// Whether a program that ended well may have used the half of a reply that broke off. One that caught the error and
/// went on without, and one that took the half for the answer, look the same: that is no defect shown, and is told.
pub(super) fn may_have_been_used(call: &TroubledCall) -> bool {
    let begun = call.last().is_some_and(|last| matches!(last.met, Met::BrokenOff | Met::Failed | Met::CutShort));
    begun && call.program_ended_well() && accepted_truncated(call).is_none()
}

/// Other content than the model gave was taken.
pub(super) fn took_altered(call: &TroubledCall) -> Option<String> {
    let taken = call.last()?.met == Met::Altered && !call.ends_in_error();
    taken.then(|| match call.quoted_at {
        Some(step) => format!("step {step} goes on from it"),
        None => "the reply was taken".to_owned(),
    })
}
