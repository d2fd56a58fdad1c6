//! Runs in which no call was answered: what that says of the upstream, whatever the program made of it.

use std::fmt;

use super::{CallEnding, CloseCause, InjectedError, Step};

/// Why no call of a run got an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    /// The upstream could not be reached: refused, no such host, no TLS.
    Unreachable,
    /// The upstream refused each, or failed at each, in the same way.
    Refused {
        /// The status of each, for example 401; 200 where each said its error inside the reply.
        status: u16,
        /// How each ended.
        ending: CallEnding,
    },
}

/// What the upstream answered each call with.
impl fmt::Display for Unserved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => formatter.write_str("nothing"),
            Self::Refused { status: status @ 400.., .. } => write!(formatter, "{status}"),
            Self::Refused { status, ending } => write!(formatter, "an error inside a {status} ({ending})"),
        }
    }
}

/// Why none of these calls got an answer; `None` where one did, where there are none, where a plan had a part in it, or where
/// they failed for several reasons.
pub fn unserved(steps: &[Step]) -> Option<Unserved> {
    let mut whys = steps.iter().map(unserved_step);
    let first = whys.next()??;
    whys.all(|why| why == Some(first)).then_some(first)
}

fn unserved_step(step: &Step) -> Option<Unserved> {
    let last = step.last_attempt().filter(|_| step.injected.is_empty())?;
    match (last.cause?, last.status, last.ending?) {
        (CloseCause::UpstreamUnreachable, _, _) => Some(Unserved::Unreachable),
        (cause, Some(status), ending) if ending.is_error() && !cause.is_own() => {
            Some(Unserved::Refused { status, ending })
        }
        _ => None,
    }
}

/// How many of these calls the upstream left without an answer; what a plan did to a call, and what the program gave up, does not
/// count.
pub fn unanswered(steps: &[Step]) -> usize {
    let planted = |step: &Step| step.injected.iter().any(InjectedError::is_fault);
    let is_one = |step: &&Step| {
        let last = step.last_attempt().filter(|_| !planted(step));
        let ending = last.filter(|last| !last.cause.is_none_or(CloseCause::is_own)).and_then(|last| last.ending);
        ending.is_some_and(|ending| !matches!(ending, CallEnding::Answered | CallEnding::Abandoned))
    };
    steps.iter().filter(is_one).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::sample::step;

    #[test]
    fn only_what_all_calls_met_says_something_of_the_upstream() {
        let refused = |status| Unserved::Refused { status, ending: CallEnding::of_status(status) };
        let (gone, done) = (CloseCause::UpstreamUnreachable, CloseCause::Complete);
        for (calls, expected) in [
            (vec![], None),
            (vec![(gone, 502)], Some(Unserved::Unreachable)),
            (vec![(gone, 502), (gone, 502)], Some(Unserved::Unreachable)),
            (vec![(gone, 502), (done, 200)], None),
            (vec![(done, 401), (done, 401)], Some(refused(401))),
            (vec![(done, 401), (done, 404)], None),
            (vec![(done, 200)], None),
            (vec![(CloseCause::ClientGone, 200)], None),
        ] {
            let steps: Vec<_> = calls.iter().map(|(cause, status)| step(&[], &[(Some(*cause), *status)])).collect();
            assert_eq!(unserved(&steps), expected, "{calls:?}");
        }
    }
}
