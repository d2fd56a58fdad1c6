//! Recordings for tests of what is shown.

use bytes::Bytes;

use crate::recording::{Captured, Close, Recorder, Settings, tests::sample};

/// A recorder of the run `r`.
pub(crate) fn recorder(logs: &std::path::Path) -> Recorder {
    std::fs::create_dir_all(logs).expect("a directory");
    Recorder::create(logs, sample::manifest("r"), &Settings::default()).expect("creates")
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
    sample::open(recorder, step, agent, request).expect("records");
    if let Some(edited) = edited {
        recorder.inject(sample::injection(step, reply, edited)).expect("records");
    }
    let whole = Captured::Whole(std::slice::from_ref(reply));
    recorder.close(Close { delivered: edited, ..sample::closing(step, whole) }).expect("records");
}
