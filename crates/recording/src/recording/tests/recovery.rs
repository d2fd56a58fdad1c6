//! Torn ends are recovered, damage before the end is refused: at every byte.

use std::path::Path;

use bytes::Bytes;

use super::sample;
use crate::recording::{Recorder, RecordingError, Settings, read};

/// A run of two exchanges whose recorder is gone without a seal, as after a kill; its log.
fn killed(logs: &Path) -> Vec<u8> {
    killed_after(logs, 9)
}

/// The same with so many words a body: from 800 it is packed when it is sealed.
fn killed_after(logs: &Path, words: usize) -> Vec<u8> {
    let recorder = Recorder::create(logs, sample::manifest("r"), &Settings::default()).expect("creates");
    for step in 0..2 {
        let body = Bytes::from(format!("{{\"messages\":[\"step {step} {}\"]}}", "says so ".repeat(words)));
        sample::exchange(&recorder, step, "solver", &body, &body).expect("records");
    }
    std::fs::read(logs.join("r/log.jsonl")).expect("is there")
}

fn put(logs: &Path, log: &[u8]) {
    std::fs::write(logs.join("r/log.jsonl"), log).expect("writes");
}

fn reopened(logs: &Path) -> Result<Recorder, RecordingError> {
    Recorder::create(logs, sample::manifest("r"), &Settings::default())
}

#[test]
fn a_killed_recorder_loses_nothing_that_was_written() {
    let logs = tempfile::tempdir().expect("a directory");
    killed(logs.path());
    let recorder = reopened(logs.path()).expect("goes on");
    let body = Bytes::from_static(b"{}");
    sample::exchange(&recorder, 2, "solver", &body, &body).expect("records");
    let seal = recorder.seal().expect("seals");
    assert_eq!((seal.steps, seal.exchanges, seal.open), (3, 3, 0));
    let recording = read(&logs.path().join("r")).expect("reads");
    assert_eq!(recording.trajectory.steps.len(), 3);
    assert_eq!(recording.notes, ["the recording was reopened"]);
}

#[test]
fn the_last_record_cut_at_every_byte_is_recovered() {
    let logs = tempfile::tempdir().expect("a directory");
    let log = killed(logs.path());
    let last = log[..log.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    for length in last..log.len() {
        put(logs.path(), &log[..length]);
        let _ = std::fs::remove_file(logs.path().join("r/log.torn"));
        let recording = read(&logs.path().join("r")).expect("reads");
        assert_eq!(recording.torn_bytes, (length - last) as u64);
        assert_eq!(recording.open_exchanges, 1, "the cut exchange is open, not a hole");
        assert_eq!(std::fs::read(logs.path().join("r/log.jsonl")).expect("is there"), &log[..length]);
        drop(reopened(logs.path()).expect("recovers"));
        let torn = std::fs::read(logs.path().join("r/log.torn")).unwrap_or_default();
        assert_eq!(torn, &log[last..length]);
        let recording = read(&logs.path().join("r")).expect("reads");
        assert_eq!((recording.torn_bytes, recording.trajectory.steps.len()), (0, 2));
    }
}

#[test]
fn zeros_and_half_written_tails_are_recovered() {
    let logs = tempfile::tempdir().expect("a directory");
    let log = killed(logs.path());
    let cases: [&[u8]; 4] = [&[0; 4096], b"{\"v\":1,\"seq\":99", b"\n\n\n", b"garbage\nand\x00more\n"];
    for tail in cases {
        put(logs.path(), &[&log, tail].concat());
        let recording = read(&logs.path().join("r")).expect("reads");
        assert_eq!(recording.torn_bytes, tail.len() as u64);
        drop(reopened(logs.path()).expect("recovers"));
        assert_eq!(read(&logs.path().join("r")).expect("reads").trajectory.steps.len(), 2);
    }
    put(logs.path(), &log);
    let file = std::fs::OpenOptions::new().write(true).open(logs.path().join("r/log.jsonl")).expect("opens");
    file.set_len(log.len() as u64 + 10_000).expect("grows past the end");
    assert_eq!(read(&logs.path().join("r")).expect("reads").torn_bytes, 10_000);
}

#[test]
fn every_flipped_byte_of_a_middle_record_is_refused() {
    let logs = tempfile::tempdir().expect("a directory");
    let log = killed(logs.path());
    let first = log.iter().position(|byte| *byte == b'\n').expect("lines") + 1;
    let second = first + log[first..].iter().position(|byte| *byte == b'\n').expect("lines") + 1;
    for position in first..second {
        for flip in [0x01, 0x20] {
            let mut damaged = log.clone();
            damaged[position] ^= flip;
            put(logs.path(), &damaged);
            for error in [read(&logs.path().join("r")).map(drop), reopened(logs.path()).map(drop)] {
                match error.expect_err("damage in the middle is refused") {
                    RecordingError::Corrupt { line: 2, .. } | RecordingError::Future { .. } => {}
                    other => panic!("byte {position}: {other}"),
                }
            }
            assert_eq!(std::fs::read(logs.path().join("r/log.jsonl")).expect("is there"), damaged, "left as it was");
        }
    }
}

#[test]
fn a_missing_line_text_or_parent_is_corruption() {
    let logs = tempfile::tempdir().expect("a directory");
    let log = String::from_utf8(killed(logs.path())).expect("JSON");
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    put(logs.path(), [&lines[..1], &lines[2..]].concat().concat().as_bytes());
    assert!(matches!(read(&logs.path().join("r")), Err(RecordingError::Corrupt { line: 2, .. })));

    let text = lines.iter().position(|line| line.contains("\"kind\":\"text\"")).expect("a text");
    let without: Vec<String> = lines
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != text)
        .enumerate()
        .map(|(seq, (at, line))| line.replacen(&format!("\"seq\":{at},"), &format!("\"seq\":{seq},"), 1))
        .collect();
    put(logs.path(), without.concat().as_bytes());
    match read(&logs.path().join("r")) {
        Err(RecordingError::Corrupt { why, .. }) => assert!(why.contains("is not in the log"), "{why}"),
        other => panic!("expected corruption, got {other:?}"),
    }
}

