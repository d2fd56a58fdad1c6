//! Every file operation fails in turn (the n-th, for all n): no panic, no silent success.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;

use crate::recording::sample;
use crate::recording::{
    Durability, Recorder, RecordingError, Settings, disk::Disk, line, log::Log, read, recover::Recovered, roll::STEP,
};

/// Makes one file operation fail.
#[derive(Debug)]
pub(crate) struct FailNth {
    left: AtomicU64,
}

impl FailNth {
    /// Fails the n-th operation from now, 0-based.
    pub(crate) fn new(n: u64) -> Self {
        Self { left: AtomicU64::new(n) }
    }

    /// One more operation.
    pub(crate) fn count(&self) -> io::Result<()> {
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }
}

/// Records three exchanges and seals; says how many exchanges were acknowledged and whether the seal was.
fn record(logs: &Path, disk: Disk) -> (u32, Result<(), RecordingError>) {
    let settings = Settings { durability: Durability::Synced, ..Settings::default() };
    let mut acknowledged = 0;
    let recorder = match Recorder::create_rolling(disk, logs, sample::manifest("r"), &settings, STEP) {
        Ok(recorder) => recorder,
        Err(error) => return (0, Err(error)),
    };
    let opaque = Bytes::from(vec![b'x'; 70_000]);
    for step in 0..3 {
        let body = Bytes::from(format!("{{\"messages\":[\"{}\"]}}", "text ".repeat(20 + step as usize)));
        let reply = if step == 1 { &opaque } else { &body };
        match sample::exchange(&recorder, step, "solver", &body, reply) {
            Ok(()) => acknowledged += 1,
            Err(error) => {
                assert!(recorder.is_stopped(), "{error}");
                let again = sample::exchange(&recorder, step, "solver", &body, reply);
                assert!(matches!(again, Err(RecordingError::Stopped { .. })));
                assert!(recorder.seal().is_err(), "a stopped recording is never sealed");
                return (acknowledged, Err(error));
            }
        }
    }
    (acknowledged, recorder.seal().map(drop))
}

#[test]
fn every_operation_fails_once() {
    for n in 0.. {
        let logs = tempfile::tempdir().expect("a directory");
        let failing = Arc::new(FailNth::new(n));
        let (acknowledged, outcome) = record(logs.path(), Disk { synced: true, failing: Some(Arc::clone(&failing)) });
        let dir = logs.path().join("r");
        if outcome.is_ok() {
            assert!(n > 20, "the faults were counted");
            assert!(read(&dir).expect("reads").sealed);
            return;
        }
        match read(&dir) {
            Ok(recording) => {
                let closed = recording.trajectory.steps.iter().filter(|step| step.attempts[0].cause.is_some()).count();
                assert!(closed >= acknowledged as usize, "operation {n}: an acknowledged exchange is lost");
            }
            Err(error) => assert!(acknowledged == 0 && matches!(error, RecordingError::NotARun { .. }), "{n}: {error}"),
        }
        let settings = Settings::default();
        match Recorder::create(logs.path(), sample::manifest("r"), &settings) {
            Ok(recorder) => drop(recorder.seal().expect("seals after the fault is gone")),
            Err(error) => assert!(matches!(error, RecordingError::Sealed { .. }), "operation {n}: {error}"),
        }
        assert!(read(&dir).expect("reads").sealed);
    }
}

#[test]
fn a_full_device_ends_the_log() {
    let Ok(full) = OpenOptions::new().append(true).open("/dev/full") else { return };
    let log = Log::new(Disk::default(), Path::new("/dev/full"), full, Durability::Written, Recovered::default(), STEP);
    let queue = || log.queue([], |line| line.extend_from_slice(b"{}"));
    let below = queue().expect("waits");
    match log.write(below) {
        Err(RecordingError::Io { source, .. }) => assert_eq!(source.kind(), io::ErrorKind::StorageFull),
        other => panic!("expected a full device, got {other:?}"),
    }
    assert!(matches!(log.write(below), Err(RecordingError::Stopped { .. })));
    assert!(matches!(queue(), Err(RecordingError::Stopped { .. })));
}

#[test]
fn a_record_that_panics_halfway_leaves_nothing_in_the_log() {
    let logs = tempfile::tempdir().expect("a directory");
    let path = logs.path().join("log.jsonl");
    let file = OpenOptions::new().create(true).append(true).open(&path).expect("opens");
    let log = Log::new(Disk::default(), &path, file, Durability::Written, Recovered::default(), STEP);
    let put = |record: &[u8]| log.queue([], |line| line.extend_from_slice(record)).expect("waits");
    put(b"{\"first\":1}");
    let torn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        log.queue([], |line| {
            line.extend_from_slice(b"{\"half\":");
            panic!("on purpose");
        })
    }));
    assert!(torn.is_err());
    log.write(put(b"{\"second\":2}")).expect("writes");
    let written = std::fs::read_to_string(&path).expect("reads");
    let records: Vec<_> = written.lines().map(|line| line::parse(line.as_bytes()).expect("a line")).collect();
    let expected: [&[u8]; 2] = [b"{\"first\":1}", b"{\"second\":2}"];
    assert_eq!(records.iter().map(|line| line.record).collect::<Vec<_>>(), expected);
    assert_eq!(records.iter().map(|line| line.seq).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn links_are_not_followed() {
    let (logs, elsewhere) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    std::os::unix::fs::symlink(elsewhere.path(), logs.path().join("r")).expect("links");
    let linked = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default());
    assert!(matches!(linked, Err(RecordingError::Link { .. })));
    let target = elsewhere.path().join("target");
    File::create(&target).expect("creates");
    std::fs::create_dir(logs.path().join("r2")).expect("creates");
    std::os::unix::fs::symlink(&target, logs.path().join("r2/log.jsonl")).expect("links");
    let linked = Recorder::create(logs.path(), sample::manifest("r2"), &Settings::default());
    assert!(matches!(linked, Err(RecordingError::Link { .. })));
    assert_eq!(std::fs::read(&target).expect("reads"), b"");
}
