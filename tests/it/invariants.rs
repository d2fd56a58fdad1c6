//! The design's invariants, a test named for each that no other file holds.
//!
//! 1 `passing` (untouched bytes) and `plans::an_edit_leaves_every_other_byte`; 2 `architecture` (arrows, pure rooms,
//! field names); 6 `bodies` (edits that cannot be made) and `durability` (a full disk); 8 `durability` (kill) and
//! `passing` (end marker); 9 `replay`; 10 `routing`.

use std::{collections::BTreeMap, sync::Arc};

use aegis::{
    plan,
    proxy::RunSetup,
    ruling::{NoLabel, Ruling},
    trajectory::{CloseCause, RunId},
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    assembled::both,
    echo::Echo,
    lab::{Client, Lab, Setup, chat, request, until},
    scripted::{Act, Scripted, chat_reply, http, http_with},
};

const CORRUPT: &str = r#"
format = 1
seed = 11
[[injection]]
agent = "solver"
failure_mode = "FM-2.6"
when.call = 0
manipulator.corrupt_number = { which = "last", by = 10 }
"#;

/// Invariant 3.
#[tokio::test(flavor = "multi_thread")]
async fn planned_matched_applied_and_delivered_are_four_facts() {
    // Applied, and the client left before the altered bytes reached it.
    let text = CORRUPT.to_owned()
        + "[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.hang = { at = \"before_body\" }\n";
    let (reply, _) = both(&[("It is 12.", &[])]);
    let upstream = Scripted::always(reply).await;
    let mut lab = Lab::before(upstream.address, Setup::planned(&text)).await;
    let mut client = lab.client().await;
    client.post("/a/solver/v1/chat/completions", &chat("x")).await;
    assert!(client.read_until(b"\r\n\r\n").await);
    drop(client);
    until("the exchange ends", || lab.causes("r0").iter().all(Option::is_some)).await;
    let recording = lab.sealed("r0").await;
    let step = &recording.trajectory.steps[0];
    let edit = step.injected.iter().find(|error| error.failure_mode.is_some()).expect("the edit is recorded");
    assert_ne!(edit.before, edit.after, "applied");
    assert!(!edit.delivered, "not delivered");
    assert_eq!(recording.label, None);
    assert_eq!(Ruling::new(&recording).label().expect_err("no label"), NoLabel::NotInjected);
    // Planned, and never matched.
    let mut lab = Lab::before(upstream.address, Setup::planned(CORRUPT)).await;
    lab.post("/a/critic/v1/chat/completions", &chat("x")).await;
    let recording = lab.sealed("r0").await;
    assert!(recording.manifest.plan_digest.is_some() && recording.trajectory.steps[0].injected.is_empty());
    assert_eq!(recording.label, None);
}

/// Who was hit at which call, whatever came when.
async fn hit(order: &[(usize, u32)]) -> BTreeMap<(String, u32), bool> {
    let text = CORRUPT.replace("when.call = 0", "when.probability = 0.5").replace("\"solver\"", "\"agent*\"");
    let lab = Lab::over(Arc::new(Echo), Setup::planned(&text)).await;
    let mut hits = BTreeMap::new();
    for (agent, call) in order {
        let path = format!("/r/same/a/agent{agent}/v1/chat/completions");
        let reply = lab.post(&path, &chat(&format!("call {call} of {agent}: 100."))).await;
        hits.insert((format!("agent{agent}"), *call), !reply.text().contains(": 100."));
    }
    hits
}

/// Invariant 4.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_do_not_depend_on_the_order_of_arrival() {
    let in_turn: Vec<_> = (0..8).flat_map(|call| (0..4).map(move |agent| (agent, call))).collect();
    let one_by_one: Vec<_> = (0..4).rev().flat_map(|agent| (0..8).map(move |call| (agent, call))).collect();
    let (first, second) = (hit(&in_turn).await, hit(&one_by_one).await);
    assert_eq!(first, second);
    let hits = first.values().filter(|hit| **hit).count();
    assert!((8..=24).contains(&hits), "{hits} of 32 at even odds");
}

