//! `--ask-logprobs`: the upstream is asked how likely its tokens are; the recording keeps that, and the client sees what it would
//! have seen without, byte for byte.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use aegis::{surface, trajectory::Attempt};
use serde_json::{Value, json};

use crate::{
    lab::{Client, request},
    program::{AEGIS, Served, verb},
    scripted::{Act, Scripted},
};

/// An upstream that answers as backends do: with log-probabilities where it is asked for them.
struct Backend {
    address: std::net::SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
}

/// How a backend writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `null` before `finish_reason` where nobody asks, as the original API.
    Null,
    /// Last, and nothing where nobody asks, as llama.cpp's server.
    Absent,
    /// It refuses the question.
    GateCheck,
}

impl Backend {
    async fn start(style: Style) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let noted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let noted = Arc::clone(&noted);
                let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    let noted = Arc::clone(&noted);
                    async move {
                        use http_body_util::BodyExt;
                        let path = request.uri().path().to_owned();
                        let body = request.into_body().collect().await.expect("a body").to_bytes();
                        let body: Value = serde_json::from_slice(&body).expect("JSON");
                        let (status, kind, said) = answer(style, &path, &body);
                        noted.lock().expect("unpoisoned").push(body);
                        let response = hyper::Response::builder().status(status).header("content-type", kind);
                        Ok::<_, std::convert::Infallible>(
                            response.body(http_body_util::Full::new(bytes::Bytes::from(said))).expect("a response"),
                        )
                    }
                });
                let io = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("unpoisoned").clone()
    }
}

const TOKENS: [(&str, f64); 3] = [("It", -0.25), (" is", -1.5), (" 84.", -0.125)];

fn token((text, logprob): &(&str, f64)) -> Value {
    json!({"token": text, "logprob": logprob, "bytes": null, "top_logprobs": []})
}

/// What it says by the Responses API.
fn response(asks: bool, streamed: bool) -> (u16, &'static str, String) {
    let tokens: Vec<Value> = if asks { TOKENS.iter().map(token).collect() } else { Vec::new() };
    let whole = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "annotations": [], "logprobs": tokens, "text": "It is 84."}]}],
        "usage": {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}});
    if !streamed {
        return (200, "application/json", whole.to_string());
    }
    let mut out = String::new();
    for one in &TOKENS {
        let tokens = if asks { vec![token(one)] } else { Vec::new() };
        let delta = json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
            "delta": one.0, "logprobs": tokens});
        let _ = write!(out, "event: response.output_text.delta\ndata: {delta}\n\n");
    }
    let end = json!({"type": "response.completed", "response": whole});
    let _ = write!(out, "event: response.completed\ndata: {end}\n\n");
    (200, "text/event-stream", out)
}

