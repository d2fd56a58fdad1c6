//! Recordings for tests of what is shown, of this crate and of those above.
#![allow(clippy::expect_used, clippy::missing_panics_doc, reason = "only tests compile it")]

use bytes::Bytes;

use crate::{
    recording::{Captured, Close, Recorder, Settings, sample},
    trajectory::Attribution,
};

/// A recorder of the run `r`.
pub fn recorder(logs: &std::path::Path) -> Recorder {
    recorder_of(logs, "r")
}

/// A recorder of a run.
pub fn recorder_of(logs: &std::path::Path, run: &str) -> Recorder {
    std::fs::create_dir_all(logs).expect("a directory");
    Recorder::create(logs, sample::manifest(run), &Settings::default()).expect("creates")
}

/// A call of an agent and its reply; `edited` is the reply that the agent got instead, as an injection made it.
pub fn call(recorder: &Recorder, step: u32, agent: &str, request: &Bytes, reply: &Bytes, edited: Option<&Bytes>) {
    let attribution = Attribution { evidence: "the path".to_owned(), ..sample::agent(agent) };
    recorder.open(sample::opening(step, &attribution, request)).expect("records");
    if let Some(edited) = edited {
        recorder.inject(sample::injection(step, reply, edited)).expect("records");
    }
    let whole = Captured::Whole(std::slice::from_ref(reply));
    let close = Close {
        delivered: edited,
        reply_with_logprobs: None,
        usage: None,
        finish_reason: None,
        first_byte_us: Some(1500),
        last_byte_us: Some(2000),
        ..sample::closing(step, whole)
    };
    recorder.close(close).expect("records");
}
