//! How an attempt of a recorded step ended, and whether what was done to it reached whom it was meant for.

use bytes::Bytes;

use crate::{
    surface::{self, Surface},
    trajectory::{Attempt, CallEnding, CloseCause, InjectedError, Side, Step},
};

/// How an attempt ended: what the upstream sent decides, and what was made of it where that was an answer.
pub(super) fn ending(surface: Option<&dyn Surface>, attempt: &Attempt, cause: CloseCause) -> CallEnding {
    let of = |body: &Bytes| surface::ending(surface, cause, attempt.status, body, attempt.streamed);
    let ending = of(&attempt.reply);
    attempt.reply_delivered.as_ref().filter(|_| ending.is_answered()).map_or(ending, of)
}

/// The fault that changes nothing but a head.
const CONTENT_TYPE: &str = "wrong_content_type";

/// Whether an applied edit reached whom it was meant for: the attempt is the one that the program went on with, and it ended so
/// that the altered bytes were taken. On the request side the upstream took them, and an error of its own shows that it did; on
/// the other the client did.
pub(super) fn delivered(step: &Step, attempt: u32, error: &InjectedError) -> bool {
    let Some(last) = step.last_attempt() else { return false };
    let same = last.attempt == attempt || error.failure_mode.is_none();
    let ended = step.attempts.iter().rev().find(|candidate| candidate.attempt == attempt);
    let Some((ended, cause)) = ended.and_then(|candidate| Some((candidate, candidate.cause?))) else { return false };
    same && match cause {
        CloseCause::Complete => true,
        CloseCause::Injected => error.failure_mode.is_none(),
        // Whoever reads an error of the upstream often hangs up, on either side.
        CloseCause::ClientGone | CloseCause::ClientStalled | CloseCause::UpstreamTruncated => {
            // A client that refuses a content type has read the head, and reads no more.
            let by_head = error.operator == CONTENT_TYPE && ended.status.is_some();
            by_head || (error.side == Side::Request && ended.ending.is_some_and(CallEnding::is_error))
        }
        _ => false,
    }
}
