//! What is written is read back; what must not be written is refused.

pub(super) mod faults;
mod matrix;
mod queue;
mod reading;
mod recovery;
mod rolling;
mod round_trip;
mod secrets;
mod size;
mod spread;

use std::os::unix::fs::PermissionsExt;

use bytes::Bytes;

use super::{Durability, Recorder, RecordingError, Settings, read, sample};

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
    let log = whole_log(&logs.path().join("r"));
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

/// The log of a run that is not sealed, also where it has rolled.
fn whole_log(dir: &std::path::Path) -> String {
    let unsealed = super::head::read_unsealed(dir).expect("reads").expect("a log");
    String::from_utf8(unsealed.bytes).expect("JSON")
}

/// What this process has open below the directory.
fn open_below(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let dir = dir.canonicalize().expect("is there");
    let open = std::fs::read_dir("/proc/self/fd").expect("lists").flatten();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.starts_with(&dir)).collect()
}

#[test]
fn a_run_holds_one_descriptor() {
    let every = std::time::Duration::from_millis(50);
    for durability in [Durability::Written, Durability::Synced, Durability::Interval(every)] {
        let logs = tempfile::tempdir().expect("a directory");
        let settings = Settings { durability, ..Settings::default() };
        let recorder = Recorder::create(logs.path(), sample::manifest("r"), &settings).expect("creates");
        let body = Bytes::from_static(b"{}");
        for step in 0..3 {
            let opaque = Bytes::from(vec![0xff; 70_000 + step as usize]);
            sample::exchange(&recorder, step, "a", &body, &opaque).expect("records");
            assert_eq!(open_below(logs.path()).len(), 1, "{durability:?}: the log, which is the lock too");
        }
        recorder.seal().expect("seals");
        drop(recorder);
        assert_eq!(open_below(logs.path()).len(), 0);
    }
}

/// Versions before this one held a lock beside the log.
#[test]
fn a_run_that_an_earlier_version_writes_is_refused() {
    let logs = tempfile::tempdir().expect("a directory");
    let again = || Recorder::create(logs.path(), sample::manifest("r"), &Settings::default());
    drop(again().expect("creates"));
    let lock = std::fs::File::create(logs.path().join("r/lock")).expect("creates");
    lock.lock().expect("locks");
    std::fs::write(logs.path().join("r/lock"), "4711").expect("writes");
    match again() {
        Err(RecordingError::Locked { pid: Some(4711), .. }) => {}
        other => panic!("expected a refusal, got {other:?}"),
    }
    drop(lock);
    again().expect("goes on").seal().expect("seals");
    assert!(read(&logs.path().join("r")).expect("reads").sealed);
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
    assert_eq!(files, 4, "run.json, log, seal, one blob");
}