/// Invariant 4: a retry meets the decision of its first attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_meets_the_decision_of_its_first_attempt() {
    let failed = vec![http("503 Service Unavailable", "application/json", "{}")];
    let (reply, _) = both(&[("It is 12.", &[])]);
    let upstream = Scripted::start(vec![failed.clone(), failed, reply.clone(), reply]).await;
    let mut lab = Lab::before(upstream.address, Setup::planned(CORRUPT)).await;
    let mut said = Vec::new();
    for count in [0, 1, 2, 0] {
        let headers = format!("x-stainless-retry-count: {count}\r\n");
        said.push(lab.post_with("/a/solver/v1/chat/completions", &chat("x"), &headers).await.text());
    }
    assert_eq!([said[0].as_str(), said[1].as_str()], ["{}", "{}"], "errors of the upstream are never edited");
    assert!(said[2].contains("It is 22."), "{}", said[2]);
    assert!(said[3].contains("It is 12."), "the next call is another: {}", said[3]);
    let recording = lab.sealed("r0").await;
    let label = recording.label.expect("a label");
    assert_eq!((label.errors.len(), label.errors[0].error.step, label.errors[0].error.call), (1, 0, 0));
    assert_eq!(recording.trajectory.steps[0].attempts.len(), 3);
}

/// Invariant 4: which of calls at the same time comes first is chance, so the first of them is no more certain than the others.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_the_first_of_overlapping_calls_is_no_label() {
    for (others, expected) in
        [(["critic", "critic"], true), (["solver", "critic"], false), (["critic", "solver"], false)]
    {
        // A gate that was opened stays open.
        let upstream =
            Scripted::always(vec![Act::Gate, http("200 OK", "application/json", &chat_reply("It is 12."))]).await;
        let mut lab = Lab::before(upstream.address, Setup::planned(CORRUPT)).await;
        let mut clients = Vec::new();
        for (number, agent) in ["solver"].iter().chain(&others).enumerate() {
            let mut client = lab.client().await;
            client.post(&format!("/r/run/a/{agent}/v1/chat/completions"), &chat(&format!("call {number}"))).await;
            until("the call arrives", || upstream.count() == number + 1).await;
            clients.push(client);
        }
        upstream.open_gate();
        for client in &mut clients {
            assert!(client.read_until(b"usage").await);
        }
        // What comes when all is answered overlaps with nothing.
        lab.post("/r/run/a/solver/v1/chat/completions", &chat("afterwards")).await;
        drop(clients);
        let logs = lab.logs.clone();
        let recording = lab.sealed("run").await;
        let marks: Vec<_> = recording.trajectory.steps.iter().map(|step| step.overlapping).collect();
        assert!(recording.trajectory.steps[0].injected[0].delivered, "{others:?}");
        let again = aegis::ruling::settle(&logs.join("run"), None).expect("reads");
        assert_eq!((recording.label.is_some(), again.is_ok()), (expected, expected), "{others:?}: {marks:?}");
        assert!(expected || again == Err(NoLabel::Overlapping), "{again:?}");
        assert_eq!(marks[0], !expected, "{others:?}");
        // A campaign's run is answered from the record at once, so the record is asked whether its calls overlapped.
        let record = aegis::replay::Cassette::open(&logs.join("run")).expect("a record");
        let first = &recording.trajectory.steps[0];
        assert_eq!(record.bare_steps()[first.step as usize].overlapping, !expected, "{others:?}");
        assert!(!marks[3], "{others:?}");
    }
}

/// Invariant 5.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_immutable_for_the_life_of_a_run() {
    let (reply, _) = both(&[("It is 12.", &[])]);
    let upstream = Scripted::always(reply).await;
    let mut lab = Lab::before(upstream.address, Setup::planned(CORRUPT)).await;
    lab.post("/r/run/a/critic/v1/chat/completions", &chat("x")).await;
    let other = CORRUPT.replace("by = 10", "by = 20");
    let other = Arc::new(plan::parse(&other, "other.toml").expect("a plan"));
    let id = RunId::parse("run").expect("an id");
    let run = lab.proxy.runs.open(&id, RunSetup { plan: Some(other), ..RunSetup::default() }).await.expect("under way");
    assert_eq!(run.plan.as_ref().expect("a plan").text, CORRUPT, "the run keeps its plan");
    let reply = lab.post("/r/run/a/solver/v1/chat/completions", &chat("x")).await;
    assert!(reply.text().contains("It is 22."), "{}", reply.text());
    // Nor can a later program go on with the run under another plan.
    drop(run);
    lab.drain().await;
    let logs = lab.logs.clone();
    drop(lab.proxy.runs.retire());
    let manifest = aegis::recording::read(&logs.join("run")).expect("a recording").manifest;
    let changed = manifest.with_plan("another plan", 1);
    let error = aegis::recording::Recorder::create(&logs, changed, &aegis::recording::Settings::default());
    assert!(matches!(error, Err(aegis::recording::RecordingError::OtherPlan { .. })), "{error:?}");
}

