//! What one try met: told from the recorded bytes, headers and cause of its end, and from the faults that acted on it.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::{
    fault::Disturbance,
    surface::{self, Shape, Surface},
    trajectory::{Attempt, CloseCause},
};

/// What a try met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Met {
    /// A whole reply as the upstream gave it.
    Reply,
    /// The same, late or slowly.
    Slow,
    /// A reply that can be read to its end, with other content than the upstream gave.
    Altered,
    /// An HTTP error.
    Refusal {
        /// Its status.
        status: u16,
        /// How long it tells the client to wait, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
        /// Whether a client should try again.
        retryable: bool,
    },
    /// A connection that ended before any reply.
    NoReply,
    /// A connection that broke within the reply.
    BrokenOff,
    /// A reply that is framed as a whole one and lacks its end.
    CutShort,
    /// An error instead of an answer, or on the way to one, with a status of success.
    Failed,
    /// A reply that is none of this API.
    Unreadable,
    /// Nothing that counts: the client left first.
    HungUp,
}

impl Met {
    /// Whether the client got a reply that can be read to its end.
    pub fn is_answer(self) -> bool {
        matches!(self, Met::Reply | Met::Slow | Met::Altered)
    }
}

impl fmt::Display for Met {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Met::Reply => formatter.write_str("reply"),
            Met::Slow => formatter.write_str("slow reply"),
            Met::Altered => formatter.write_str("altered reply"),
            Met::Refusal { status, wait_ms: Some(wait), .. } => {
                write!(formatter, "{status} (wait {})", seconds(Duration::from_millis(*wait)))
            }
            Met::Refusal { status, .. } => write!(formatter, "{status}"),
            Met::NoReply => formatter.write_str("no reply"),
            Met::BrokenOff => formatter.write_str("broken off"),
            Met::CutShort => formatter.write_str("cut short"),
            Met::Failed => formatter.write_str("error in the reply"),
            Met::Unreadable => formatter.write_str("unreadable"),
            Met::HungUp => formatter.write_str("client left"),
        }
    }
}

/// A time as people read it.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// What a try met. `faults` are those that acted on it, `headers` the reply's.
pub(super) fn met(
    attempt: &Attempt,
    headers: &[(String, String)],
    surface: Option<&dyn Surface>,
    faults: &[Disturbance],
) -> Met {
    use CloseCause as Cause;
    let (Some(cause), Some(status)) = (attempt.cause, attempt.status) else {
        return if attempt.cause == Some(Cause::ClientGone) { Met::HungUp } else { Met::NoReply };
    };
    if matches!(cause, Cause::ClientGone | Cause::ClientStalled) {
        return Met::HungUp;
    }
    if status >= 400 {
        return refusal(status, headers, &attempt.at, attempt.last_byte_us.unwrap_or_default());
    }
    let clean = |fault: &Disturbance| matches!(fault, Disturbance::Cut { clean: true, .. });
    let broken = match cause {
        Cause::Injected => !faults.iter().any(clean),
        Cause::UpstreamReset | Cause::UpstreamTimeout | Cause::UpstreamUnreachable | Cause::Stopped => true,
        _ => false,
    };
    if broken {
        return Met::BrokenOff;
    }
    let body = attempt.delivered();
    match surface.map(|surface| surface::shape(surface, body, attempt.streamed)) {
        Some(Shape::CutShort) => Met::CutShort,
        Some(Shape::Failed) => Met::Failed,
        // What was cut is the half of an answer, also where its JSON cannot be read without the rest.
        Some(Shape::Unreadable) if faults.iter().any(clean) => Met::CutShort,
        Some(Shape::Unreadable) => Met::Unreadable,
        Some(Shape::Whole) | None => answered(attempt, faults),
    }
}

/// A reply that can be read: as it was, late, or another.
fn answered(attempt: &Attempt, faults: &[Disturbance]) -> Met {
    let waits = |fault: &Disturbance| matches!(fault, Disturbance::Delay(_) | Disturbance::Pace(_));
    let other_type = |fault: &Disturbance| matches!(fault, Disturbance::ContentType(_));
    let reshaped = |fault: &Disturbance| matches!(fault, Disturbance::Reshape);
    let altered = attempt.reply_delivered.as_ref().is_some_and(|delivered| *delivered != attempt.reply);
    if (altered && faults.iter().any(reshaped)) || faults.iter().any(other_type) {
        return Met::Altered;
    }
    if faults.iter().any(waits) { Met::Slow } else { Met::Reply }
}

/// An HTTP error, with what its headers ask of the client. `at` and `took_us`: when the request arrived, and how long
/// the reply took, for a date in `retry-after`.
fn refusal(status: u16, headers: &[(String, String)], at: &str, took_us: u64) -> Met {
    let header = |name: &str| {
        let found = headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_lowercase())
    };
    let millis = header("retry-after-ms").and_then(|value| value.parse().ok());
    let named = header("retry-after").and_then(|value| match value.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok().map(as_millis),
        Err(_) => until(&value, at, took_us),
    });
    // A client may go by either; the shorter one is what it must keep to.
    let wait_ms = [millis, named].into_iter().flatten().min();
    let retryable = match header("x-should-retry").as_deref() {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(status, 408 | 409 | 429 | 500..),
    };
    Met::Refusal { status, wait_ms, retryable }
}

/// Milliseconds from the end of a reply to an HTTP date. A date says no parts of a second: one second is taken off.
fn until(date: &str, at: &str, took_us: u64) -> Option<u64> {
    let date = jiff::fmt::rfc2822::parse(&date.replace("gmt", "+0000")).ok()?.timestamp();
    let at: jiff::Timestamp = at.parse().ok()?;
    let wait = date.as_millisecond() - at.as_millisecond() - 1000;
    Some(u64::try_from(wait).unwrap_or_default().saturating_sub(took_us / 1000))
}

fn as_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
