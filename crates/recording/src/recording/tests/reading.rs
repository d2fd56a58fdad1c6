//! What a reader makes of records: attempts, edits and whether they arrived, turns, clocks that leap.

use std::os::unix::fs::MetadataExt;

use bytes::Bytes;
use jiff::{Timestamp, ToSpan};

use super::sample;
use crate::{
    recording::{Captured, Clock, Inject, Open, Recorder, RecordingError, Settings, read, read_manifest, repair},
    trajectory::{CloseCause, FailureMode, Outcome, ProgramEnd, Side},
};

fn recorder(logs: &tempfile::TempDir) -> Recorder {
    Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates")
}

fn inject<'a>(side: Side, attempt: u32, before: &'a Bytes, after: &'a Bytes) -> Inject<'a> {
    Inject {
        attempt,
        side,
        operator: "replace_text",
        failure_mode: Some(FailureMode::TaskDerailment),
        draw: Some(2),
        ..sample::injection(0, before, after)
    }
}

#[test]
fn an_edit_counts_as_delivered_only_where_it_arrived() {
    let (before, after) =
        (Bytes::from_static(b"{\"messages\":[\"a\"]}"), Bytes::from_static(b"{\"messages\":[\"b\"]}"));
    for (side, cause, expected) in [
        (Side::Response, Some(CloseCause::Complete), true),
        (Side::Response, Some(CloseCause::ClientGone), false),
        (Side::Request, Some(CloseCause::Complete), true),
        (Side::Request, Some(CloseCause::UpstreamUnreachable), false),
        (Side::Request, None, false),
    ] {
        let logs = tempfile::tempdir().expect("a directory");
        let recorder = recorder(&logs);
        sample::open(&recorder, 0, "a", &before).expect("records");
        recorder.inject(inject(side, 0, &before, &after)).expect("records");
        if let Some(cause) = cause {
            let reply = [before.clone()];
            let mut close = sample::closing(0, Captured::Whole(&reply));
            close.cause = cause;
            close.delivered = (side == Side::Response).then_some(&after);
            recorder.close(close).expect("records");
        }
        let recording = read(&logs.path().join("r")).expect("reads");
        let step = &recording.trajectory.steps[0];
        let error = &step.injected[0];
        assert_eq!(error.delivered, expected, "{side:?} {cause:?}");
        assert_eq!(error.before, blake3::hash(&before).to_hex().as_str());
        assert_eq!(error.after, blake3::hash(&after).to_hex().as_str());
        assert_eq!(step.request_sent.as_ref(), (side == Side::Request).then_some(&after));
    }
}

#[test]
fn the_end_of_a_run_is_known_without_a_second_run_json() {
    for program in [None, Some(ProgramEnd::Exited(0))] {
        let logs = tempfile::tempdir().expect("a directory");
        let path = logs.path().join("r");
        let recorder = recorder(&logs);
        sample::open(&recorder, 0, "a", &Bytes::from_static(b"{}")).expect("records");
        let open = read_manifest(&path).expect("reads");
        assert_eq!((open.ended, open.agents.len()), (None, 0));
        let written = || std::fs::metadata(path.join("run.json")).expect("there").ino();
        let before = written();
        if let Some(end) = program {
            recorder.conclude(end, Outcome::default());
        }
        let seal = recorder.seal().expect("seals");
        assert_eq!(before == written(), program.is_none(), "what its program came to stands nowhere else");
        for manifest in [read_manifest(&path).expect("reads"), read(&path).expect("reads").manifest] {
            assert!(manifest.ended.is_some());
            assert_eq!(
                (manifest.ended, manifest.agents, manifest.program),
                (seal.ended.clone(), seal.agents.clone(), program)
            );
        }
    }
}