#[test]
fn a_sealed_log_is_checked_against_its_seal() {
    let logs = tempfile::tempdir().expect("a directory");
    killed_after(logs.path(), 800);
    reopened(logs.path()).expect("goes on").seal().expect("seals");
    let packed = logs.path().join("r/log.jsonl.zst");
    let good = std::fs::read(&packed).expect("is there");
    let plain = zstd::decode_all(good.as_slice()).expect("zstd");
    for position in 0..good.len() {
        let mut damaged = good.clone();
        damaged[position] ^= 0x10;
        std::fs::write(&packed, &damaged).expect("writes");
        if zstd::decode_all(damaged.as_slice()).is_ok_and(|bytes| bytes == plain) {
            continue;
        }
        let error = read(&logs.path().join("r")).expect_err("damage is refused");
        assert_eq!(error.exit_code(), 5, "byte {position}: {error}");
    }
    for length in 0..good.len() {
        std::fs::write(&packed, &good[..length]).expect("writes");
        let error = read(&logs.path().join("r")).expect_err("a cut log is refused");
        assert_eq!(error.exit_code(), 5, "length {length}: {error}");
    }
    let longer = [plain.as_slice(), b"{}\n"].concat();
    std::fs::write(&packed, zstd::encode_all(longer.as_slice(), 1).expect("packs")).expect("writes");
    assert!(matches!(read(&logs.path().join("r")), Err(RecordingError::Corrupt { .. })));
}

/// What a run directory holds.
fn held(dir: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("lists").flatten();
    entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("reads")))
        .collect()
}

#[test]
fn a_sealed_run_that_lost_its_seal_is_written_over_by_nobody() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = logs.path().join("r");
    let log = killed_after(logs.path(), 800);
    reopened(logs.path()).expect("reopens").seal().expect("seals");
    std::fs::remove_file(dir.join("seal.json")).expect("removes");
    for plain in [None, Some(&b""[..]), Some(&log[..])] {
        if let Some(plain) = plain {
            std::fs::write(dir.join("log.jsonl"), plain).expect("writes");
        }
        let before = held(&dir);
        for error in [reopened(logs.path()).map(drop), read(&dir).map(drop)] {
            let error = error.expect_err("refused");
            assert!(matches!(error, RecordingError::SealLost { .. }) && error.exit_code() == 5, "{error}");
            assert!(error.to_string().contains("--salvage"), "{error}");
        }
        assert_eq!(held(&dir), before);
    }
    let target = logs.path().join("salvaged");
    let repaired = crate::recording::repair(&dir, Some(&target)).expect("salvages");
    assert_eq!((repaired.steps, repaired.lost), (2, 0));
    assert_eq!(read(&target).expect("reads").trajectory.steps.len(), 2);
}

#[test]
fn a_small_log_stays_plain_when_it_is_sealed_and_is_checked_all_the_same() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = logs.path().join("r");
    killed(logs.path());
    reopened(logs.path()).expect("goes on").seal().expect("seals");
    assert_eq!(held(&dir).into_keys().collect::<Vec<_>>(), ["log.jsonl", "run.json", "seal.json"]);
    let log = std::fs::read(dir.join("log.jsonl")).expect("reads");
    for damaged in [&log[..log.len() - 1], &[&log[..], b"{}\n"].concat(), &[b" ", &log[1..]].concat(), b""] {
        put(logs.path(), damaged);
        let error = read(&dir).expect_err("it does not fit its seal");
        assert_eq!(error.exit_code(), 5, "{error}");
        assert!(matches!(reopened(logs.path()), Err(RecordingError::Sealed { .. })));
        assert_eq!(std::fs::read(dir.join("log.jsonl")).expect("reads"), damaged, "left as it was");
    }
    // Without its seal it is a run that was never sealed: it goes on, and nothing is written over.
    put(logs.path(), &log);
    std::fs::remove_file(dir.join("seal.json")).expect("removes");
    assert_eq!(read(&dir).expect("reads").trajectory.steps.len(), 2);
    drop(reopened(logs.path()).expect("goes on"));
    assert!(std::fs::read(dir.join("log.jsonl")).expect("reads").starts_with(&log));
}

#[test]
fn a_sealing_that_was_interrupted_goes_on() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = logs.path().join("r");
    let log = killed(logs.path());
    std::fs::write(dir.join("log.jsonl.zst"), zstd::encode_all(log.as_slice(), 1).expect("packs")).expect("writes");
    assert_eq!(read(&dir).expect("reads").trajectory.steps.len(), 2);
    reopened(logs.path()).expect("reopens").seal().expect("seals");
    assert_eq!(read(&dir).expect("reads").trajectory.steps.len(), 2);
}

#[test]
fn a_directory_that_others_could_read_is_theirs_no_more() {
    use std::os::unix::fs::PermissionsExt;
    let logs = tempfile::tempdir().expect("a directory");
    let dir = logs.path().join("r");
    std::fs::create_dir(&dir).expect("makes");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).expect("opens it");
    let _recorder = reopened(logs.path()).expect("creates");
    assert_eq!(std::fs::metadata(&dir).expect("there").permissions().mode() & 0o777, 0o700);
}