/// What the backend says to a request.
fn answer(style: Style, path: &str, body: &Value) -> (u16, &'static str, String) {
    let asks = body["logprobs"] == true
        || body["logprobs"].is_u64()
        || body["include"].as_array().is_some_and(|names| names.contains(&json!("message.output_text.logprobs")));
    if asks && style == Style::GateCheck {
        return (
            400,
            "application/json",
            json!({"error": {"message": "Unsupported parameter: 'logprobs'"}}).to_string(),
        );
    }
    let of = |tokens: &[(&str, f64)]| {
        let content: Vec<Value> = tokens.iter().map(token).collect();
        if asks { json!({"content": content, "refusal": null}).to_string() } else { "null".to_owned() }
    };
    let choice = |inner: &str, logprobs: String, finish: &str| match style {
        Style::Absent if !asks => format!(r#"{{"finish_reason":{finish},"index":0,{inner}}}"#),
        Style::Absent => format!(r#"{{"finish_reason":{finish},"index":0,{inner},"logprobs":{logprobs}}}"#),
        _ => format!(r#"{{"index":0,{inner},"logprobs":{logprobs},"finish_reason":{finish}}}"#),
    };
    let around = |object: &str, choice: String| {
        format!(
            r#"{{"id": "x", "object":"{object}","model":"m","choices":[{choice}],"usage":{{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}}}"#
        )
    };
    let streamed = body["stream"] == true;
    if path.ends_with("/responses") {
        return response(asks, streamed);
    }
    if !path.ends_with("/chat/completions") {
        let old = if asks {
            json!({"tokens": ["It is 84."], "token_logprobs": [-0.5]}).to_string()
        } else {
            "null".to_owned()
        };
        let choice = format!(r#"{{"text":"It is 84.","index":0,"logprobs":{old},"finish_reason":"stop"}}"#);
        return (200, "application/json", around("text_completion", choice));
    }
    if !streamed {
        let message = r#""message":{"role":"assistant","content":"It is 84.","refusal":null}"#;
        return (200, "application/json", around("chat.completion", choice(message, of(&TOKENS), "\"stop\"")));
    }
    let mut out = String::new();
    for one in &TOKENS {
        let delta = format!(r#""delta":{{"content":{}}}"#, json!(one.0));
        let _ = write!(out, "data: {}\n\n", around("chat.completion.chunk", choice(&delta, of(&[*one]), "null")));
    }
    let last = match style {
        Style::Absent => r#"{"finish_reason":"stop","index":0,"delta":{}}"#.to_owned(),
        _ => r#"{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}"#.to_owned(),
    };
    let _ = write!(out, "data: {}\n\ndata: [DONE]\n\n", around("chat.completion.chunk", last));
    (200, "text/event-stream", out)
}

const CHAT: &str = "/v1/chat/completions";

/// What is asked: path and body.
fn questions() -> Vec<(&'static str, Value)> {
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "How many?"}]});
    let with = |mut body: Value, more: Value| {
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    vec![
        (CHAT, chat.clone()),
        (CHAT, with(chat.clone(), json!({"stream": true}))),
        ("/v1/completions", json!({"model": "m", "prompt": "How many?"})),
        ("/v1/responses", json!({"model": "m", "input": "How many?"})),
        ("/v1/responses", json!({"model": "m", "input": "How many?", "stream": true})),
        // Who asks itself gets what it asked for.
        (CHAT, with(chat, json!({"logprobs": true}))),
    ]
}

/// Asks everything of the program, and gives each reply with its head.
async fn replies(backend: &Backend, dir: &std::path::Path, flags: &[&str]) -> Vec<(Vec<String>, Vec<u8>)> {
    let url = format!("http://{}/v1", backend.address);
    let served = Served::start(dir, &[&["--upstream", &url, "--run", "r"], flags].concat()).await;
    let mut replies = Vec::new();
    for (path, body) in questions() {
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", path, body.to_string().as_bytes(), "Connection: close\r\n")).await;
        let reply = client.reply().await;
        let mut head: Vec<String> = reply.head.to_lowercase().lines().map(str::to_owned).collect();
        head.retain(|line| !line.starts_with("date:"));
        head.sort();
        replies.push((head, reply.body.clone()));
    }
    served.stop().await;
    replies
}

fn last_attempts(dir: &std::path::Path) -> Vec<(String, Attempt)> {
    let recording = aegis::recording::read(&dir.join("logs/r")).expect("a recording");
    let steps = recording.trajectory.steps.into_iter();
    steps.map(|step| (step.surface.clone(), step.attempts.last().expect("an attempt").clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_sees_what_it_would_have_seen_and_the_record_keeps_what_came() {
    for style in [Style::Null, Style::Absent] {
        let (plain, asking) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let backend = Backend::start(style).await;
        let without = replies(&backend, plain.path(), &[]).await;
        let before = backend.asked().len();
        let with = replies(&backend, asking.path(), &["--ask-logprobs"]).await;
        for (number, (with, without)) in with.iter().zip(&without).enumerate() {
            let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
            assert_eq!(text(&with.1), text(&without.1), "{style:?} {number}");
            assert_eq!(with.0, without.0, "{style:?} {number}: heads");
        }
        let asked = backend.asked().split_off(before);
        assert_eq!(asked[0]["logprobs"], true);
        assert_eq!(asked[2]["logprobs"], 1);
        assert_eq!(asked[3]["include"], json!(["message.output_text.logprobs"]));
        for (number, (name, attempt)) in last_attempts(asking.path()).into_iter().enumerate() {
            let surface = surface::ALL.iter().find(|surface| surface.name() == name).expect("known");
            assert_eq!(attempt.delivered(), without[number].1.as_slice(), "{style:?} {number}");
            assert!(attempt.reply_delivered.is_none() && attempt.exact, "nothing was edited");
            // Of what the client asked itself, nothing was taken out.
            let said = attempt.reply_with_logprobs.as_ref().unwrap_or(&attempt.reply);
            assert_eq!(attempt.reply_with_logprobs.is_some(), number != 5, "{style:?} {number}");
            let logprobs = surface.logprobs(said, attempt.streamed);
            let expected: &[f64] = if number == 2 { &[-0.5] } else { &[-0.25, -1.5, -0.125] };
            assert_eq!(logprobs, expected, "{style:?} {number}");
        }
        // The recording replays, and tells nothing of it to whoever asks again.
        assert!(last_attempts(plain.path()).iter().all(|(_, attempt)| attempt.reply_with_logprobs.is_none()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_refuses_is_asked_again_without_once() {
    let (plain, asking) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let backend = Backend::start(Style::GateCheck).await;
    let without = replies(&backend, plain.path(), &[]).await;
    let before = backend.asked().len();
    let with = replies(&backend, asking.path(), &["--ask-logprobs"]).await;
    assert_eq!(with, without);
    // Each of three APIs refuses once, is asked again at once, and is left alone then.
    assert_eq!(backend.asked().len() - before, questions().len() + 3);
    let log = std::fs::read_to_string(asking.path().join("talk.txt")).expect("talk");
    assert_eq!(log.matches("refused to be asked for log-probabilities (status 400)").count(), 3, "{log}");
    // What was wrong with the request itself is told as it is.
    let dead = Scripted::always(vec![Act::Say(
        b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".to_vec(),
    )])
    .await;
    let other = tempfile::tempdir().expect("a directory");
    let served = Served::start(
        other.path(),
        &["--upstream", &format!("http://{}", dead.address), "--run", "r", "--ask-logprobs"],
    )
    .await;
    for tries in 1..3 {
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", CHAT, questions()[0].1.to_string().as_bytes(), "Connection: close\r\n")).await;
        assert_eq!(client.reply().await.status, 400);
        assert_eq!(dead.requests.lock().expect("unpoisoned").len(), 2 * tries, "asked again without, each time");
    }
}

/// As a user: a run is recorded with the question, and the method reads the answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_least_sure_step_of_a_run_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let backend = Backend::start(Style::Null).await;
    let url = format!("http://{}/v1", backend.address);
    let run = |name: &'static str, flags: &[&'static str]| -> Vec<String> {
        let run = ["run", "--upstream", &url, "--run", name, "--check", "false"];
        let program = ["--", AEGIS, "example", "pipeline", "--task", "How many pencils are left?"];
        [&run[..], flags, &program[..]].concat().into_iter().map(str::to_owned).collect()
    };
    let asked = run("asked", &["--ask-logprobs"]);
    let (code, _, talk) = verb(dir.path(), &asked.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(code, Some(1), "{talk}");
    let (code, out, talk) = verb(dir.path(), &["attribute", "logs/asked", "--method", "confidence"]).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(out.contains("at step 0") && out.contains("its 3 tokens have 0.625 nats of doubt in the mean"), "{out}");
    let plain = run("plain", &[]);
    let (code, _, talk) = verb(dir.path(), &plain.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(code, Some(1), "{talk}");
    let (code, out, _) = verb(dir.path(), &["attribute", "logs/plain", "--method", "confidence"]).await;
    assert!(code == Some(1) && out.contains("no prediction: inapplicable") && out.contains("--ask-logprobs"), "{out}");
}
