//! What the page is told of texts that mean harm, of long ones, and of what an agent has seen before.

use std::path::Path;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::{
    recording::{Captured, Close, Manifest, Open, Recorder, Settings},
    trajectory::{AgentName, Attribution, CloseCause, RunId, Source},
};

/// Texts that mean harm to a page, a terminal or a reader.
fn hostile() -> Vec<String> {
    let markup =
        ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--<script>", "]]>", "{{7*7}}"];
    let steering = ["\u{1b}[2J\u{1b}]0;owned\u{7}", "a\rb", "\u{202e}gnp.exe", "\u{2028}\u{2029}", "\u{0}", "\u{feff}"];
    let mut texts: Vec<String> = markup.iter().chain(&steering).map(|text| (*text).to_owned()).collect();
    texts.push("x".repeat(300 << 10));
    texts.push("\u{1f469}\u{200d}\u{1f4bb}é".repeat(1000));
    texts
}

fn attribution() -> Attribution {
    Attribution {
        agent: AgentName::parse("solver").expect("a name"),
        instance: 0,
        source: Source::Path,
        evidence: "the path".to_owned(),
        confidence: 1.0,
        ambiguous: false,
    }
}

/// A run of a growing conversation: each step is asked all that was said before.
fn recorded(logs: &Path, said: &[String]) {
    std::fs::create_dir_all(logs).expect("a directory");
    let manifest = Manifest::new(RunId::parse("r").expect("an id"), "http://upstream.test", Timestamp::UNIX_EPOCH);
    let recorder = Recorder::create(logs, manifest, &Settings::default()).expect("creates");
    let mut messages = vec![json!({"role": "system", "content": "You solve."})];
    for (step, said) in (0..).zip(said) {
        messages.push(json!({"role": "user", "content": said}));
        let request = Bytes::from(json!({"model": "m", "messages": messages}).to_string());
        let answer = json!({"role": "assistant", "content": format!("I read: {said}")});
        let choice = json!({"index": 0, "message": answer, "finish_reason": "stop"});
        let reply = json!({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]});
        messages.push(answer);
        record(&recorder, step, &request, Bytes::from(reply.to_string()));
    }
    recorder.seal().expect("seals");
}

fn record(recorder: &Recorder, step: u32, request: &Bytes, reply: Bytes) {
    let open = Open {
        step,
        call: step,
        attempt: 0,
        attribution: &attribution(),
        overlapping: false,
        run_source: "path",
        surface: "openai_chat",
        method: "POST",
        path: "/v1/chat/completions",
        headers: &[],
        body: Some(request),
        body_hash: None,
        at_us: u64::from(step) * 1000,
        wall: Timestamp::UNIX_EPOCH,
    };
    recorder.open(open).expect("records");
    let close = Close {
        step,
        attempt: 0,
        cause: CloseCause::Complete,
        status: Some(200),
        headers: &[],
        request_body: None,
        reply: Captured::Whole(&[reply]),
        truncated: false,
        delivered: None,
        usage: None,
        finish_reason: Some("stop"),
        first_byte_us: Some(500),
        last_byte_us: Some(900),
    };
    recorder.close(close).expect("records");
}

fn data(library: &ViewerLibrary, path: &str) -> serde_json::Value {
    match library.answer(path) {
        Ok(LibraryAnswer::Json(value)) => value,
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn hostile_texts_come_as_they_are_and_only_in_strings() {
    let logs = tempfile::tempdir().expect("a directory");
    let said = hostile();
    recorded(logs.path(), &said);
    let library = ViewerLibrary::of(vec![logs.path().to_owned()]);
    for (step, said) in said.iter().enumerate() {
        let told = data(&library, &format!("run/r/told/{step}"));
        let last = told["request"].as_array().expect("blocks").last().expect("a block").clone();
        let shown = last["text"].as_str().expect("a text");
        assert_eq!(last["known"], false);
        if said.len() > 256 << 10 {
            assert_eq!((shown.len(), &last["bytes"]), (64 << 10, &json!(said.len())));
        } else {
            assert_eq!(shown, said);
        }
    }
    let html = bundle(&library).expect("a page").html;
    assert_eq!(html.matches("<script>").count(), 1, "no text became a script");
    assert!(!html.contains("<img") && !html.contains("alert(1)"), "texts are packed");
}

#[test]
fn what_an_agent_has_seen_is_known() {
    let logs = tempfile::tempdir().expect("a directory");
    recorded(logs.path(), &["one", "two", "two", "three"].map(str::to_owned));
    let library = ViewerLibrary::of(vec![logs.path().to_owned()]);
    for step in 1..4 {
        let told = data(&library, &format!("run/r/told/{step}"));
        let new: Vec<_> =
            told["request"].as_array().expect("blocks").iter().filter(|one| one["known"] == false).collect();
        // The same words again are new words; the agent's own reply is not.
        assert_eq!((new.len(), &told["since"]), (1, &json!(step - 1)), "{told}");
    }
    let quoted = &data(&library, "run/r/told/0")["quoted"]["steps"];
    assert_eq!(quoted.as_array().map(Vec::len), Some(3), "{quoted}");
}

#[test]
fn two_runs_of_one_name_have_names_of_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    for logs in ["a", "b"] {
        recorded(&dir.path().join(logs), &["one".to_owned()]);
    }
    let listing = Listing::of(&[dir.path().to_owned(), dir.path().join("a")]);
    let keys: Vec<&str> = listing.runs.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["r", "r~2"], "each once, though two of the names lead to one");
    std::fs::write(dir.path().join("b/r/run.json"), "{").expect("written");
    let listing = Listing::of(&[dir.path().to_owned()]);
    assert_eq!(listing.runs.iter().filter(|row| row.unreadable.is_some()).count(), 1);
}

#[test]
fn ten_thousand_steps_are_few_bytes() {
    let logs = tempfile::tempdir().expect("a directory");
    let manifest = Manifest::new(RunId::parse("r").expect("an id"), "http://upstream.test", Timestamp::UNIX_EPOCH);
    let recorder = Recorder::create(logs.path(), manifest, &Settings::default()).expect("creates");
    let request = Bytes::from_static(b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"go on\"}]}");
    for step in 0..10_000 {
        record(&recorder, step, &request, Bytes::from_static(b"{\"choices\":[]}"));
    }
    recorder.seal().expect("seals");
    let library = ViewerLibrary::of(vec![logs.path().to_owned()]);
    let run = data(&library, "run/r").to_string();
    assert!(run.len() < 1_500_000, "{} bytes", run.len());
}
