//! Any recording comes back byte for byte, in the order of each agent: edits, faults, streams, other APIs, cut logs.

use std::{fs, sync::Arc};

use aegis::{
    proxy::{Limits, RunSetup, upstream::Upstream},
    recording::{self, Recording},
    replay::{Cassette, Replayed},
    simulator::Simulator,
    surface,
    trajectory::{CloseCause, RunId},
};
use serde_json::json;

use crate::{
    echo::Echo,
    lab::{Lab, Reply, Setup, chat, request},
    replay::Tripwire,
    scripted::{Act, Scripted, chat_reply, chat_stream, chunk, delta, http, http_with, last_chunk, stream_head},
};

const CHAT: &str = "/a/solver/v1/chat/completions";

/// Calls in order, each on a connection of its own.
async fn calls(lab: &Lab, calls: &[(&str, Vec<u8>)]) -> Vec<Reply> {
    let mut replies = Vec::new();
    for (path, body) in calls {
        let mut client = lab.client().await;
        client.send(&request("POST", path, body, "Connection: close\r\n")).await;
        replies.push(client.reply().await);
    }
    replies
}

/// Replays a sealed run to the same calls, and compares what the client and the record see.
async fn comes_back(name: &str, mut lab: Lab, made: &[(&str, Vec<u8>)], then: &[Reply]) {
    let recording = lab.sealed("r0").await;
    let replayed = Arc::new(Replayed::new(Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"))));
    let wire = Arc::new(Tripwire::default());
    let mut again = Lab::over(Arc::clone(&wire) as Arc<dyn Upstream>, Setup::default()).await;
    let id = RunId::parse("r0").expect("an id");
    let upstream = Some(Arc::clone(&replayed) as Arc<dyn Upstream>);
    again.proxy.runs.open(&id, RunSetup { upstream, ..RunSetup::default() }).await.expect("opens");
    let now = calls(&again, made).await;
    for (index, (then, now)) in then.iter().zip(&now).enumerate() {
        assert_eq!((now.status, now.whole), (then.status, then.whole), "{name}, call {index}: {}", now.text());
        assert_eq!(now.header("content-type"), then.header("content-type"), "{name}, call {index}");
        assert_eq!(now.header("x-aegis-error"), then.header("x-aegis-error"), "{name}, call {index}");
        assert!(now.body == then.body, "{name}, call {index}: {} → {}", then.text(), now.text());
    }
    let report = replayed.report();
    assert!(report.missed.is_empty() && report.unused.is_empty(), "{name}: {report:?}");
    assert!(report.served.is_sorted_by_key(|served| served.recorded), "{name}: {report:?}");
    assert_eq!(wire.0.load(std::sync::atomic::Ordering::SeqCst), 0, "{name}");
    let second = again.sealed("r0").await;
    same_to_the_agent(name, &recording, &second);
    let edited = |recording: &Recording| recording.trajectory.steps.iter().any(|step| !step.injected.is_empty());
    let lengths = |recording: &Recording| -> Vec<u64> {
        recording.exchanges.iter().flat_map(|exchange| &exchange.frames).map(|(_, length)| *length).collect()
    };
    assert!(edited(&recording) || lengths(&recording) == lengths(&second), "{name}: other frames");
}

/// Two recordings hold the same requests of the same agents and the same delivered bytes, attempt by attempt.
fn same_to_the_agent(name: &str, first: &Recording, second: &Recording) {
    let told = |recording: &Recording| {
        let steps = recording.trajectory.steps.iter();
        let attempts = steps.flat_map(|step| step.attempts.iter().map(move |attempt| (step, attempt)));
        let told = attempts.map(|(step, attempt)| {
            (step.attribution.agent.clone(), step.request.clone(), attempt.status, attempt.delivered().clone())
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(told(first), told(second), "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_and_faults_come_back_as_the_client_saw_them() {
    for edit in [
        "failure_mode = \"FM-2.6\"\nmanipulator.corrupt_number = { which = \"last\", by = 10 }",
        "failure_mode = \"FM-1.1\"\nmanipulator.append_instruction = { text = \"Hurry.\" }",
        "fault.status = { code = 429, retry_after_s = 0, attempts = \"first\" }",
        "fault.cut = { at = { after_bytes = 30 } }",
        "fault.cut = { at = { after_bytes = 30 }, clean = true }",
        "fault.cut = { at = \"before_end\", clean = true }",
        "fault.reset = {}",
        "fault.latency.ms = 1",
    ] {
        for streamed in [false, true] {
            let plan = format!("[[injection]]\nagent = \"solver\"\nwhen.call = 0\n{edit}\n");
            let body = json!({"model": "m", "stream": streamed, "messages": [
                {"role": "system", "content": "You are a solver. End with a line `ANSWER: <number>`."},
                {"role": "user", "content": "Problem: Tom has 12 apples. He buys 5 more apples. How many apples does Tom have?"},
            ]});
            let body = body.to_string().into_bytes();
            let made = [(CHAT, body.clone()), (CHAT, body), ("/a/critic/v1/chat/completions", chat("What is 3 + 4?"))];
            let lab = Lab::over(Arc::new(Simulator::new(7)), Setup::planned(&plan)).await;
            let then = calls(&lab, &made).await;
            comes_back(&format!("{edit}, streamed {streamed}"), lab, &made, &then).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_an_upstream_said_comes_back() {
    let ok = |body: &str| vec![http("200 OK", "application/json", body)];
    let broken = vec![stream_head(), chunk(delta("one")), Act::Close];
    let unmarked = vec![stream_head(), chunk(delta("one")), last_chunk()];
    let script = vec![
        ok(&chat_reply("whole")),
        chat_stream(&["It ", "is ", "12."]),
        broken,
        unmarked,
        vec![http_with("400 Bad Request", "content-type: text/html\r\n", b"<h1>no</h1>")],
        vec![http_with("204 No Content", "", b"")],
        vec![http_with("200 OK", "content-type: application/octet-stream\r\n", b"\x00\xff\xfe bytes")],
        ok("{\"object\":\"response\",\"output\":[]}"),
        ok("{\"object\":\"list\",\"data\":[{\"embedding\":[0.25,-1e-3]}]}"),
        ok(&chat_reply("")),
        ok("not json at all"),
        vec![Act::Close],
    ];
    let made: Vec<(&str, Vec<u8>)> = vec![
        (CHAT, chat("whole")),
        (CHAT, chat("stream")),
        (CHAT, chat("broken")),
        (CHAT, chat("unmarked")),
        (CHAT, chat("refused")),
        (CHAT, chat("nothing")),
        (CHAT, b"\xff\xfe no json".to_vec()),
        ("/v1/responses", b"{\"input\": \"x\"}".to_vec()),
        ("/v1/embeddings", b"{\"input\": \"x\"}".to_vec()),
        (CHAT, chat("empty")),
        (CHAT, chat("é \u{1f600}")),
        (CHAT, chat("closed")),
    ];
    let upstream = Scripted::start(script).await;
    let limits = Limits { silence_timeout: std::time::Duration::from_secs(5), ..Limits::default() };
    let lab = Lab::before(upstream.address, Setup { limits, ..Setup::default() }).await;
    let then = calls(&lab, &made).await;
    comes_back("scripted", lab, &made, &then).await;
}

/// Every surface of the list, whole and streamed: the same bytes, and of a stream the same frames.
#[tokio::test(flavor = "multi_thread")]
async fn every_surface_comes_back_frame_by_frame() {
    for surface in surface::ALL {
        for streamed in [false, true] {
            if streamed && surface.name() == "openai_embeddings" {
                continue;
            }
            let name = format!("{} streamed {streamed}", surface.name());
            let mut body = String::from_utf8(surface.blank_request().to_vec()).expect("utf-8");
            if streamed {
                body = body.replacen('{', "{\"stream\": true, ", 1);
            }
            let path = if streamed { surface.path_for_stream() } else { surface.path() };
            let path = format!("/a/solver{path}");
            let made = [(path.as_str(), body.into_bytes())];
            let lab = Lab::over(Arc::new(Simulator::new(0)), Setup::default()).await;
            let then = calls(&lab, &made).await;
            assert_eq!(then[0].status, 200, "{name}: {}", then[0].text());
            let framed = lab.recorded("r0").exchanges.iter().any(|exchange| !exchange.frames.is_empty());
            assert_eq!(framed, streamed, "{name}");
            comes_back(&name, lab, &made, &then).await;
        }
    }
}

/// Secrets are masked in the record: the request is found all the same, the reply is served masked and said to be so.
#[tokio::test(flavor = "multi_thread")]
async fn a_masked_secret_is_no_other_request() {
    let mut lab = Lab::over(Arc::new(Echo), Setup::default()).await;
    let body = chat("my key is sk-abcdefghijklmnopqrstuvwx");
    lab.post(CHAT, &body).await;
    lab.sealed("r0").await;
    let replayed = Arc::new(Replayed::new(Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"))));
    let again = Lab::over(Arc::new(Tripwire::default()), Setup::default()).await;
    let upstream = Some(Arc::clone(&replayed) as Arc<dyn Upstream>);
    again
        .proxy
        .runs
        .open(&RunId::parse("r0").expect("an id"), RunSetup { upstream, ..RunSetup::default() })
        .await
        .expect("opens");
    let reply = again.post(CHAT, &body).await;
    assert!(reply.status == 200 && reply.text().contains("***"), "{}", reply.text());
    let report = replayed.report();
    assert_eq!((report.served[0].exact, report.served[0].fit), (false, aegis::replay::Fit::Masked));
    assert_eq!(again.post(CHAT, &chat("my key is sk-other")).await.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_and_foreign_recordings_are_told_apart() {
    let lab = Lab::over(Arc::new(Echo), Setup::default()).await;
    lab.post(CHAT, &chat("one")).await;
    lab.post(CHAT, &chat("two")).await;
    for run in lab.proxy.runs.retire() {
        drop(run);
    }
    let run = lab.logs.join("r0");
    let log = fs::read(run.join("log.jsonl")).expect("a log");
    // Cut in its last record, as by a killed proxy: what is whole replays, the rest is a step without an answer.
    let torn = lab.dir.path().join("torn");
    fs::create_dir(&torn).expect("made");
    fs::copy(run.join("run.json"), torn.join("run.json")).expect("copied");
    fs::write(torn.join("log.jsonl"), &log[..log.len() - 20]).expect("written");
    let cassette = Cassette::open(&torn).expect("a torn end is no damage");
    let causes: Vec<_> = cassette.recording().trajectory.steps.iter().map(|step| step.attempts[0].cause).collect();
    assert_eq!(causes, [Some(CloseCause::Complete), None]);
    let replayed = Arc::new(Replayed::new(Arc::new(cassette)));
    let again = Lab::over(Arc::new(Tripwire::default()), Setup::default()).await;
    let upstream = Some(Arc::clone(&replayed) as Arc<dyn Upstream>);
    again
        .proxy
        .runs
        .open(&RunId::parse("r0").expect("an id"), RunSetup { upstream, ..RunSetup::default() })
        .await
        .expect("opens");
    assert_eq!(again.post(CHAT, &chat("one")).await.status, 200);
    assert!(again.raw(&request("POST", CHAT, &chat("two"), "Connection: close\r\n")).await.is_empty());
    // Damaged in the middle, of a later format, or no recording at all.
    let mut damaged = log.clone();
    damaged[log.len() / 3] ^= 1;
    fs::write(torn.join("log.jsonl"), &damaged).expect("written");
    let error = |dir: &std::path::Path| Cassette::open(dir).expect_err("refused").to_string();
    assert!(error(&torn).contains("`aegis repair RUN_DIR --salvage`"), "{}", error(&torn));
    let manifest = fs::read_to_string(run.join("run.json")).expect("a manifest");
    fs::write(torn.join("run.json"), manifest.replacen("\"format\": 1", "\"format\": 99", 1)).expect("written");
    assert!(error(&torn).contains("has format 99: expected at most 1"), "{}", error(&torn));
    assert!(error(lab.dir.path()).contains("is not a recorded run"), "{}", error(lab.dir.path()));
    let recording = recording::read(&run).expect("the original is as it was");
    assert_eq!(recording.trajectory.steps.len(), 2);
}

/// A worker's second call: its part, and what its tool gave.
fn worker(part: u32, result: &str) -> Vec<u8> {
    let id = format!("call_{part}");
    let call = json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": format!("Do part {part}.")},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]);
    json!({"model": "m", "messages": messages}).to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nearest_record_is_the_one_that_differs_least_and_the_way_out_is_named() {
    let mut lab = Lab::over(Arc::new(Echo), Setup::default()).await;
    for part in 0..5 {
        lab.post(CHAT, &worker(part, &format!("took {part}.25 s"))).await;
    }
    for said in ["Take ticket-8f3a91 along.", "Choose of {'pear', 'plum', 'fig'}.", "There are 12 pears."] {
        lab.post(CHAT, &chat(said)).await;
    }
    lab.sealed("r0").await;
    let replayed = Arc::new(Replayed::new(Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"))));
    let again = Lab::over(Arc::new(Tripwire::default()), Setup::default()).await;
    let upstream = Some(Arc::clone(&replayed) as Arc<dyn Upstream>);
    let run = RunId::parse("r0").expect("an id");
    again.proxy.runs.open(&run, RunSetup { upstream, ..RunSetup::default() }).await.expect("opens");
    for (asked, nearest, says) in [
        // Workers come in another order: the call number says nothing.
        (worker(3, "took 9.75 s"), 3, "(`--tool-results any` goes on)"),
        (chat("Take ticket-91bc07 along."), 5, "a rule says so (`--rules FILE`)"),
        (chat("Choose of {'plum', 'fig', 'pear'}."), 6, "unless PYTHONHASHSEED is set"),
        (chat("There are 13 pears."), 7, "now \\\"There are 13 pears.\\\""),
    ] {
        let reply = again.post(CHAT, &asked).await;
        reply.assert_own_error(409, "not_recorded");
        assert!(reply.text().contains(&format!("nearest is step {nearest} ")), "{}", reply.text());
        assert!(reply.text().contains(says), "{}", reply.text());
    }
    let missed = replayed.report().missed;
    assert_eq!(missed.iter().map(|missed| missed.tool_results_only).collect::<Vec<_>>(), [true, false, false, false]);
    let rules: Vec<bool> = missed.iter().map(|missed| missed.rule.is_some()).collect();
    assert_eq!(rules, [false, true, false, false]);
}
