//! Invariant 6 for edits by a model: whatever it does — refuses, echoes, leaks, breaks JSON, is late, fails, costs too
//! much — the step passes untouched, the run is marked `manipulator_failed`, and no label is written.

use std::{sync::Arc, time::Duration};

use aegis::{
    budget::Budget,
    proxy::{AskingSettings, HttpUpstream, ManipulatorModel, UpstreamOrigin},
    trajectory::CloseCause,
};
use serde_json::json;

use crate::{
    assembled::both,
    lab::{Lab, Setup, chat, request, until},
    scripted::{Act, Scripted, chat_reply, http},
};

const SOLUTION: &str = "12 * 8 = 96\n96 - 12 = 84\nANSWER: 84";

fn plan(side: &str) -> String {
    format!(
        "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.always = true\nside = \"{side}\"\n\
         manipulator.rewrite_with_model = {{ instruction = \"mast\" }}\n"
    )
}

/// A model that the test scripts.
fn model(scripted: &Scripted, settings: AskingSettings) -> Arc<ManipulatorModel> {
    let origin = UpstreamOrigin::parse(&format!("http://{}", scripted.address), None).expect("an origin");
    let upstream = HttpUpstream::new(origin, Vec::new(), None, Duration::from_secs(10)).expect("an upstream");
    Arc::new(ManipulatorModel::new(upstream.shared(), settings))
}

fn says(text: &str) -> Vec<Act> {
    vec![http("200 OK", "application/json", &chat_reply(text))]
}

fn edits(text: &str) -> Vec<Act> {
    says(&json!({"edited_text": text, "rationale": "r"}).to_string())
}

fn usable() -> Vec<Act> {
    edits("12 * 8 = 96\n96 - 12 = 84\nANSWER: 48")
}

fn streamed() -> Vec<u8> {
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "x is 12 * 8"}]});
    body.to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_model_leaves_the_step_untouched_and_the_run_unlabelled() {
    let unavailable = vec![http("400 Bad Request", "application/json", "{\"error\":{\"message\":\"no such model\"}}")];
    for (name, acts, questions, expected) in [
        ("refuses", says("I'm sorry, but I can't assist with that."), 3, "it is a refusal"),
        ("refuses in JSON", edits("I cannot help with that."), 3, "is a refusal"),
        ("echoes", edits(SOLUTION), 3, "nothing differs"),
        ("echoes the request", edits("x is 12 * 8"), 3, ""),
        ("leaks the mode", edits("12 * 8 = 96. FM-2.6 it is. ANSWER: 7"), 3, "gives the edit away"),
        (
            "leaks the instruction",
            edits("12 * 8 = 96. Keep what other programs read: labels such as ANSWER: 7"),
            3,
            "repeats the instruction",
        ),
        ("breaks JSON", says("{\"edited_text\": \"12 *"), 3, "not the JSON"),
        ("says nothing", says(""), 3, "not the JSON"),
        ("is empty", edits(""), 3, "empty"),
        ("rambles", edits(&"so it goes ".repeat(600)), 3, "expected at most"),
        ("is no API", vec![http("200 OK", "text/html", "<html>")], 1, "did not answer in its API"),
        ("is misconfigured", unavailable, 1, "no such model"),
        ("hangs", vec![Act::Hang], 1, "did not answer within"),
    ] {
        for side in ["response", "request"] {
            if name.starts_with("echoes") && (name == "echoes") != (side == "response") {
                continue;
            }
            let scripted = Scripted::always(acts.clone()).await;
            let late = AskingSettings { deadline: Duration::from_millis(300), ..AskingSettings::default() };
            let settings = if name == "hangs" { late } else { AskingSettings::default() };
            let (reply, stream) = both(&[(SOLUTION, &[])]);
            let upstream = Scripted::start(vec![reply, stream]).await;
            let setup = Setup { asking: Some(model(&scripted, settings)), ..Setup::planned(&plan(side)) };
            let mut lab = Lab::before(upstream.address, setup).await;
            for body in [chat("x is 12 * 8"), streamed()] {
                let got = lab.post("/a/solver/v1/chat/completions", &body).await;
                let step = lab.recorded("r0").trajectory.steps.pop().expect("a step");
                assert_eq!(got.body, step.attempts[0].reply, "{name}: the upstream's own bytes");
                assert_eq!(upstream.bodies().last(), Some(&body), "{name}: the client's own bytes");
                assert_eq!((step.request_sent, &step.attempts[0].reply_delivered), (None, &None), "{name}");
                assert_eq!(step.injected, [], "{name}");
            }
            let recording = lab.sealed("r0").await;
            assert_eq!(recording.label, None, "{name}");
            let failures = &recording.manipulator_failures;
            assert_eq!(failures.len(), 2, "{name}: {failures:?}");
            assert!(failures.iter().all(|failure| failure.why.contains(expected)), "{name}: {failures:?}");
            let asked = &recording.manipulator_questions;
            assert_eq!(asked.len(), 2 * questions, "{name} {side}: every question is recorded, none is asked twice");
            assert!(asked.iter().all(|asked| asked.error.is_some() == (questions == 1)), "{name}");
        }
    }
}

