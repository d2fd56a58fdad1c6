//! Calls to a provider that no surface reads are steps: counted, recorded, streamed through, replayed. `table.toml` of
//! `surface/unread` lists them.

use std::sync::Arc;

use aegis::{
    proxy::{RunSetup, upstream::Upstream},
    recording::Recording,
    replay::{Cassette, Fit, ReplayReport, Replayed},
    trajectory::{RunId, Step, Usage},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    lab::{Lab, Reply, Setup, chat, request, within},
    program::verb,
    scripted::{Act, Scripted, chat_reply, chunk, http, http_with, last_chunk, stream_head},
};

const ANSWER: &str = r#"{"id":"x","usage":{"input_tokens":7,"output_tokens":2}}"#;

async fn answering() -> Scripted {
    Scripted::always(vec![http("200 OK", "application/json", ANSWER)]).await
}

fn made(step: &Step) -> (&str, &str, &str, u32) {
    (step.surface.as_str(), step.path.as_str(), step.attribution.agent.as_str(), step.call)
}

#[tokio::test]
async fn calls_that_used_to_vanish_are_counted_and_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = answering().await;
    let url = format!("http://{}", upstream.address);
    let calls = "import os, urllib.request as u\n\
        v = os.environ['OPENAI_BASE_URL']; o = v.removesuffix('/v1')\n\
        for path in [o + '/v1beta/models/g:embedContent', o + '/v1beta/cachedContents', v + '/agents/sessions', v + '/new/thing']:\n\
        \x20   u.urlopen(u.Request(path, b'{\"input\":\"hi\"}')).read()\n\
        u.urlopen(v + '/models').read(); u.urlopen(o + '/').read()";
    let options = ["run", "--upstream", &url, "--run", "g", "--", "python3", "-c", calls];
    let (code, out, said) = verb(dir.path(), &options).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        out.contains("4 steps  4 unread  1 fetches") || said.contains("4 steps  4 unread  1 fetches"),
        "{out}{said}"
    );
    for what in
        ["recorded, not read: gemini_embed (embeddings; Google)", "gemini_caches", "agents_sessions", "unknown_call"]
    {
        assert!(said.contains(what), "{what}: {said}");
    }
    let steps = aegis::recording::read(&dir.path().join("logs/g")).expect("read").trajectory.steps;
    let counted = Some(Usage { input: 7, output: 2 });
    assert!(steps.iter().all(|step| step.attempts[0].usage == counted && step.method == "POST"), "{steps:?}");
    assert!(steps.iter().all(|step| step.attempts[0].status == Some(200) && &step.request[..] == br#"{"input":"hi"}"#));
}

/// What is read keeps its numbers, whatever is asked beside it.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_read_keep_their_numbers() {
    let script = |body: &str| vec![http("200 OK", "application/json", body)];
    let held = vec![Act::Wait, http("200 OK", "application/json", "{}")];
    let failed = vec![http("503 Service Unavailable", "application/json", "{}")];
    let upstream = Scripted::start(vec![
        script("{}"),
        held,
        script(&chat_reply("one")),
        failed,
        script("{}"),
        script(&chat_reply("two")),
    ])
    .await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    lab.post("/a/main/v1/messages/count_tokens", b"{}").await;
    let mut beside = lab.client().await;
    beside.send(&request("POST", "/a/main/v1/moderations", b"{}", "Connection: close\r\n")).await;
    crate::lab::until("it is asked", || upstream.count() == 2).await;
    lab.post("/a/main/v1/chat/completions", &chat("one")).await;
    upstream.go.notify_one();
    beside.reply().await;
    // The same words at another place are another question, and the same at the same place are another attempt.
    lab.post("/a/main/v1/rerank", b"{}").await;
    lab.post("/a/main/v1/rerank", b"{}").await;
    lab.post("/a/main/v1/chat/completions", &chat("two")).await;
    let recording = lab.sealed("r0").await;
    let steps = &recording.trajectory.steps;
    let seen: Vec<_> = steps.iter().map(made).collect();
    assert_eq!(
        seen,
        [
            ("messages_count_tokens", "/v1/messages/count_tokens", "main/messages_count_tokens", 0),
            ("moderations", "/v1/moderations", "main/moderations", 0),
            ("openai_chat", "/v1/chat/completions", "main", 0),
            ("rerank", "/v1/rerank", "main/rerank", 0),
            ("openai_chat", "/v1/chat/completions", "main", 1),
        ]
    );
    assert!(steps.iter().all(|step| !step.overlapping), "{steps:?}");
    assert_eq!(steps.iter().map(|step| step.attempts.len()).collect::<Vec<_>>(), [1, 1, 1, 2, 1]);
}

