//! Transport and protocol disturbances: each fault says what is to happen, the proxy does it.
//!
//! A fault is pure: it turns its parameters, a draw and the number of the attempt into a [`Disturbance`], or into none
//! where the attempt is to pass. Plans name one by its file's name.
//! To add one: a file here, and one line in the list below; the example in its doc comment is its test and its
//! catalogue entry. Then write the generated files anew: `docs/add-a-manipulator.md` lists them.

#[macro_use]
mod list;

mod answered;
mod attempts;
mod header;
#[cfg(test)]
mod testing;
mod words;

use std::sync::Arc;
use std::time::Duration;

pub use answered::Answered;
pub use attempts::Attempts;
use bytes::Bytes;
pub use header::{HeaderName, HeaderValue};
pub use rate_limit::Level;
use schemars::JsonSchema;
use serde::Deserialize;

faults! {
    latency::Latency,
    slow_stream::SlowStream,
    hang::Hang,
    refuse_connection::RefuseConnection,
    reset::Reset,
    cut::Cut,
    status::Status,
    rate_limit::RateLimit,
    rpc_error::RpcError,
    html_page::HtmlPage,
    empty_body::EmptyBody,
    wrong_content_type::WrongContentType,
    malformed_chunk::MalformedChunk,
    bad_utf8::BadUtf8,
    repeat_frames::RepeatFrames,
    reorder_frames::ReorderFrames,
    drop_frames::DropFrames,
    error_event::ErrorEvent,
    wrong_model::WrongModel,
    wrong_finish::WrongFinish,
    wrong_field::WrongField,
    stale_answer::StaleAnswer,
    spoil_answer::SpoilAnswer,
    spoil_tool_call::SpoilToolCall,
}

/// Longest wait of any fault, in seconds: an hour outlasts every client's time limit.
const WAIT_LIMIT_S: f64 = 3600.0;

/// What the proxy is to do to an exchange.
#[derive(Debug, Clone, PartialEq)]
pub enum Disturbance {
    /// Wait before the request is sent on.
    Delay(Duration),
    /// Answer instead of the upstream.
    Answer {
        /// HTTP status.
        status: u16,
        /// Headers beside content-type and content-length; names and values are legal.
        headers: Vec<(String, String)>,
        /// If set, a `retry-after` header names the date this long from now. The proxy has the clock.
        retry_after_date: Option<Duration>,
        /// What it says.
        body: AnswerBody,
    },
    /// Answer 429 instead of the upstream while a window of requests is used up. The proxy has the clock.
    Limit(Window),
    /// Pass the reply on slowly.
    Pace(Pace),
    /// Pass the reply on under another content type.
    ContentType(String),
    /// Collect the reply and change its bytes by [`Fault::reshape`].
    Reshape,
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

impl Disturbance {
    /// Whether it ends the exchange, or breaks off its reply: only one of these can act.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Answer { .. } | Self::Reset(_) | Self::Cut { .. } | Self::Hang { .. })
    }

    /// Whether it acts before there is a reply, so that it needs none to be read.
    pub fn is_before_reply(&self) -> bool {
        match self {
            Self::Delay(_) | Self::Answer { .. } | Self::Limit(_) => true,
            Self::Reset(at) | Self::Cut { at, .. } | Self::Hang { at, .. } => *at == Moment::BeforeRequest,
            Self::Pace(_) | Self::ContentType(_) | Self::Reshape => false,
        }
    }
}

/// The body of an answer that stands in for the upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerBody {
    /// An error in the API's own shape; what is not said is the provider's own.
    Error {
        /// Error message.
        message: Option<String>,
        /// The API's error type.
        kind: Option<String>,
        /// The API's error code.
        code: Option<String>,
    },
    /// These bytes.
    Raw {
        /// Their content type.
        content_type: String,
        /// Themselves.
        bytes: Bytes,
    },
}

/// A window of requests: a bucket that holds this many and is refilled evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How many requests it holds.
    pub requests: u32,
    /// In which time an empty one is full again.
    pub refill: Duration,
    /// Whether each agent has its own, not the run as a whole.
    pub per_agent: bool,
    /// Whether the answer says when to try again.
    pub retry_after: bool,
}

/// How slowly a reply is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// Wait before the first byte.
    pub first: Duration,
    /// Wait before each frame of an event stream after the first.
    pub frame: Duration,
    /// Most bytes in a second.
    pub bytes_per_s: Option<u32>,
}

/// A point of the exchange. In a plan: `"before_request"`, `"before_body"`, `{ after_bytes = 100 }`, `{ after_frames =
/// 3 }` or `"before_end"`.
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

    /// The reply, changed. Called only after [`Disturbance::Reshape`].
    ///
    /// # Errors
    /// Why this reply cannot be changed in this way; it then passes as it came.
    fn reshape(&self, reply: &Answered<'_>, draw: u64) -> Result<Bytes, String> {
        let _ = (reply, draw);
        Err("it changes no reply".to_owned())
    }

    /// Whether it makes a model seem to have said something else: what an upstream keeps of the reply then differs from
    /// what its program was told, which it does not where bytes are damaged on their way.
    fn rewords(&self) -> bool {
        false
    }

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
