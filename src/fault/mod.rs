//! Transport and protocol disturbances: each fault says what is to happen, the proxy does it.
//!
//! A fault is pure: it turns its parameters and a draw into a [`Disturbance`].
//! To add one: a file here, and one line in the list below.

use std::time::Duration;

/// What the proxy is to do to an exchange.
#[derive(Debug, Clone, PartialEq)]
pub enum Disturbance {
    /// Wait before the request is sent on.
    Delay(Duration),
    /// Answer instead of the upstream.
    Answer {
        /// HTTP status.
        status: u16,
        /// Headers beside content-type and content-length.
        headers: Vec<(String, String)>,
        /// Error message, in the surface's own error shape.
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
    },
    /// Send nothing more, keep the connection open for this long at most, then reset.
    Hang {
        /// Where.
        at: Moment,
        /// How long at most.
        at_most: Duration,
    },
}

/// A point of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
