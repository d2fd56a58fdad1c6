//! A long log rolls: whatever moment its writer is killed at, nothing is lost, and what is there is never written over.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use bytes::Bytes;

use super::{faults::FailNth, sample};
use crate::recording::{
    Durability, Recorder, RecordingError, Settings, disk::Disk, head::HEAD, read, repair, roll::STEP,
};

/// A request, or a reply, that no other is like.
fn body(step: u32) -> Bytes {
    let words: Vec<String> =
        (0..20).map(|word| format!("{:08x}", (step * 97 + word).wrapping_mul(2_654_435_761))).collect();
    format!("{{\"messages\":[\"{step} {}\"]}}", words.join(" ")).into()
}

fn rolling(logs: &Path, step: u64) -> Result<Recorder, RecordingError> {
    Recorder::create_rolling(Disk::default(), logs, sample::manifest("r"), &Settings::default(), step)
}

fn exchange(recorder: &Recorder, step: u32) -> Result<(), RecordingError> {
    sample::exchange(recorder, step, "solver", &body(step), &body(1000 + step))
}

/// The steps of a run, checked.
fn steps(dir: &Path) -> u32 {
    let recording = read(dir).expect("reads");
    assert_eq!(recording.torn_bytes, 0);
    for (number, step) in (0..).zip(&recording.trajectory.steps) {
        assert_eq!((step.step, &step.request), (number, &body(number)));
        assert_eq!(step.attempts[0].reply, body(1000 + number));
    }
    u32::try_from(recording.trajectory.steps.len()).expect("few")
}

/// The lines of a run of so many exchanges that was killed.
fn killed(exchanges: u32) -> Vec<Vec<u8>> {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = rolling(logs.path(), STEP).expect("creates");
    (0..exchanges).for_each(|step| exchange(&recorder, step).expect("records"));
    let log = std::fs::read(logs.path().join("r/log.jsonl")).expect("a log");
    log.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn frame(lines: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.include_checksum(true).expect("is set");
    std::io::Write::write_all(&mut encoder, &lines.concat()).expect("packs");
    encoder.finish().expect("packs")
}

/// A run directory with these files beside `run.json`.
fn put(logs: &Path, files: &[(&str, &[u8])]) {
    let dir = logs.join("r");
    std::fs::create_dir_all(&dir).expect("makes");
    let manifest = serde_json::to_vec(&sample::manifest("r")).expect("JSON");
    for (name, content) in files.iter().copied().chain([("run.json", &manifest[..])]) {
        std::fs::write(dir.join(name), content).expect("writes");
    }
}

fn held(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("lists").flatten();
    entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("reads")))
        .collect()
}

/// Lines move in this order: a frame is written (it may be cut anywhere), a new log is written beside the old one (cut
/// anywhere), and takes its place.
#[test]
fn a_writer_killed_at_any_moment_of_rolling_has_lost_nothing() {
    let lines = killed(3);
    let all = lines.len();
    for framed in 0..all {
        for from in 0..=framed {
            let next = frame(&lines[framed..all - 1]);
            let second = framed / 2;
            let mut head: Vec<u8> =
                [&lines[..second], &lines[second..framed]].iter().flat_map(|part| frame(part)).collect();
            if framed == 0 {
                head.clear();
            }
            let log = lines[from..].concat();
            for torn in [0, 1, next.len() / 2, next.len() - 1] {
                let logs = tempfile::tempdir().expect("a directory");
                let head = [&head[..], &next[..torn]].concat();
                let tmp = &log[log.len() / 2..log.len() - torn.min(log.len() / 4)];
                put(logs.path(), &[("log.jsonl", &log), (HEAD, &head), ("log.jsonl.tmp", tmp)]);
                let dir = logs.path().join("r");
                assert_eq!(steps(&dir), 3, "{framed} lines in the head, the log begins at {from}, {torn} bytes torn");
                let recorder = rolling(logs.path(), if torn == 1 { STEP } else { 1 }).expect("goes on");
                (3..5).for_each(|step| exchange(&recorder, step).expect("records"));
                assert_eq!(steps(&dir), 5);
                recorder.log.roll();
                let rest = std::fs::read(dir.join("log.jsonl")).expect("a log");
                let left = rest.iter().filter(|byte| **byte == b'\n').count();
                assert!(torn == 1 || left <= 3, "all but the last write has moved: {left} lines are left");
                assert_eq!(steps(&dir), 5);
                recorder.seal().expect("seals");
                assert_eq!(steps(&dir), 5);
                assert!(read(&dir).expect("reads").sealed);
                let names: Vec<String> = held(&dir).into_keys().filter(|name| name != "log.jsonl.tmp").collect();
                assert!(names == ["log.jsonl.zst", "run.json", "seal.json"], "{names:?}");
            }
        }
    }
}

