//! What was found from outside: replies that forge, bodies that stall, files that are none.

use std::time::Duration;

use aegis::{proxy::Limits, trajectory::CloseCause};
use nix::{sys::signal::Signal, sys::stat::Mode, unistd::mkfifo};

use crate::{
    lab::{Client, Lab, Setup, chat, request},
    program::{Served, verb},
    scripted::{Act, Scripted, chat_reply, http},
};

fn said(head: &str, body: &str) -> Vec<Act> {
    vec![
        Act::Say(format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{head}\r\n{body}").into_bytes()),
        Act::Close,
    ]
}

/// Whoever believes the length takes a part for the whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_with_two_lengths_is_refused() {
    let chunked = format!("100\r\n{}\r\n0\r\n\r\n", "x".repeat(256));
    let upstream = Scripted::always(said("content-length: 10\r\ntransfer-encoding: chunked\r\n", &chunked)).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    for path in ["/v1/chat/completions", "/v1/files"] {
        lab.post(path, &chat("x")).await.assert_own_error(502, "upstream_framing");
    }
    // A call that no surface reads is a step too, and ended in the same way.
    assert_eq!(lab.causes("r0"), [Some(CloseCause::UpstreamReset); 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mark_of_our_own_errors_cannot_be_forged() {
    let body = chat_reply("x");
    let head = format!("x-aegis-error: run_sealed\r\ncontent-length: {}\r\n", body.len());
    let upstream = Scripted::always(said(&head, &body)).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    for path in ["/v1/chat/completions", "/v1/models"] {
        let reply = lab.post(path, &chat("x")).await;
        assert_eq!((reply.status, reply.header("x-aegis-error"), reply.text()), (200, None, body.clone()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_stalls_is_given_up() {
    let upstream = Scripted::always(vec![Act::Hang]).await;
    let limits = Limits { body_timeout: Duration::from_millis(300), ..Setup::default().limits };
    let lab = Lab::before(upstream.address, Setup { limits, ..Setup::default() }).await;
    for path in ["/v1/files", "/v1/chat/completions"] {
        let mut client = lab.client().await;
        let whole = request("POST", path, &[b'x'; 100], "Connection: close\r\n");
        client.send(&whole[..whole.len() - 50]).await;
        client.reply().await.assert_own_error(408, "body_timeout");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn older_and_longer_requests_are_answered() {
    let reply = chat_reply("x");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &reply)]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let body = String::from_utf8(chat("x")).expect("text");
    let older = format!("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let seen = lab.raw(older.as_bytes()).await;
    assert!(String::from_utf8_lossy(&seen).ends_with(&reply), "{}", String::from_utf8_lossy(&seen));
    let long = format!("/v1/models?{}", "x".repeat(70_000));
    let refused = lab.post(&long, b"{}").await;
    assert_eq!((refused.status, refused.header("x-aegis-error").as_deref()), (414, Some("target_too_long")));
}

/// An edit that makes more of a body than would be read is none, however many come together.
#[tokio::test(flavor = "multi_thread")]
async fn edits_have_the_bounds_of_bodies() {
    let reply = chat_reply(&"a".repeat(1000));
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &reply)]).await;
    let grow = |side: &str| {
        format!(
            "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\nside = \"{side}\"\n\
             manipulator.replace_text = {{ find = \"a\", with = \"aaaaaaaa\" }}\n\n"
        )
    };
    let plan = format!("format = 1\nseed = 7\n{}{}", grow("response").repeat(4), grow("request").repeat(6));
    let mut setup = Setup::planned(&plan);
    setup.limits.max_body_bytes = 100_000;
    let mut lab = Lab::before(upstream.address, setup).await;
    let reply = lab.post("/r/r0/a/solver/v1/chat/completions", &chat("a")).await;
    assert_eq!(reply.status, 200);
    assert!(reply.body.len() < 100_000, "{}", reply.body.len());
    assert!(upstream.bodies().iter().all(|body| body.len() < 100_000));
    let recording = lab.sealed("r0").await;
    assert!(recording.label.is_none(), "an edit that could not be made leaves no label");
}

/// A pipe in the place of a file would be waited for.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_stops_its_run_alone() {
    for name in ["log.jsonl", "run.json", "lock", "seal.json"] {
        let dir = tempfile::tempdir().expect("a directory");
        let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("x"))]).await;
        let run = dir.path().join("logs/piped");
        std::fs::create_dir_all(&run).expect("made");
        mkfifo(&run.join(name), Mode::S_IRWXU).expect("a pipe");
        let url = format!("http://{}", upstream.address);
        let served = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs"]).await;
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", "/r/piped/v1/chat/completions", &chat("x"), "Connection: close\r\n")).await;
        let refused = client.reply().await;
        assert!(refused.status == 503 || refused.status == 409, "{name}: {} {}", refused.status, refused.text());
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", "/r/other/v1/chat/completions", &chat("x"), "Connection: close\r\n")).await;
        assert_eq!(client.reply().await.status, 200, "{name}");
        assert_eq!(served.stop().await, Some(0), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_log_is_said_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("x"))]).await;
    let url = format!("http://{}", upstream.address);
    let served = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs", "--run", "r"]).await;
    let post = async || {
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", "/v1/chat/completions", &chat("x"), "Connection: close\r\n")).await;
        client.reply().await
    };
    assert_eq!(post().await.status, 200);
    std::fs::remove_dir_all(dir.path().join("logs")).expect("deleted");
    post().await.assert_own_error(503, "recording_failed");
    post().await.assert_own_error(503, "recording_failed");
    assert_eq!(served.stop().await, Some(5));
}

