//! Transport and protocol disturbances: each fault says what is to happen, the proxy does it.
//!
//! A fault is pure: it turns its parameters, a draw and the number of the attempt into a [`Disturbance`], or into none
//! where the attempt is to pass. Plans name one by its file's name.
//! To add one: a file here, and one line in the list below; the example in its doc comment is its test and its
//! catalogue entry.

#[macro_use]
mod list;

mod attempts;
mod header;

use std::sync::Arc;
use std::time::Duration;

pub use attempts::Attempts;
pub use header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

faults! {
    latency::Latency,
    status::Status,
    reset::Reset,
    cut::Cut,
    hang::Hang,
}

/// Longest wait of any fault, in seconds: an hour outlasts every client's time limit.
const WAIT_LIMIT_S: f64 = 3600.0;

/// What the proxy is to do to an exchange.
#[derive(Debug, Clone, PartialEq)]
pub enum Disturbance {
    /// Wait before the request is sent on.
    Delay(Duration),
    /// Answer instead of the upstream, in the surface's own error shape.
    Answer {
        /// HTTP status.
        status: u16,
        /// Headers beside content-type and content-length; names and values are legal.
        headers: Vec<(String, String)>,
        /// If set, a `retry-after` header names the date this long from now. The proxy has the clock.
        retry_after_date: Option<Duration>,
        /// Error message.
        message: String,
        /// The API's error type.
        kind: String,
        /// The API's error code.
        code: Option<String>,
    },
    /// Close the connection with a reset.
    Reset(Moment),
    /// End the reply early.
    Cut {
        /// Where.
        at: Moment,
        /// True: the framing is closed properly, so a client takes the short reply for the whole. False: the
        /// connection is closed mid-body.
        clean: bool,
        /// Whether an event stream still gets its end marker. Only with `clean`.
        end_marker: bool,
    },
    /// Send nothing more, keep the connection open for this long at most, then reset.
    Hang {
        /// Where.
        at: Moment,
        /// How long at most.
        at_most: Duration,
    },
}

/// A point of the exchange. In a plan: `"before_request"`, `"before_body"`, `{ after_bytes = 100 }`,
/// `{ after_frames = 3 }` or `"before_end"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before the request is sent on: the upstream never sees it.
    BeforeRequest,
    /// After the head of the reply, before its first byte.
    BeforeBody,
    /// After this many bytes of the body.
    AfterBytes(u64),
    /// After this many frames of an event stream, or this many per mille of a whole body.
    AfterFrames(u32),
    /// Before the end marker of an event stream, or before the last byte of a whole body.
    BeforeEnd,
}

impl std::fmt::Display for Moment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Moment::BeforeRequest => formatter.write_str("before the upstream is asked"),
            Moment::BeforeBody => formatter.write_str("before the first byte of the reply"),
            Moment::AfterBytes(bytes) => write!(formatter, "after {bytes} bytes of the reply"),
            Moment::AfterFrames(frames) => write!(formatter, "after {frames} frames of a streamed reply"),
            Moment::BeforeEnd => formatter.write_str("before the end of the reply"),
        }
    }
}

/// A disturbance of the transport or of the protocol.
pub trait Fault: Send + Sync + std::fmt::Debug {
    /// What happens to this attempt (0 for the first) of a step; `None` when it passes.
    fn disturb(&self, draw: u64, attempt: u32) -> Option<Disturbance>;

    /// Whether the parameters make sense together; what each allows alone is the business of its type.
    ///
    /// # Errors
    /// What was expected, in words.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// What it does with these parameters, as the rest of a sentence that starts with "it".
    fn explain(&self) -> String;
}
