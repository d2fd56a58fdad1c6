//! Runs in which no call was answered: what that says of the upstream, whatever the program made of it.

use super::{CloseCause, Step};

/// Why no call of a run got an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    /// The upstream could not be reached: refused, no such host, no TLS.
    Unreachable,
    /// The upstream refused each with this status, for example 401.
    Refused(u16),
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
    match (last.cause, last.status) {
        (Some(CloseCause::UpstreamUnreachable), _) => Some(Unserved::Unreachable),
        (Some(CloseCause::Complete), Some(status)) if status >= 400 => Some(Unserved::Refused(status)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::label::tests::step;

    #[test]
    fn only_what_all_calls_met_says_something_of_the_upstream() {
        let (gone, done) = (CloseCause::UpstreamUnreachable, CloseCause::Complete);
        for (calls, expected) in [
            (vec![], None),
            (vec![(gone, 502)], Some(Unserved::Unreachable)),
            (vec![(gone, 502), (gone, 502)], Some(Unserved::Unreachable)),
            (vec![(gone, 502), (done, 200)], None),
            (vec![(done, 401), (done, 401)], Some(Unserved::Refused(401))),
            (vec![(done, 401), (done, 404)], None),
            (vec![(done, 200)], None),
            (vec![(CloseCause::ClientGone, 401)], None),
        ] {
            let steps: Vec<_> = calls.iter().map(|(cause, status)| step(&[], &[(Some(*cause), *status)])).collect();
            assert_eq!(unserved(&steps), expected, "{calls:?}");
        }
    }
}
