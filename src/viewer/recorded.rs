//! Recordings for tests of what is shown.

use bytes::Bytes;
use jiff::Timestamp;

use crate::{
    recording::{Captured, Close, Inject, Manifest, Open, Recorder, Settings},
    trajectory::{AgentName, Attribution, CloseCause, FailureMode, RunId, Side, Source},
};

/// A recorder of the run `r`.
pub(crate) fn recorder(logs: &std::path::Path) -> Recorder {
    recorder_of(logs, "r")
}

/// A recorder of a run.
pub(crate) fn recorder_of(logs: &std::path::Path, run: &str) -> Recorder {
    std::fs::create_dir_all(logs).expect("a directory");
    let manifest = Manifest::new(RunId::parse(run).expect("an id"), "http://upstream.test", Timestamp::UNIX_EPOCH);
    Recorder::create(logs, manifest, &Settings::default()).expect("creates")
}

/// A call of an agent and its reply; `edited` is the reply that the agent got instead, as an injection made it.
pub(crate) fn call(
    recorder: &Recorder,
    step: u32,
    agent: &str,
    request: &Bytes,
    reply: &Bytes,
    edited: Option<&Bytes>,
) {
    let attribution = Attribution {
        agent: AgentName::parse(agent).expect("a name"),
        instance: 0,
        source: Source::Path,
        evidence: "the path".to_owned(),
        confidence: 1.0,
        ambiguous: false,
    };
    let open = Open {
        step,
        call: step,
        attempt: 0,
        attribution: &attribution,
        overlapping: false,
        run_source: "path",
        surface: "openai_chat",
        method: "POST",
        path: "/v1/chat/completions",
        headers: &[],
        body: Some(request),
        body_hash: None,
        at_us: u64::from(step) * 1000,
        wall: Timestamp::UNIX_EPOCH,
    };
    recorder.open(open).expect("records");
    if let Some(edited) = edited {
        inject(recorder, step, reply, edited);
    }
    let close = Close {
        step,
        attempt: 0,
        cause: CloseCause::Complete,
        status: Some(200),
        headers: &[],
        request_body: None,
        reply: Captured::Whole(std::slice::from_ref(reply)),
        truncated: false,
        delivered: edited,
        usage: None,
        finish_reason: None,
        first_byte_us: Some(1500),
        last_byte_us: Some(2000),
    };
    recorder.close(close).expect("records");
}

fn inject(recorder: &Recorder, step: u32, before: &Bytes, after: &Bytes) {
    let inject = Inject {
        step,
        attempt: 0,
        injection: 0,
        side: Side::Response,
        operator: "corrupt_number",
        failure_mode: Some(FailureMode::ReasoningActionMismatch),
        seed: 7,
        draw: None,
        planned: true,
        matched: true,
        applied: true,
        before: Some(before),
        after: Some(after),
    };
    recorder.inject(inject).expect("records");
}