/// Everything that left in one run: bytes to the upstream, bytes to the client.
async fn witnessed(plan: Option<&str>) -> Vec<(String, String)> {
    let headers = "Content-Type: application/json\r\nX-Request-Id: req_1\r\nopenai-processing-ms: 5\r\n";
    let body = chat_reply("It is 12.");
    let upstream = Scripted::always(vec![http_with("200 OK", headers, body.as_bytes())]).await;
    let setup = plan.map_or_else(Setup::default, Setup::planned);
    let lab = Lab::before(upstream.address, setup).await;
    let mut seen = Vec::new();
    for (agent, call) in [("planner", 0), ("solver", 0), ("solver", 1), ("critic", 0)] {
        let body = json!({"model": "m", "messages": [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": format!("call {call}")}]});
        let path = format!("/r/run-1/a/{agent}/v1/chat/completions");
        let mut client = lab.client().await;
        client
            .send(&request(
                "POST",
                &path,
                body.to_string().as_bytes(),
                "X-Stainless-Lang: python\r\nConnection: close\r\n",
            ))
            .await;
        client.rest().await;
        let sent = upstream.requests.lock().expect("lock").last().cloned().expect("a request");
        let sent = String::from_utf8(sent).expect("utf-8").replace(&upstream.address.to_string(), "UPSTREAM");
        seen.push((sent, String::from_utf8(client.seen).expect("utf-8")));
    }
    seen
}

/// Invariant 7, S15.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_sees_differs_by_the_planted_error_only() {
    let text = format!(
        "{CORRUPT}{}",
        "[[injection]]\nagent = \"planner\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\nmanipulator.append_instruction = { text = \"Hurry.\" }\n"
    );
    let (clean, treated) = (witnessed(None).await, witnessed(Some(&text)).await);
    let patched: Vec<_> = clean
        .into_iter()
        .zip([0, 1, 2, 3])
        .map(|((sent, got), number)| match number {
            0 => {
                let sent = sent.replace("You are an agent.", "You are an agent.\\n\\nHurry.");
                let length = |text: &str| {
                    text.split("content-length: ")
                        .nth(1)
                        .and_then(|rest| rest.split('\r').next())
                        .and_then(|length| length.parse::<usize>().ok())
                };
                let old = length(&sent.to_lowercase()).expect("a length");
                let added = "\\n\\nHurry.".len();
                let (head, body) = sent.split_once("\r\n\r\n").expect("a body");
                let head = head.replace(&old.to_string(), &(old + added).to_string());
                (format!("{head}\r\n\r\n{body}"), got)
            }
            1 => (sent, got.replace("It is 12.", "It is 22.")),
            _ => (sent, got),
        })
        .collect();
    assert_eq!(treated.len(), patched.len());
    let lines = |text: &str| {
        let (head, body) = text.split_once("\r\n\r\n").expect("a body");
        let mut lines: Vec<String> = head.lines().map(str::to_lowercase).collect();
        lines.sort();
        (lines, body.to_owned())
    };
    for ((sent, got), (expected_sent, expected_got)) in treated.iter().zip(&patched) {
        assert_eq!(lines(sent), lines(expected_sent));
        assert_eq!(lines(got), lines(expected_got));
        for word in ["aegis", "inject", "FM-", "fm-", "corrupt", "plan.toml", "run-1", "/r/", "/a/"] {
            assert!(!sent.contains(word) && !got.contains(word), "`{word}` is seen: {sent} {got}");
        }
    }
}

/// Invariant 8: of a whole reply the end waits for the record, and nothing else does.
#[tokio::test(flavor = "multi_thread")]
async fn when_a_reply_is_whole_its_record_stands() {
    let body = chat_reply(&"long ".repeat(20_000));
    let half = body.len() / 2;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    let script = vec![
        Act::Say([head.as_bytes(), &body.as_bytes()[..half]].concat()),
        Act::Wait,
        Act::Say(body.as_bytes()[half..].to_vec()),
    ];
    let upstream = Scripted::always(script).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let mut clients = JoinSet::new();
    for number in 0..10 {
        let (address, first, go) = (lab.address, body.as_bytes()[half - 10..half].to_vec(), Arc::clone(&upstream.go));
        let path = format!("/r/run{number}/v1/chat/completions");
        let (logs, body) = (lab.logs.join(format!("run{number}")), body.clone());
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            client.post(&path, &chat("x")).await;
            // The first half does not wait for the second.
            assert!(client.read_until(&first).await);
            go.notify_one();
            assert!(client.read_until(&body.as_bytes()[body.len() - 60..]).await);
            let recording = aegis::recording::read(&logs).expect("a recording");
            assert_eq!(recording.trajectory.steps[0].attempts[0].cause, Some(CloseCause::Complete));
            assert_eq!(recording.trajectory.steps[0].attempts[0].reply, body.as_bytes());
        });
    }
    while let Some(client) = clients.join_next().await {
        client.expect("the record stands");
    }
}