/// The reason of a refusal is told, and a later usable answer is taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_comes_to_its_senses_is_used() {
    let busy = vec![http("429 Too Many Requests", "application/json", "{}")];
    let scripted = Scripted::start(vec![says("{"), busy, edits(SOLUTION), usable()]).await;
    let upstream = Scripted::always(both(&[(SOLUTION, &[])]).0).await;
    let asking = model(&scripted, AskingSettings::default());
    let setup = Setup { asking: Some(asking), ..Setup::planned(&plan("response")) };
    let mut lab = Lab::before(upstream.address, setup).await;
    let got = lab.post("/a/solver/v1/chat/completions", &chat("x")).await;
    assert!(got.text().contains("ANSWER: 48"), "{}", got.text());
    let recording = lab.sealed("r0").await;
    assert_eq!((recording.manipulator_questions.len(), recording.manipulator_failures.len()), (3, 0));
    assert!(recording.label.is_some());
    let last = String::from_utf8(scripted.bodies().pop().expect("a question")).expect("text");
    assert!(last.contains("it is not the JSON that was asked for") && last.contains("nothing differs"), "{last}");
}

/// Half of what a client says that it waits bounds the whole edit.
#[tokio::test(flavor = "multi_thread")]
async fn a_clients_patience_bounds_the_edit() {
    let scripted = Scripted::always(vec![Act::Hang]).await;
    let upstream = Scripted::always(both(&[(SOLUTION, &[])]).0).await;
    let asking = model(&scripted, AskingSettings::default());
    let setup = Setup { asking: Some(asking), ..Setup::planned(&plan("response")) };
    let mut lab = Lab::before(upstream.address, setup).await;
    let started = std::time::Instant::now();
    let got = lab.post_with("/a/solver/v1/chat/completions", &chat("x"), "x-stainless-read-timeout: 0.6\r\n").await;
    assert!(got.status == 200 && started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(lab.sealed("r0").await.manipulator_failures[0].why.contains("did not answer within"));
}

/// What may be spent is never exceeded, and what is over it is no edit.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_kept() {
    for (budget, spent) in [
        (Budget { calls: Some(1), ..Budget::default() }, "calls"),
        (Budget { tokens: Some(20_000), ..Budget::default() }, ""),
        (Budget { tokens: Some(50), ..Budget::default() }, "tokens"),
    ] {
        let scripted = Scripted::always(usable()).await;
        let upstream = Scripted::always(both(&[(SOLUTION, &[])]).0).await;
        let asking = model(&scripted, AskingSettings { budget, ..AskingSettings::default() });
        let setup = Setup { asking: Some(Arc::clone(&asking)), ..Setup::planned(&plan("response")) };
        let mut lab = Lab::before(upstream.address, setup).await;
        for text in ["x", "y"] {
            lab.post("/a/solver/v1/chat/completions", &chat(text)).await;
        }
        let failures = lab.sealed("r0").await.manipulator_failures;
        assert_eq!(failures.is_empty(), spent.is_empty(), "{budget:?}: {failures:?}");
        assert!(failures.iter().all(|failure| failure.why.contains(spent)), "{failures:?}");
        // Reservations are given back: the scripted model counts five tokens an answer.
        let calls = scripted.count() as u64;
        assert_eq!((asking.spent().calls, asking.spent().tokens()), (calls, 5 * calls), "{budget:?}");
        assert!(budget.calls.is_none_or(|most| calls <= most));
    }
}