#[test]
fn retries_are_attempts_of_one_step() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = recorder(&logs);
    let body = Bytes::from_static(b"{}");
    for attempt in 0..3 {
        let attribution = sample::agent("a");
        let open = Open {
            step: 0,
            call: 0,
            attempt,
            attribution: &attribution,
            overlapping: false,
            relates: crate::trajectory::RecordedRelation::first(),
            run_source: "path",
            surface: "opaque",
            method: "POST",
            path: "/v1/x",
            headers: &[],
            body: Some(&body),
            body_hash: None,
            at_us: 0,
            wall: Timestamp::UNIX_EPOCH,
        };
        recorder.open(open).expect("records");
        let mut close = sample::closing(0, Captured::Nothing);
        (close.attempt, close.status) = (attempt, Some(if attempt < 2 { 500 } else { 200 }));
        recorder.close(close).expect("records");
    }
    let seal = recorder.seal().expect("seals");
    assert_eq!((seal.steps, seal.exchanges), (1, 3));
    let recording = read(&logs.path().join("r")).expect("reads");
    let statuses: Vec<_> = recording.trajectory.steps[0].attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(statuses, [Some(500), Some(500), Some(200)]);
}

#[test]
fn a_tool_loop_is_one_turn() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = recorder(&logs);
    let call = serde_json::json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]});
    let said = serde_json::json!({"role": "assistant", "content": "24"});
    let ask = serde_json::json!({"role": "user", "content": "6 x 4?"});
    let result = serde_json::json!({"role": "tool", "tool_call_id": "call_1", "content": "24"});
    let request = |messages: &[&serde_json::Value]| -> Bytes {
        serde_json::json!({"model": "m", "messages": messages}).to_string().into()
    };
    let reply = |message: &serde_json::Value| -> Bytes {
        serde_json::json!({"id": "c", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        .to_string()
        .into()
    };
    let steps = [
        ("a", request(&[&ask]), reply(&call)),
        ("b", request(&[&ask]), reply(&said)),
        ("a", request(&[&ask, &call, &result]), reply(&said)),
        ("a", request(&[&ask, &call, &result, &said, &ask]), reply(&said)),
        ("b", request(&[&ask, &call, &result]), reply(&said)),
    ];
    for (step, (agent, request, reply)) in (0..).zip(&steps) {
        sample::exchange(&recorder, step, agent, request, reply).expect("records");
    }
    let recording = read(&logs.path().join("r")).expect("reads");
    let turns: Vec<u32> = recording.trajectory.steps.iter().map(|step| step.turn).collect();
    assert_eq!(turns, [0, 1, 0, 2, 3]);
}

#[test]
fn a_leaping_wall_clock_moves_nothing_but_labels() {
    let logs = tempfile::tempdir().expect("a directory");
    let noon = Timestamp::from_second(1_800_000_000).expect("a time");
    let settings = Settings { clock: Clock::fixed(noon), ..Settings::default() };
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &settings).expect("creates");
    let body = Bytes::from_static(b"{}");
    for (step, hours) in [(0, 1), (1, -2), (2, 0)] {
        let attribution = sample::agent("a");
        let wall = noon.checked_add(hours.hours()).expect("a time");
        let open = Open { surface: "opaque", wall, ..sample::opening(step, &attribution, &body) };
        recorder.open(open).expect("records");
        recorder.close(sample::closing(step, Captured::Nothing)).expect("records");
    }
    recorder.seal().expect("seals");
    let recording = read(&logs.path().join("r")).expect("reads");
    assert!(recording.exchanges.is_sorted_by_key(|exchange| exchange.at_us));
    let ats: Vec<&str> = recording.trajectory.steps.iter().map(|step| step.attempts[0].at.as_str()).collect();
    assert!(ats[0] > ats[2] && ats[1] < ats[2], "the wall clock is kept as it was: {ats:?}");
}

