//! What can be done with runs that were made in different ways.

use std::path::Path;

use super::*;
use crate::{
    recording::{self, Captured, ImportedFrom, Launched, RecordedCheck, Recorder, Settings, sample},
    trajectory::{Outcome, Reason},
};

/// A run of one step, with what is set in its manifest.
fn run(logs: &Path, name: &str, set: impl FnOnce(&mut Manifest)) -> Recording {
    let mut manifest = sample::manifest(name);
    set(&mut manifest);
    let recorder = Recorder::create(logs, manifest, &Settings::default()).expect("creates");
    let request = bytes::Bytes::from_static(br#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#);
    recorder.open(sample::opening(0, &sample::agent("solver"), &request)).expect("records");
    recorder.close(sample::closing(0, Captured::Whole(&[bytes::Bytes::from_static(b"{}")]))).expect("records");
    recorder.seal().expect("seals");
    recording::read(&logs.join(name)).expect("reads")
}

fn launched(upstream: &str, masked: bool) -> Option<Launched> {
    let (command, upstream) = (vec!["ls".to_owned()], Some(upstream.to_owned()));
    Some(Launched { command, upstream, masked, ..Launched::default() })
}

fn outcome(verdict: Verdict) -> Outcome {
    Outcome { verdict, reason: Some(Reason::Check), evidence: String::new() }
}

#[test]
fn a_line_says_what_the_record_does_not_hold() {
    let logs = tempfile::tempdir().expect("a directory");
    let failed = |name: &str, set: &dyn Fn(&mut Manifest)| {
        run(logs.path(), name, |manifest| {
            manifest.outcome = outcome(Verdict::Failure);
            set(manifest);
        })
    };
    let simulated = failed("simulated", &|manifest| {
        manifest.upstream = "simulator".to_owned();
        manifest.launched = launched("simulator", false);
    });
    let known = failed("known", &|manifest| manifest.launched = launched("http://127.0.0.1:8000/v1", false));
    let masked = failed("masked", &|manifest| manifest.launched = launched("http://127.0.0.1:8000/v1?key=***", true));
    let judged = failed("judged", &|manifest| {
        let check = Some(RecordedCheck::Command("true".to_owned()));
        manifest.launched = launched("http://127.0.0.1:8000/v1", false).map(|launched| Launched { check, ..launched });
    });
    let served = failed("served", &|_| {});
    let dir = Path::new("logs/a run");
    for (recording, verb, expected) in [
        (&simulated, RunVerb::Trace, "aegis trace 'logs/a run' --redraw --check CMD --again"),
        (&simulated, RunVerb::Replay, "aegis replay 'logs/a run' --again"),
        (&known, RunVerb::Retry, "aegis retry 'logs/a run' --check CMD --upstream http://127.0.0.1:8000/v1 --again"),
        (&judged, RunVerb::Trace, "aegis trace 'logs/a run' --redraw --upstream http://127.0.0.1:8000/v1 --again"),
        (&masked, RunVerb::Fork, "aegis fork 'logs/a run' --at STEP --check CMD --upstream URL -- CMD"),
        (&served, RunVerb::Trace, "aegis trace 'logs/a run' --redraw --check CMD --upstream URL -- CMD"),
    ] {
        assert_eq!(Capabilities::new(recording, dir).line(verb).as_deref(), Ok(expected));
    }
    let capabilities = Capabilities::new(&served, dir);
    assert_eq!(
        capabilities.line_with(RunVerb::Replay, "--explain").as_deref(),
        Ok("aegis replay 'logs/a run' --explain -- CMD")
    );
    assert_eq!(capabilities.words(), "replay, fork, trace, retry; not prove (no label)");
}

#[test]
fn what_cannot_be_done_says_why() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = Path::new("logs/r");
    let passed = run(logs.path(), "passed", |manifest| manifest.outcome = outcome(Verdict::Success));
    let told = Capabilities::new(&passed, dir);
    assert_eq!(told.obstacle(RunVerb::Trace), Some(Obstacle::Succeeded));
    assert_eq!(told.words(), "replay, fork; not trace, retry (it succeeded); not prove (no label)");
    let imported = run(logs.path(), "imported", |manifest| {
        manifest.imported = Some(ImportedFrom {
            format: "otlp".to_owned(),
            file: "t.json".to_owned(),
            blake3: String::new(),
            key: "1".to_owned(),
            requests: String::new(),
        });
    });
    let told = Capabilities::new(&imported, dir);
    assert!(RunVerb::ALL.iter().all(|verb| told.line(*verb).is_err()));
    assert!(told.words().starts_with("not replay, fork, trace, retry, prove (imported from otlp"), "{}", told.words());
    let data = told.data();
    assert!(data["trace"]["why"].as_str().expect("text").starts_with("the run was imported from otlp"), "{data}");
}
