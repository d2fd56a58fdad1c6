//! Nothing secret reaches the disk.

use std::path::Path;

use bytes::Bytes;

use super::sample;
use crate::{
    recording::{Captured, Inject, ManipulatorFailed, Open, Recorder, Redactor, Secrets, Settings, read, write_beside},
    trajectory::{Label, LabelContent, LabelStatus, Outcome, Side, Verdict},
};

const CANARY: &str = "sk-canary7f3e9b2d1c";

/// Every byte under a directory, compressed files also unpacked.
pub(super) fn everything(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(dir).expect("lists") {
        let path = entry.expect("an entry").path();
        bytes.extend_from_slice(path.to_string_lossy().as_bytes());
        if path.is_dir() {
            bytes.extend(everything(&path));
            continue;
        }
        let content = std::fs::read(&path).expect("reads");
        bytes.extend(zstd::decode_all(content.as_slice()).unwrap_or_default());
        bytes.extend(content);
    }
    bytes
}

fn assert_clean(dir: &Path) {
    let bytes = everything(dir);
    for secret in ["canary7f3e", "7f3e9b2d1c", "unshaped-secret"] {
        let leak = memchr::memmem::find(&bytes, secret.as_bytes());
        let around = leak.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(80)..at + 20]).into_owned());
        assert_eq!(around, None, "`{secret}` is on the disk");
    }
}

fn event(content: &str) -> Bytes {
    format!("data: {{\"id\":\"x\",\"choices\":[{{\"delta\":{{\"content\":\"{content}\"}}}}]}}\n\n").into()
}

#[test]
fn canaries_everywhere_and_none_on_the_disk() {
    let logs = tempfile::tempdir().expect("a directory");
    let mut manifest = sample::manifest("r").with_plan(format!("# {CANARY}"), 1);
    manifest.task = Some(format!("use {CANARY}"));
    manifest.upstream = format!("https://me:{CANARY}@upstream.test/v1?key={CANARY}");
    let secrets = Secrets { values: vec!["unshaped-secret".to_owned()], ..Secrets::default() };
    let settings = Settings { redactor: Redactor::new(&secrets).expect("compiles"), ..Settings::default() };
    let recorder = Recorder::create(logs.path(), manifest, &settings).expect("creates");
    record_canaries(&recorder);
    assert_clean(logs.path());
    recorder.seal().expect("seals");
    let label = Label::ruled(LabelContent {
        format: 1,
        status: LabelStatus::Delivered,
        definition: "injected".to_owned(),
        seed: 1,
        outcome: Verdict::Failure,
        errors: Vec::new(),
        others: Vec::new(),
        not_shown: Vec::new(),
        evidence: None,
        names_later: None,
        missed_catch: Vec::new(),
    });
    write_beside(&logs.path().join("r/label.json"), &label).expect("writes");
    assert_clean(logs.path());
    let recording = read(&logs.path().join("r")).expect("reads");
    let step = &recording.trajectory.steps[0];
    assert!(!step.attempts[0].exact, "a masked body is not exact");
    assert_eq!(step.request.len(), body().len(), "masking keeps lengths");
    assert_eq!(recording.label, Some(label));
}

fn body() -> Bytes {
    format!("{{\"messages\":[{{\"content\":\"my key:\\n{CANARY}\"}}],\"x\":\"unshaped-secret\"}}").into()
}

/// One exchange with a canary in every place.
fn record_canaries(recorder: &Recorder) {
    let body = body();
    let mut attribution = sample::agent("a");
    attribution.evidence = format!("key {CANARY}");
    let outcome = Outcome { verdict: Verdict::Failure, reason: None, evidence: format!("printed {CANARY}") };
    recorder.set_outcome(outcome).expect("writes");
    let bearer = format!("Bearer {CANARY}");
    let headers = ["authorization", "cookie", "x-api-key", "user-agent", "x-request-id", "content-type"];
    let headers: Vec<(&str, &[u8])> = headers.iter().map(|name| (*name, bearer.as_bytes())).collect();
    recorder
        .open(Open {
            path: &format!("/v1/chat/completions?api-key={CANARY}&token=unshaped-secret&x={CANARY}"),
            headers: &headers,
            ..sample::opening(0, &attribution, &body)
        })
        .expect("records");
    recorder
        .inject(Inject {
            side: Side::Request,
            ..sample::injection(0, &body, &Bytes::from(format!("{} {CANARY}", String::from_utf8_lossy(&body))))
        })
        .expect("records");
    let why = format!("the model said {CANARY}");
    let failed = ManipulatorFailed {
        step: 0,
        attempt: 0,
        injection: 0,
        operator: "rewrite_with_model",
        why: &why,
        nothing: false,
    };
    recorder.manipulator_failed(failed).expect("records");
    recorder.note(&format!("upstream says: bad key {CANARY}"));
    // A key that comes in one event, and one that is spread over four.
    let pieces: Vec<(Bytes, u64)> =
        [CANARY, "it is ", "sk-can", "ary7f3", "e9b2d1", "c", " really"].iter().map(|part| (event(part), 1)).collect();
    let delivered: Bytes = pieces.iter().flat_map(|(piece, _)| piece.to_vec()).chain(*b"data: [DONE]\n\n").collect();
    let mut close = sample::closing(0, Captured::Stream(&pieces));
    close.headers = &headers;
    close.delivered = Some(&delivered);
    recorder.close(close).expect("records");
}

/// A conversation in which a key grows over the border of what is shared, in every split.
#[test]
fn a_key_across_the_border_of_what_is_new() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
    let before = "so it goes on and on. ".repeat(20);
    let mut step = 0;
    for split in 0..=CANARY.len() {
        for (end, tail) in [(split, "\"]}"), (CANARY.len(), " is what it is\"]}")] {
            let body = Bytes::from(format!("{{\"messages\":[\"{before}{}{tail}", CANARY.get(..end).expect("ASCII")));
            sample::exchange(&recorder, step, "a", &body, &Bytes::from_static(b"{}")).expect("records");
            step += 1;
        }
    }
    let bytes = everything(logs.path());
    assert_eq!(memchr::memmem::find(&bytes, CANARY.as_bytes()), None);
    read(&logs.path().join("r")).expect("reads");
}