/// Calls at the same time cannot spend more than there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_holds_for_calls_at_the_same_time() {
    let scripted = Scripted::always([vec![Act::Gate], usable()].concat()).await;
    let upstream = Scripted::always(both(&[(SOLUTION, &[])]).0).await;
    let budget = Budget { calls: Some(3), ..Budget::default() };
    let asking = model(&scripted, AskingSettings { budget, ..AskingSettings::default() });
    let setup = Setup { asking: Some(Arc::clone(&asking)), ..Setup::planned(&plan("response")) };
    let mut lab = Lab::before(upstream.address, setup).await;
    let mut clients = Vec::new();
    for number in 0..10 {
        let mut client = lab.client().await;
        let text = format!("x{number}");
        client.send(&request("POST", "/a/solver/v1/chat/completions", &chat(&text), "Connection: close\r\n")).await;
        clients.push(client);
    }
    let refused = || {
        // Until the first call has come there is no recording to read.
        lab.proxy.runs.template().log_dir.join("r0/run.json").exists()
            && lab.recorded("r0").manipulator_failures.len() == 7
    };
    until("seven are told that nothing is left", refused).await;
    scripted.open_gate();
    let mut edited = 0;
    for client in &mut clients {
        edited += usize::from(client.reply().await.text().contains("ANSWER: 48"));
    }
    assert_eq!((edited, scripted.count(), asking.spent().calls), (3, 3, 3));
    let failures = lab.sealed("r0").await.manipulator_failures;
    assert!(failures.iter().all(|failure| failure.why.contains("calls")), "{failures:?}");
}

/// Without a model the step passes, and the reason is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_nothing_is_edited() {
    let upstream = Scripted::always(both(&[(SOLUTION, &[])]).0).await;
    let mut lab = Lab::before(upstream.address, Setup::planned(&plan("response"))).await;
    assert!(lab.post("/a/solver/v1/chat/completions", &chat("x")).await.text().contains("ANSWER: 84"));
    let recording = lab.sealed("r0").await;
    assert!(recording.manipulator_failures[0].why.contains("no model is configured") && recording.label.is_none());
}

/// A client that leaves while its stream is held ends the question and leaves a record.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_a_held_stream_is_recorded() {
    let scripted = Scripted::always(vec![Act::Hang]).await;
    let upstream = Scripted::always(both(&[(SOLUTION, &[])]).1).await;
    let settings = AskingSettings { keep_alive: Duration::from_millis(5), ..AskingSettings::default() };
    let setup = Setup { asking: Some(model(&scripted, settings)), ..Setup::planned(&plan("response")) };
    let mut lab = Lab::before(upstream.address, setup).await;
    let mut client = lab.client().await;
    client.send(&request("POST", "/a/solver/v1/chat/completions", &streamed(), "")).await;
    assert!(client.read_until(b": keep-alive").await);
    drop(client);
    until("the step is closed", || lab.causes("r0") == [Some(CloseCause::ClientGone)]).await;
    until("the question is dropped", || scripted.live.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
    assert_eq!(lab.sealed("r0").await.label, None);
}
