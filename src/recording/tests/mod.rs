//! What is written is read back; what must not be written is refused.

pub(crate) mod faults;
mod queue;
mod reading;
mod recovery;
mod round_trip;
mod sample;
mod secrets;
mod size;

use std::os::unix::fs::PermissionsExt;

use bytes::Bytes;

use super::{Recorder, RecordingError, Settings, read};

#[test]
fn a_run_reads_back_live_and_sealed() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = Recorder::create(logs.path(), sample::manifest("r1"), &Settings::default()).expect("creates");
    let (request, reply) = (Bytes::from_static(b"{\"messages\":[]}"), Bytes::from_static(b"\xff\x00 not text"));
    sample::exchange(&recorder, 0, "solver", &request, &reply).expect("records");
    sample::open(&recorder, 1, "critic", &request).expect("records");
    for sealed in [false, true] {
        let again = Recorder::create(logs.path(), sample::manifest("r1"), &Settings::default());
        assert!(matches!(again, Err(RecordingError::Locked { .. })), "while it is recorded");
        if sealed {
            recorder.seal().expect("seals");
        }
        let recording = read(&logs.path().join("r1")).expect("reads");
        assert_eq!(recording.sealed, sealed);
        assert_eq!(recording.open_exchanges, 1);
        let steps = &recording.trajectory.steps;
        assert_eq!(steps[0].request, request);
        assert_eq!(steps[0].attempts[0].reply, reply);
        assert_eq!(steps[0].attribution, sample::agent("solver"));
        assert_eq!(steps[1].attempts[0].cause, None, "an interrupted exchange is open, not a hole");
    }
    let again = || Recorder::create(logs.path(), sample::manifest("r1"), &Settings::default());
    assert!(matches!(again(), Err(RecordingError::Sealed { .. })), "while its recorder is still there");
    drop(recorder);
    assert!(matches!(again(), Err(RecordingError::Sealed { .. })));
}

#[test]
fn a_text_that_was_forgotten_is_recorded_again() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
    let text = |number: usize| format!("\"number {number} of a text that is long enough to be a text of its own\"");
    let body = |name: u32, texts: std::ops::Range<usize>| {
        Bytes::from(format!("{{\"{name}\":[{}]}}", texts.map(text).collect::<Vec<_>>().join(",")))
    };
    let said: Vec<Bytes> = [0..1, 0..9_000, 9_000..18_000, 18_000..27_000, 0..1]
        .into_iter()
        .zip(0..)
        .map(|(texts, name)| body(name, texts))
        .collect();
    for (step, body) in (0..).zip(&said) {
        sample::exchange(&recorder, step, "solver", body, body).expect("records");
    }
    let log = std::fs::read_to_string(logs.path().join("r/log.jsonl")).expect("is there");
    let times = |number: usize| log.matches(text(number).trim_matches('"')).count();
    assert_eq!((times(0), times(1), times(26_999)), (2, 1, 1));
    let recording = read(&logs.path().join("r")).expect("reads");
    assert!(recording.trajectory.steps.iter().map(|step| &step.request).eq(&said));
}

#[test]
fn a_second_writer_is_told_who_writes() {
    let logs = tempfile::tempdir().expect("a directory");
    let _first = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
    let error = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect_err("locked");
    assert_eq!(error.to_string(), format!("run `r` is being recorded by process {}", std::process::id()));
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn a_plan_is_immutable_for_the_life_of_a_run() {
    let logs = tempfile::tempdir().expect("a directory");
    let with = |plan: &str| sample::manifest("r").with_plan(plan, 7);
    drop(Recorder::create(logs.path(), with("a"), &Settings::default()).expect("creates"));
    drop(Recorder::create(logs.path(), with("a"), &Settings::default()).expect("goes on"));
    let other = Recorder::create(logs.path(), with("b"), &Settings::default());
    assert!(matches!(other, Err(RecordingError::OtherPlan { .. })));
}

#[test]
fn files_are_for_the_owner_only() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
    let opaque = Bytes::from(vec![0xff; 100_000]);
    sample::exchange(&recorder, 0, "a", &opaque, &opaque).expect("records");
    recorder.seal().expect("seals");
    let mut pending = vec![logs.path().join("r")];
    let mut files = 0;
    while let Some(path) = pending.pop() {
        let metadata = std::fs::metadata(&path).expect("is there");
        let mode = metadata.permissions().mode() & 0o777;
        assert_eq!(mode, if metadata.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if metadata.is_dir() {
            pending.extend(std::fs::read_dir(&path).expect("lists").map(|entry| entry.expect("an entry").path()));
        } else {
            files += 1;
        }
    }
    assert_eq!(files, 5, "run.json, log, seal, lock, one blob");
}