/// A plan meets the calls that it names, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_meets_those_that_it_names() {
    let upstream = answering().await;
    let plan = "format = 1\nseed = 7\n[[injection]]\nagent = [\"*\", \"main/gemini_caches\"]\nwhen.call = 0\nmax_times = 1\nfault.status = { code = 503 }\n";
    let plan = plan.replace("max_times = 1\n", "when.max_times = 1\n");
    let mut lab = Lab::before(upstream.address, Setup::planned(&plan)).await;
    let first = lab.post("/a/main/v1/moderations", b"{}").await;
    let second = lab.post("/a/main/v1beta/cachedContents", b"{}").await;
    assert_eq!((first.status, second.status), (200, 503));
    let recording = lab.sealed("r0").await;
    let met: Vec<_> = recording.trajectory.steps.iter().map(|step| step.injected.len()).collect();
    assert_eq!(met, [0, 1]);
}

/// A large upload passes as it comes; the record has its beginning and its length.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_upload_streams_through_and_is_a_step() {
    const LENGTH: usize = 40 << 20;
    let upstream = answering().await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    let body: Vec<u8> = (0..LENGTH).map(|at| b'a' + u8::try_from(at % 23).unwrap_or_default()).collect();
    let reply = lab.post("/a/main/v1/files", &body).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, ANSWER));
    assert!(upstream.bodies() == [body.clone()], "each byte passes, above the limit of what is read too");
    let log = lab.logs.join("r0/log.jsonl");
    let recording = lab.sealed("r0").await;
    let step = &recording.trajectory.steps[0];
    assert_eq!((made(step), step.attempts[0].exact), (("files", "/v1/files", "main/files", 0), false));
    assert_eq!(step.attempts[0].usage, Some(Usage { input: 7, output: 2 }));
    assert!(step.request[..] == body[..1 << 20], "{} bytes", step.request.len());
    let text = std::fs::read_to_string(log).expect("a log");
    assert!(text.contains(&format!("\"cut_from\":{LENGTH}")), "the length stands in the record");
}

/// One that comes slowly does too, and a stream of an unknown call passes frame by frame.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_read_streams_both_ways() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let mut lab = Lab::before(listener.local_addr().expect("address"), Setup::default()).await;
    let mut client = lab.client().await;
    let head =
        "POST /v1/some/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 11\r\n\r\nfirst";
    client.send(head.as_bytes()).await;
    let (mut upstream, _) = within(listener.accept()).await.expect("a connection");
    read_until(&mut upstream, b"first").await;
    client.send(b" later").await;
    read_until(&mut upstream, b" later").await;
    let frames = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: one\n\n";
    upstream.write_all(frames.as_bytes()).await.expect("written");
    assert!(client.read_until(b"data: one\n\n").await, "a frame passes before the next one is there");
    upstream.write_all(b"data: two\n\n").await.expect("written");
    drop(upstream);
    assert!(client.read_until(b"data: two\n\n").await);
    client.rest().await;
    let recording = lab.sealed("r0").await;
    let step = &recording.trajectory.steps[0];
    assert_eq!((made(step).0, &step.request[..]), ("unknown_call", &b"first later"[..]));
    let attempt = &step.attempts[0];
    assert!(attempt.streamed && attempt.exact && &attempt.reply[..] == b"data: one\n\ndata: two\n\n", "{attempt:?}");
}

