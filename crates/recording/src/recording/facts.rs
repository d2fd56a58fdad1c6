//! What the exchange tells the recorder: borrowed views, so that recording copies only what it stores.

use bytes::Bytes;
use jiff::Timestamp;

use crate::trajectory::{
    Attribution, Call, CloseCause, FailureMode, ProxyErrorText, RecordedRelation, ReplyOrigin, ReplySpeaker, Side,
    StepIndex, Uninspected, Usage,
};

/// Header names and values as they came; the recorder stores an allow-list of them.
pub type HeaderPairs<'a> = &'a [(&'a str, &'a [u8])];

/// A request has arrived.
#[derive(Debug, Clone, Copy)]
pub struct Open<'a> {
    /// Step of the run, 0-based.
    pub step: StepIndex,
    /// Call of the agent instance, 0-based.
    pub call: Call,
    /// 0 for the first try, counting the SDK's retries.
    pub attempt: u32,
    /// Who made the call.
    pub attribution: &'a Attribution,
    /// Whether another call of the same agent instance was in flight.
    pub overlapping: bool,
    /// Its place among the calls of its agent.
    pub relates: &'a RecordedRelation,
    /// What named the run: `path`, `header`, `key`, `metadata`, ….
    pub run_source: &'a str,
    /// The surface's name, or `opaque`.
    pub surface: &'a str,
    /// HTTP method.
    pub method: &'a str,
    /// Path and query without our own prefix; secrets in it are redacted here.
    pub path: &'a str,
    /// All headers of the request.
    pub headers: HeaderPairs<'a>,
    /// The whole body; `None` when it streams through (then [`Close::streamed_request`]).
    pub body: Option<&'a Bytes>,
    /// xxh3-128 of the body, where the caller has computed it already.
    pub body_hash: Option<u128>,
    /// Microseconds since [`Recorder::create`](super::Recorder::create), by the monotonic clock.
    pub at_us: u64,
    /// The wall clock: a label only, nothing is computed from it.
    pub wall: Timestamp,
}

/// An injection met a step. Planned, matched and applied are told apart; whether the edit was delivered follows from
/// how the exchange closed.
#[derive(Debug, Clone, Copy)]
pub struct Inject<'a> {
    /// Step of the run.
    pub step: StepIndex,
    /// Attempt of the step.
    pub attempt: u32,
    /// Index of the injection in its plan, 0-based.
    pub injection: u32,
    /// The side it edits.
    pub side: Side,
    /// The manipulator or fault, by name.
    pub operator: &'a str,
    /// The failure mode it plants; `None` for faults.
    pub failure_mode: Option<FailureMode>,
    /// Whose words alone it edits, where the reply is that of a team.
    pub speaker: Option<&'a ReplySpeaker>,
    /// The plan's seed.
    pub seed: u64,
    /// The draw that the decision used, if it used one.
    pub draw: Option<u64>,
    /// The plan names this step's agent and call.
    pub planned: bool,
    /// The trigger's conditions held.
    pub matched: bool,
    /// An edit or disturbance was really made.
    pub applied: bool,
    /// The body before this injection; `None` for a fault that edits none.
    pub before: Option<&'a Bytes>,
    /// The body after it.
    pub after: Option<&'a Bytes>,
}

/// A manipulator could not make its edit and its step passed untouched. The run gets no label, unless there was nothing to
/// edit here and something elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct ManipulatorFailed<'a> {
    /// Step of the run.
    pub step: StepIndex,
    /// Attempt of the step.
    pub attempt: u32,
    /// Index of the injection in its plan.
    pub injection: u32,
    /// The manipulator, by name.
    pub operator: &'a str,
    /// Why.
    pub why: &'a str,
    /// Whether the text had nothing of the kind that it edits: equal bytes are passed untouched each time.
    pub nothing: bool,
}

/// A manipulator asked its model.
#[derive(Debug, Clone, Copy)]
pub struct ManipulatorCall<'a> {
    /// Step of the run.
    pub step: StepIndex,
    /// Attempt of the step.
    pub attempt: u32,
    /// Index of the injection in its plan.
    pub injection: u32,
    /// The manipulator, by name.
    pub operator: &'a str,
    /// Whom it asked.
    pub upstream: &'a str,
    /// The model that was asked for.
    pub model: &'a str,
    /// What the question was made from, with its version.
    pub template: &'a str,
    /// The question's body.
    pub question: &'a Bytes,
    /// The answer's body; `None` when none came.
    pub answer: Option<&'a Bytes>,
    /// Why there is no answer that could be read.
    pub error: Option<&'a str>,
    /// What was changed in the question on its way, because the upstream refuses it: in words.
    pub changed: Option<&'a str>,
    /// Token counts as the backend said them.
    pub usage: Option<Usage>,
    /// What it cost, in the unit of the configured prices.
    pub cost: Option<f64>,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// The reply as the upstream sent it.
#[derive(Debug, Clone, Copy)]
pub enum Captured<'a> {
    /// There was none.
    Nothing,
    /// One body, in the pieces in which it came.
    Whole(&'a [Bytes]),
    /// An event stream: pieces with their arrival in microseconds since the request arrived.
    Stream(&'a [(Bytes, u64)]),
    /// Bytes of another protocol, both ways, of which only the number is known.
    Uninspected(Uninspected),
}

/// A request body that streamed through, as far as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamedRequest {
    /// Its beginning.
    pub prefix: Bytes,
    /// How long it was, in bytes.
    pub length: u64,
}

/// An exchange has ended.
#[derive(Debug, Clone, Copy)]
pub struct Close<'a> {
    /// Step of the run.
    pub step: StepIndex,
    /// Attempt of the step.
    pub attempt: u32,
    /// How it ended.
    pub cause: CloseCause,
    /// Where the reply came from.
    pub origin: ReplyOrigin,
    /// The status that the client got, or is about to get.
    pub status: Option<u16>,
    /// All headers of the reply.
    pub headers: HeaderPairs<'a>,
    /// The request body, where [`Open::body`] was `None`.
    pub streamed_request: Option<&'a StreamedRequest>,
    /// The reply.
    pub reply: Captured<'a>,
    /// Whether the capture is shorter than what passed.
    pub truncated: bool,
    /// The body that the client got, where it differs from the upstream's.
    pub delivered: Option<&'a Bytes>,
    /// The reply as the upstream sent it, where it was asked for more than the client asked for; `reply` is then without that.
    pub reply_with_logprobs: Option<&'a Bytes>,
    /// What the proxy itself answers, where no reply came.
    pub proxy_error: Option<&'a ProxyErrorText>,
    /// Token counts as the upstream said them.
    pub usage: Option<Usage>,
    /// Why the model stopped, in the API's word.
    pub finish_reason: Option<&'a str>,
    /// Microseconds from the request's arrival to the first byte of the reply.
    pub first_byte_us: Option<u64>,
    /// Microseconds from the request's arrival to the last byte of the reply.
    pub last_byte_us: Option<u64>,
}