#[test]
fn a_torn_end_behind_a_head_is_cut() {
    let lines = killed(2);
    let last = lines.last().expect("a line");
    for framed in [0, 1, lines.len() - 1] {
        for cut in [1, last.len() / 2, last.len() - 1] {
            let logs = tempfile::tempdir().expect("a directory");
            let log = lines[framed.saturating_sub(1)..].concat();
            let log = &log[..log.len() - cut];
            if framed == lines.len() - 1 && cut == last.len() {
                continue;
            }
            put(logs.path(), &[("log.jsonl", log), (HEAD, &frame(&lines[..framed]))]);
            let dir = logs.path().join("r");
            let recording = read(&dir).expect("reads");
            assert_eq!((recording.torn_bytes, recording.open_exchanges), ((last.len() - cut) as u64, 1));
            let recorder = rolling(logs.path(), STEP).expect("goes on");
            assert_eq!(std::fs::read(dir.join("log.torn")).expect("is kept"), last[..last.len() - cut]);
            recorder.seal().expect("seals");
            assert_eq!(read(&dir).expect("reads").trajectory.steps.len(), 2);
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused_and_left_as_it_is() {
    let lines = killed(3);
    let (head, damaged) = (frame(&lines[..4]), {
        let mut damaged = frame(&lines[..4]);
        damaged[30] ^= 1;
        damaged
    });
    let mut changed = lines[2..].concat();
    changed[60] ^= 1;
    let (none, rest, gap): (&[u8], _, _) = (b"", lines[4..].concat(), lines[5..].concat());
    let cut = &rest[10..];
    for (what, head, log) in [
        ("the log is gone", &head, None),
        ("the log is empty", &head, Some(none)),
        ("lines are missing between the two", &head, Some(&gap[..])),
        ("the log's first line is cut", &head, Some(cut)),
        ("a line in both is not the same", &head, Some(&changed[..])),
        ("the head is damaged", &damaged, Some(&rest[..])),
        ("the head is cut", &head[..head.len() - 1].to_vec(), Some(&rest[..])),
    ] {
        let logs = tempfile::tempdir().expect("a directory");
        put(logs.path(), &[(HEAD, head)]);
        log.iter().for_each(|log| put(logs.path(), &[("log.jsonl", log)]));
        let dir = logs.path().join("r");
        let before = held(&dir);
        for error in [read(&dir).map(drop), rolling(logs.path(), 1).map(drop)] {
            let error = error.expect_err(what);
            assert_eq!(error.exit_code(), 5, "{what}: {error}");
            assert!(error.to_string().contains("--salvage"), "{what}: {error}");
        }
        assert_eq!(held(&dir), before, "{what}");
        repair(&dir, Some(&logs.path().join("salvaged"))).expect("salvages");
        assert_eq!(held(&dir), before, "{what}");
    }
}

/// A sealing is killed: after the packed log is there, after the seal, after either of what it was made from is gone.
#[test]
fn a_sealing_of_a_long_log_that_was_killed_goes_on() {
    let lines = killed(3);
    let sealed = {
        let logs = tempfile::tempdir().expect("a directory");
        put(logs.path(), &[("log.jsonl", &lines[3..].concat()), (HEAD, &frame(&lines[..4]))]);
        rolling(logs.path(), STEP).expect("goes on").seal().expect("seals");
        held(&logs.path().join("r"))
    };
    let packed = &sealed["log.jsonl.zst"];
    let whole = zstd::decode_all(&packed[..]).expect("zstd");
    let lines: Vec<Vec<u8>> = whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (head, log) = (frame(&lines[..4]), lines[3..].concat());
    let seal = &sealed["seal.json"];
    for files in [
        &[("log.jsonl.zst.tmp", &packed[..9]), (HEAD, &head[..]), ("log.jsonl", &log)][..],
        &[("log.jsonl.zst", packed), (HEAD, &head), ("log.jsonl", &log)],
        &[("log.jsonl.zst", packed), (HEAD, &head), ("log.jsonl", &log), ("seal.json.tmp", &seal[..9])],
        &[("log.jsonl.zst", packed), (HEAD, &head), ("log.jsonl", &log), ("seal.json", seal)],
        &[("log.jsonl.zst", packed), (HEAD, &head), ("seal.json", seal)],
        &[("log.jsonl.zst", packed), ("seal.json", seal)],
    ] {
        let logs = tempfile::tempdir().expect("a directory");
        put(logs.path(), files);
        let dir = logs.path().join("r");
        assert_eq!(steps(&dir), 3);
        match rolling(logs.path(), 1) {
            Ok(recorder) => {
                exchange(&recorder, 3).expect("records");
                recorder.seal().expect("seals");
                assert_eq!(steps(&dir), 4);
            }
            Err(RecordingError::Sealed { .. }) => assert!(files.iter().any(|(name, _)| *name == "seal.json")),
            Err(other) => panic!("{other}"),
        }
        repair(&dir, Some(&logs.path().join("salvaged"))).expect("salvages");
        assert!(read(&logs.path().join("salvaged")).expect("reads").trajectory.steps.len() >= 3);
    }
}

#[test]
fn a_failure_while_a_log_rolls_loses_nothing() {
    for durability in [Durability::Written, Durability::Synced] {
        for n in 0.. {
            let logs = tempfile::tempdir().expect("a directory");
            let disk = Disk { synced: false, failing: Some(Arc::new(FailNth::new(n))) };
            let settings = Settings { durability, ..Settings::default() };
            let Ok(recorder) = Recorder::create_rolling(disk, logs.path(), sample::manifest("r"), &settings, 1) else {
                continue;
            };
            let acknowledged = (0..6).take_while(|step| exchange(&recorder, *step).is_ok()).count();
            recorder.log.roll();
            let sealed = recorder.seal().is_ok();
            drop(recorder);
            let dir = logs.path().join("r");
            let recording = read(&dir).expect("reads");
            let closed = recording.trajectory.steps.iter().filter(|step| step.attempts[0].cause.is_some()).count();
            assert!(closed >= acknowledged, "operation {n}: {closed} of {acknowledged}");
            if sealed {
                assert!(acknowledged == 6 && n > 30, "the faults were counted");
                break;
            }
            match rolling(logs.path(), 1) {
                Ok(recorder) => drop(recorder.seal().expect("seals")),
                Err(error) => assert!(matches!(error, RecordingError::Sealed { .. }), "operation {n}: {error}"),
            }
            assert!(read(&dir).expect("reads").trajectory.steps.len() >= closed);
        }
    }
}

#[test]
fn a_log_that_rolls_is_read_and_locked_at_every_moment() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = logs.path().join("r");
    let recorder = rolling(logs.path(), 300).expect("creates");
    let acknowledged = std::sync::atomic::AtomicU32::new(0);
    let now = || acknowledged.load(std::sync::atomic::Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for step in 0..150 {
                exchange(&recorder, step).expect("records");
                acknowledged.store(step + 1, std::sync::atomic::Ordering::SeqCst);
            }
            recorder.seal().expect("seals");
        });
        while now() < 150 {
            let before = now();
            match read(&dir) {
                Ok(read) => {
                    let closed = read.trajectory.steps.iter().filter(|step| step.attempts[0].cause.is_some()).count();
                    assert!(closed >= before as usize, "{closed} of {before} are read");
                }
                Err(error) => assert_eq!(before, 0, "{error}"),
            }
            let again = rolling(logs.path(), 1).expect_err("it is being written");
            assert!(matches!(again, RecordingError::Locked { .. } | RecordingError::Sealed { .. }), "{again}");
        }
    });
    assert_eq!(steps(&dir), 150);
    assert!(super::open_below(logs.path()).len() <= 1);
    drop(recorder);
    assert!(matches!(rolling(logs.path(), 1), Err(RecordingError::Sealed { .. })));
}

#[test]
fn a_log_that_was_deleted_does_not_come_back() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = rolling(logs.path(), STEP).expect("creates");
    exchange(&recorder, 0).expect("records");
    std::fs::remove_file(logs.path().join("r/log.jsonl")).expect("removes");
    recorder.log.roll();
    assert!(matches!(exchange(&recorder, 1), Err(RecordingError::Io { .. })));
    assert!(!logs.path().join("r/log.jsonl").exists());
}
