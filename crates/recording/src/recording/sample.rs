//! Exchanges for tests, of this crate and of those above: short ways to record one.
#![allow(clippy::expect_used, clippy::missing_errors_doc, clippy::missing_panics_doc, reason = "only tests compile it")]

use bytes::Bytes;
use jiff::Timestamp;

use crate::{
    recording::{Captured, Close, Inject, Manifest, Open, Queued, Recorder, RecordingError},
    trajectory::{AgentName, Attribution, CloseCause, FailureMode, RunId, Side, Source, StepIndex, Usage},
};

/// A manifest.
pub fn manifest(run: &str) -> Manifest {
    Manifest::new(RunId::parse(run).expect("a run id"), "http://upstream.test", Timestamp::UNIX_EPOCH)
}

/// Who made a call.
pub fn agent(name: &str) -> Attribution {
    Attribution {
        agent: AgentName::parse(name).expect("an agent name"),
        instance: 0,
        source: Source::Path,
        evidence: format!("/a/{name}"),
        confidence: 1.0,
        ambiguous: false,
    }
}

/// Opens a step.
pub fn open(recorder: &Recorder, step: StepIndex, name: &str, body: &Bytes) -> Result<(), RecordingError> {
    recorder.write_queued(queue_open(recorder, step, name, body)?)
}

/// Opens a step without writing it yet.
pub fn queue_open(recorder: &Recorder, step: StepIndex, name: &str, body: &Bytes) -> Result<Queued, RecordingError> {
    recorder.queue_open(opening(step, &agent(name), body))
}

/// The opening of a step.
pub fn opening<'a>(step: StepIndex, attribution: &'a Attribution, body: &'a Bytes) -> Open<'a> {
    Open {
        step,
        call: step,
        attempt: 0,
        attribution,
        overlapping: false,
        relates: crate::trajectory::RecordedRelation::first(),
        run_source: "path",
        surface: "openai_chat",
        method: "POST",
        path: "/v1/chat/completions",
        headers: &[("content-type", b"application/json")],
        body: Some(body),
        body_hash: None,
        at_us: u64::from(step) * 1000,
        wall: Timestamp::UNIX_EPOCH,
    }
}

/// An injection into a step's reply, by the first of a plan.
pub fn injection<'a>(step: StepIndex, before: &'a Bytes, after: &'a Bytes) -> Inject<'a> {
    Inject {
        step,
        attempt: 0,
        injection: 0,
        side: Side::Response,
        operator: "corrupt_number",
        failure_mode: Some(FailureMode::ReasoningActionMismatch),
        speaker: None,
        seed: 7,
        draw: None,
        planned: true,
        matched: true,
        applied: true,
        before: Some(before),
        after: Some(after),
    }
}

/// The close of a step that went well.
pub fn closing(step: StepIndex, reply: Captured<'_>) -> Close<'_> {
    Close {
        step,
        attempt: 0,
        cause: CloseCause::Complete,
        origin: crate::trajectory::ReplyOrigin::Live,
        status: Some(200),
        headers: &[("content-type", b"application/json")],
        streamed_request: None,
        reply,
        truncated: false,
        delivered: None,
        reply_with_logprobs: None,
        proxy_error: None,
        usage: Some(Usage { input: 10, output: 5 }),
        finish_reason: Some("stop"),
        first_byte_us: Some(100),
        last_byte_us: Some(200),
    }
}

/// Opens and closes a step with a whole reply.
pub fn exchange(
    recorder: &Recorder,
    step: StepIndex,
    name: &str,
    body: &Bytes,
    reply: &Bytes,
) -> Result<(), RecordingError> {
    open(recorder, step, name, body)?;
    recorder.close(closing(step, Captured::Whole(std::slice::from_ref(reply))))
}