async fn read_until(stream: &mut tokio::net::TcpStream, end: &[u8]) {
    let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
    while !got.ends_with(end) {
        let count = within(stream.read(&mut buffer)).await.expect("readable");
        assert!(count > 0, "ended early: {}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&buffer[..count]);
    }
}

/// A run that is played to a lab by the recording alone.
async fn replaying(run: &std::path::Path) -> (Lab, Arc<Replayed>) {
    let replayed = Arc::new(Replayed::new(Arc::new(Cassette::open(run).expect("a cassette"))));
    let lab = Lab::over(Arc::clone(&replayed) as Arc<dyn Upstream>, Setup::default()).await;
    let upstream = Some(Arc::clone(&replayed) as Arc<dyn Upstream>);
    let id = RunId::parse("r0").expect("an id");
    lab.proxy.runs.open(&id, RunSetup { upstream, ..RunSetup::default() }).await.expect("opens");
    (lab, replayed)
}

fn upload(boundary: &str) -> Vec<u8> {
    let part = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
    format!("--{boundary}\r\n{part}\r\n\r\n\u{0}\u{1}bytes\r\n--{boundary}--\r\n").into_bytes()
}

async fn asked(lab: &Lab, boundary: &str) -> Vec<Reply> {
    let kind = format!("X-Kind: multipart/form-data; boundary={boundary}\r\n");
    vec![
        lab.post("/a/main/v1/batches/b_1/cancel", b"{}").await,
        lab.post("/a/main/v1/batches/b_2/cancel", b"{}").await,
        lab.post_with("/a/main/v1/files?purpose=x", &upload(boundary), &kind).await,
        lab.post("/v1beta/cachedContents", br#"{"input":"one"}"#).await,
        lab.post("/v1beta/cachedContents", br#"{"input":"two"}"#).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_serves_them_and_names_what_it_refuses() {
    let gzip = http_with("200 OK", "Content-Encoding: gzip\r\n", b"\x1f\x8bno gzip at all");
    let script = [r#"{"n":1}"#, r#"{"n":2}"#].map(|body| vec![http("200 OK", "application/json", body)]);
    let stream = vec![stream_head(), chunk("data: {\"n\":3}\n\n"), last_chunk()];
    let last = vec![http("418 I'm a teapot", "application/json", "{}")];
    let upstream = Scripted::start(script.into_iter().chain([vec![gzip], stream, last]).collect()).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    let then = asked(&lab, "one").await;
    lab.sealed("r0").await;
    let run = lab.logs.join("r0");

    let (again, replayed) = replaying(&run).await;
    let now = asked(&again, "another").await;
    for (then, now) in then.iter().zip(&now) {
        assert_eq!((now.status, &now.body), (then.status, &then.body));
    }
    let ReplayReport { served, missed, refused, unused, .. } = replayed.report();
    assert_eq!((missed.len(), refused.len(), unused.len()), (0, 0, 0));
    let fits: Vec<_> = served.iter().map(|served| (served.recorded, served.fit)).collect();
    assert_eq!(fits, [(0, Fit::Bytes), (1, Fit::Bytes), (2, Fit::Canonical), (3, Fit::Bytes), (4, Fit::Bytes)]);

    // Another place, other words, and what only looks at something.
    let other = again.post("/a/main/v1/batches/b_3/cancel", b"{}").await;
    other.assert_own_error(409, "not_recorded");
    assert!(other.text().contains("POST /v1/batches/b_3/cancel"), "{}", other.text());
    let words = again.post("/v1beta/cachedContents", br#"{"input":"three"}"#).await;
    assert!(words.text().contains("POST /v1beta/cachedContents") && words.text().contains("three"), "{}", words.text());
    let models = Reply::parse(&again.raw(&request("GET", "/v1/models", b"", "Connection: close\r\n")).await);
    models.assert_own_error(409, "not_recorded");
    let report = replayed.report();
    assert_eq!((report.missed.len(), report.refused.len()), (2, 1));
    assert!(report.refused[0].to_string().starts_with("GET /v1/models is no recorded model call: "), "{report:?}");
}

/// A record of a version that did not know such calls replays as it did: it refuses them, and names them.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_an_older_record_misses_none_of_them() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    lab.post("/a/main/v1/chat/completions", &chat("one")).await;
    let Recording { manifest, .. } = lab.sealed("r0").await;
    assert_eq!(manifest.versions.calls, 1);
    let run = lab.logs.join("r0");
    let text = std::fs::read_to_string(run.join("run.json")).expect("a manifest");
    let older = text.replacen("\"calls\": 1", "\"later\": 1", 1);
    assert_ne!(older, text);
    std::fs::write(run.join("run.json"), older).expect("written");
    let (again, replayed) = replaying(&run).await;
    assert_eq!(again.post("/a/main/v1/chat/completions", &chat("one")).await.status, 200);
    again.post("/a/main/v1/moderations", b"{}").await.assert_own_error(409, "not_recorded");
    let report = replayed.report();
    assert_eq!((report.served.len(), report.missed.len(), report.refused.len()), (1, 0, 1));
    assert!(report.refused[0].to_string().contains("POST /v1/moderations"), "{report:?}");
}

/// A base URL with a slash too many means the path without it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slash_too_many_is_none() {
    for (sent, meant) in [
        ("//v1/chat/completions?a=//b", "/v1/chat/completions?a=//b"),
        ("/v1//chat/completions", "/v1/chat/completions"),
        ("/r/r0/a/main//v1/chat/completions", "/v1/chat/completions"),
        ("///v1///moderations", "/v1/moderations"),
        ("//v1/models", "/v1/models"),
        ("/pages//one", "/pages//one"),
    ] {
        let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
        let mut lab = Lab::before(upstream.address, Setup::default()).await;
        let method = if sent.contains("models") || sent.contains("pages") { "GET" } else { "POST" };
        let bytes = request(method, sent, &chat("one"), "Connection: close\r\n");
        assert_eq!(Reply::parse(&lab.raw(&bytes).await).status, 200, "{sent}");
        assert!(upstream.heads()[0].starts_with(&format!("{method} {meant} HTTP/1.1")), "{}", upstream.heads()[0]);
        let calls = usize::from(method == "POST");
        let steps = if calls == 0 { 0 } else { lab.sealed("r0").await.trajectory.steps.len() };
        assert_eq!(steps, calls, "{sent}");
    }
}

/// Where nothing tells its run, such a call passes as it always did; where one run alone is under way, it is that run's.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_run_passes() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let setup = || Setup { default_run: None, lineage: true, ..Setup::default() };
    let mut lab = Lab::before(upstream.address, setup()).await;
    assert_eq!(lab.post("/v1/moderations", b"{}").await.status, 200);
    lab.post("/r/r1/v1/chat/completions", &chat("one")).await;
    assert_eq!(lab.post("/v1/moderations", b"{}").await.status, 200);
    lab.post("/r/r2/v1/chat/completions", &chat("two")).await;
    assert_eq!(lab.post("/v1/moderations", b"{}").await.status, 200);
    let steps = lab.sealed("r1").await.trajectory.steps;
    assert_eq!(steps.iter().map(|step| step.surface.as_str()).collect::<Vec<_>>(), ["openai_chat", "moderations"]);
    assert_eq!(aegis::recording::read(&lab.logs.join("r2")).expect("read").trajectory.steps.len(), 1);
    assert_eq!(upstream.count(), 5, "each passed");
}