#[test]
fn many_threads_write_one_dense_log() {
    for durability in [crate::recording::Durability::Written, crate::recording::Durability::Synced] {
        let logs = tempfile::tempdir().expect("a directory");
        let settings = Settings { durability, ..Settings::default() };
        let recorder = Recorder::create(logs.path(), sample::manifest("r"), &settings).expect("creates");
        let body =
            |step: u32| Bytes::from(format!("{{\"messages\":[\"{}{}\"]}}", "the same words. ".repeat(9), step / 3));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let recorder = &recorder;
                scope.spawn(move || {
                    for step in (0..40).map(|at| at * 8 + thread) {
                        sample::exchange(recorder, step, "a", &body(step), &body(step + 1)).expect("records");
                    }
                });
            }
        });
        recorder.seal().expect("seals");
        let recording = read(&logs.path().join("r")).expect("reads");
        for (step, read) in (0..).zip(&recording.trajectory.steps) {
            assert_eq!((read.step, &read.request), (step, &body(step)));
            assert_eq!(read.attempts[0].reply, body(step + 1));
        }
        assert_eq!(recording.trajectory.steps.len(), 320);
    }
}

#[test]
fn a_body_over_the_cap_is_cut_and_says_so() {
    let logs = tempfile::tempdir().expect("a directory");
    let settings = Settings { max_kept_body: 100, ..Settings::default() };
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &settings).expect("creates");
    let body = Bytes::from("x".repeat(1000));
    sample::exchange(&recorder, 0, "a", &body, &Bytes::from_static(b"{}")).expect("records");
    let recording = read(&logs.path().join("r")).expect("reads");
    let step = &recording.trajectory.steps[0];
    assert_eq!(step.request, body.slice(..100));
    assert!(!step.attempts[0].exact);
}

#[test]
fn a_future_format_is_named_as_such() {
    let logs = tempfile::tempdir().expect("a directory");
    drop(recorder(&logs));
    let path = logs.path().join("r/run.json");
    let text = std::fs::read_to_string(&path).expect("reads").replace("\"format\": 1", "\"format\": 2");
    std::fs::write(&path, text).expect("writes");
    let error = read(&logs.path().join("r")).expect_err("from the future");
    assert!(matches!(error, RecordingError::Future { found: 2, known: 1, .. }), "{error}");
    assert_eq!(error.exit_code(), 2);
    assert!(matches!(read(logs.path()), Err(RecordingError::NotARun { .. })));
    assert!(matches!(read(&path), Err(RecordingError::NotARun { .. })));
}

#[test]
fn salvage_rescues_what_does_not_hang_on_the_damage() {
    let logs = tempfile::tempdir().expect("a directory");
    let first = recorder(&logs);
    for step in 0..4 {
        let body = Bytes::from(format!("{{\"messages\":[\"step {step} {}\"]}}", step.to_string().repeat(80)));
        sample::exchange(&first, step, "a", &body, &Bytes::from(vec![b'y'; 70_000])).expect("records");
    }
    drop(first);
    let (dir, target) = (logs.path().join("r"), logs.path().join("saved"));
    let log = std::fs::read(dir.join("log.jsonl")).expect("reads");
    assert_eq!(repair(&dir, None).expect("nothing to do").lost, 0);
    let place = memchr::memmem::find(&log, b"step 1 1").expect("the text of step 1");
    let mut damaged = log.clone();
    damaged[place] ^= 1;
    std::fs::write(dir.join("log.jsonl"), &damaged).expect("writes");
    assert_eq!(repair(&dir, None).expect_err("refused").exit_code(), 5);
    let repaired = repair(&dir, Some(&target)).expect("salvages");
    assert_eq!((repaired.steps, repaired.lost), (3, 3), "the text, the request and the reply of step 1");
    assert_eq!(std::fs::read(dir.join("log.jsonl")).expect("reads"), damaged, "left as it was");
    let recording = read(&target).expect("reads");
    let steps: Vec<u32> = recording.trajectory.steps.iter().map(|step| step.step).collect();
    assert_eq!(steps, [0, 2, 3]);
    assert!(recording.notes.iter().any(|note| note.starts_with("salvaged: ")), "{:?}", recording.notes);
    assert!(repair(&dir, Some(&target)).is_err(), "nothing is overwritten");
    let torn = [&log[..], b"{\"v\":1,"].concat();
    std::fs::write(dir.join("log.jsonl"), torn).expect("writes");
    assert_eq!(repair(&dir, None).expect("recovers").torn_bytes, 7);
}