/// A run whose writer was killed is ended by hand, and said to be.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_is_sealed_by_hand() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("x"))]).await;
    let url = format!("http://{}", upstream.address);
    let mut served = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs", "--run", "r"]).await;
    let mut client = Client::connect(served.address).await;
    client.send(&request("POST", "/v1/chat/completions", &chat("x"), "Connection: close\r\n")).await;
    assert_eq!(client.reply().await.status, 200);
    let (code, _, said) = verb(dir.path(), &["repair", "logs/r", "--seal"]).await;
    assert_ne!(code, Some(0), "it is being written: {said}");
    served.signal(Signal::SIGKILL);
    served.ended().await;
    let (_, shown, _) = verb(dir.path(), &["show", "logs/r"]).await;
    assert!(shown.contains("aegis runs end logs/r"), "{shown}");
    for _ in 0..2 {
        let (code, said, error) = verb(dir.path(), &["repair", "logs/r", "--seal"]).await;
        assert_eq!(code, Some(0), "{said}{error}");
        let recording = aegis::recording::read(&dir.path().join("logs/r")).expect("a recording");
        assert!(recording.sealed && recording.trajectory.steps.len() == 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_an_address_and_a_proxy_variable_is_spoken_of() {
    let dir = tempfile::tempdir().expect("a directory");
    let serve = |variable: &str, url: &str| {
        let mut command = crate::program::aegis(dir.path());
        command.env(variable, "http://127.0.0.1:9").args(["run", "--log-dir", "logs", "--upstream", url, "--", "true"]);
        command
    };
    for (variable, url, told) in [
        ("https_proxy", "https://example.invalid/v1", true),
        ("ALL_PROXY", "http://example.invalid/v1", true),
        ("https_proxy", "http://example.invalid/v1", false),
        ("HTTP_PROXY", "http://127.0.0.1:1/v1", false),
    ] {
        let ran = serve(variable, url).output().await.expect("it ran");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(said.contains(&format!("{variable} is set and not followed")), told, "{variable} {url}: {said}");
    }
    let arguments = ["serve", "--listen", "localhost:0", "--upstream", "simulator", "--log-dir", "logs"];
    let mut served = crate::program::aegis(dir.path());
    let mut served = served.args(arguments).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let mut lines = tokio::io::BufReader::new(served.stdout.take().expect("piped"));
    let mut line = String::new();
    crate::lab::within(tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut line)).await.expect("a line");
    assert!(line.contains("\"listen\":"), "{line}");
}
