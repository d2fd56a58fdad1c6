//! The steps of an imported run state what their importer could not place, in the words and at the places of recorded steps.

use std::{fs, path::Path};

use aegis::{
    dataset::Sample,
    recording,
    surface::account::{self, StepAccount},
};
use serde_json::{Value, json};

use crate::{
    program::verb,
    viewer::{View, json_of},
};

/// A span of a model call. `more`: further attributes.
fn span(id: &str, began: u64, more: &[(&str, &str)]) -> Value {
    let own = [("gen_ai.operation.name", "chat"), ("gen_ai.request.model", "m"), ("gen_ai.agent.name", "solver")];
    let attributes = own.iter().chain(more).map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}));
    json!({"traceId": "t", "spanId": id, "name": "chat m", "startTimeUnixNano": began.to_string(),
        "endTimeUnixNano": (began + 5).to_string(), "attributes": attributes.collect::<Vec<_>>()})
}

/// A trace of three calls: one that is read, one with a text beside each side and one of neither, one with half a message.
fn trace() -> String {
    let said = |role: &str, more: Value| {
        let mut message = json!({"role": role, "parts": [{"type": "text", "content": "It is 42."}]});
        message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!([message]).to_string()
    };
    let (asked, answered) = (said("user", json!({})), said("assistant", json!({})));
    let annex = said("assistant", json!({"annex": "Or it is 43."}));
    let call = |id, began, answered: &str, more: &[(&str, &str)]| {
        let own = [("gen_ai.input.messages", asked.as_str()), ("gen_ai.output.messages", answered)];
        span(id, began, &[&own[..], more].concat())
    };
    let beside = [
        ("acme.prompt.annex", "Be brief."),
        ("acme.answer", "Or 44."),
        ("acme.words", "token sk-abcdefghijklmnopqrstuvwxyz0123"),
    ];
    let spans = [call("a", 10, &answered, &[]), call("b", 20, &answered, &beside), call("c", 30, &annex, &[])];
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).to_string()
}

async fn imported(dir: &Path) -> String {
    fs::write(dir.join("t.json"), trace()).expect("written");
    let (code, out, said) = verb(dir, &["import", "--from", "otlp", "t.json", "--log-dir", "logs"]).await;
    assert_eq!(code, Some(0), "{out}{said}");
    out + &said
}

const PIECE: &str = "`gen_ai.output.messages[0].annex` is an unknown member: Or it is 43.";

#[tokio::test(flavor = "multi_thread")]
async fn imported_steps_state_what_their_importer_could_not_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = imported(dir.path()).await;
    let recording = recording::read(&dir.path().join("logs/otlp-t")).expect("a recording");
    let accounts: Vec<_> = recording.trajectory.steps.iter().map(account::of_step).collect();
    let words: Vec<_> = accounts.iter().map(StepAccount::words).collect();
    assert_eq!(words, ["read", "partly read", "partly read"]);
    let lines = accounts[1].lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("step partly read: `acme.words` is an unknown member: token "), "{lines:?}");
    assert!(!lines[0].contains("sk-abcdefghij"), "secrets are masked: {lines:?}");
    assert_eq!(lines[1], "request partly read: `acme.prompt.annex` is an unknown member: Be brief.");
    assert_eq!(lines[2], "reply partly read: `acme.answer` is an unknown member: Or 44.");
    assert_eq!(accounts[2].lines(), [format!("reply partly read: {PIECE}")]);
    let counts = json!({"read": 1, "partly_read": 2, "unread": 0});

    // `import` and its RESULT.
    assert!(said.contains("3 calls (2 partly read): solver 3"), "{said}");
    assert!(said.contains("RESULT  ok 1 run with 3 calls (2 partly read) from 1 file, 0 defects"), "{said}");
    assert!(
        said.contains("partly read: text that no reader knows in `acme.answer` (1), `acme.prompt.annex` (1)"),
        "{said}"
    );

    // `show`, `runs`.
    let run = "logs/otlp-t";
    let (_, shown, _) = verb(dir.path(), &["show", run]).await;
    assert!(shown.contains("account  of 3 steps 2 partly read"), "{shown}");
    let (_, step, _) = verb(dir.path(), &["show", run, "--step", "2"]).await;
    assert!(step.contains(&format!("reply partly read: {PIECE}")), "{step}");
    let data = json_of(dir.path(), &["show", run]).await;
    assert_eq!(data["account"], counts);
    let piece =
        json!({"place": "gen_ai.output.messages[0].annex", "what": "an unknown member", "quote": "Or it is 43."});
    let stated = json!({"request": {"state": "read"}, "reply": {"state": "partly read", "unplaced": [piece]}});
    assert_eq!(data["steps"][2]["account"], stated);
    assert_eq!(json_of(dir.path(), &["runs"]).await["runs"][0]["account"], counts);

    // The page.
    let view = View::of(dir.path(), &["logs"]).await;
    assert_eq!(view.get("/api/tree").await["runs"][0]["account"], counts);
    assert_eq!(view.get("/api/run/otlp-t").await["head"]["account"], counts);
    assert_eq!(view.get("/api/run/otlp-t/step/2").await["account"], stated);

    // Rows and manifests.
    let sample = Sample::alone(&recording).expect("a sample");
    let rows: Vec<_> = sample.steps.iter().map(|step| step.account.as_deref()).collect();
    assert_eq!(rows, [None, Some("partly read"), Some("partly read")]);
    let (code, _, said) = verb(dir.path(), &["export", run, "--to", "atif", "--out", "r.json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let manifest = fs::read(dir.path().join("r.json.manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(manifest["account"], counts);
    let not_whole = json!({"1": "partly read", "2": "partly read"});
    assert_eq!(manifest["not_whole"], json!({"otlp-t": not_whole}));

    // Spans of ours that come back.
    let (code, _, said) = verb(dir.path(), &["export", run, "--to", "otlp", "--out", "back.jsonl"]).await;
    assert_eq!(code, Some(0), "{said}");
    let (_, back, _) = verb(dir.path(), &["import", "--from", "otlp", "back.jsonl", "--log-dir", "back"]).await;
    assert!(back.contains("3 calls (2 partly read): solver 3"), "{back}");
}
