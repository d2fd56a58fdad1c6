//! Records that wait for each other's write.

use bytes::Bytes;

use super::sample;
use crate::recording::{Captured, Recorder, Settings, disk::Disk, read};

#[test]
fn queued_records_go_together_and_nothing_overtakes_them() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
    let log = logs.path().join("r/log.jsonl");
    let written = || std::fs::metadata(&log).expect("a log").len();
    let body = |text: &str| Bytes::from(format!("{{\"messages\":[\"{}\"]}}", text.repeat(80)));

    let first = sample::queue_open(&recorder, 0, "a", &body("x")).expect("waits");
    let second = sample::queue_open(&recorder, 1, "b", &body("x")).expect("waits");
    assert!(first.is_alone && !second.is_alone);
    assert_eq!(written(), 0, "both wait");
    recorder.write_queued(second).expect("writes");
    let both = written();
    recorder.write_queued(first).expect("is written");
    assert_eq!(written(), both, "the first went along");

    let reply = body("y");
    let last = recorder.queue_close(sample::closing(0, Captured::Whole(std::slice::from_ref(&reply))));
    assert_eq!(written(), both, "the reply waits");
    recorder.note("of another");
    let recording = read(&logs.path().join("r")).expect("reads");
    assert_eq!(recording.trajectory.steps[0].attempts[0].reply, reply, "the note took it along");
    recorder.write_queued(last.expect("waits")).expect("is written");
    assert_eq!(recording.trajectory.steps[1].request, body("x"));
}

#[test]
fn a_queue_that_grows_is_written() {
    let logs = tempfile::tempdir().expect("a directory");
    let (manifest, settings) = (sample::manifest("r"), Settings::default());
    let recorder = Recorder::create_rolling(Disk::default(), logs.path(), manifest, &settings, u64::MAX);
    let recorder = recorder.expect("creates");
    let log = logs.path().join("r/log.jsonl");
    let mut most = 0;
    for step in 0..200 {
        let body = Bytes::from(format!("{{\"messages\":[\"{}\"]}}", format!("{step} long ").repeat(1500)));
        let _waits = sample::queue_open(&recorder, step, "a", &body).expect("waits");
        most = std::fs::metadata(&log).expect("a log").len();
    }
    assert!(most > 200 * 8000, "{most} bytes are in the file");
}
