//! What a token allows: so many requests in a minute, bodies of such a length.

use serde_json::json;

use crate::{
    lab::{Client, chat, request},
    program::{Served, verb},
    run_ends,
    scripted::{Scripted, chat_reply, http},
    tokens::{ask, reload, send, token},
};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test(flavor = "multi_thread")]
async fn one_request_more_than_a_minute_may_hold_waits_for_its_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["token", "alice", "--file", "tokens.toml", "--requests-per-minute", "4"];
    let (code, out, talk) = verb(dir.path(), &arguments).await;
    assert_eq!(code, Some(0), "{talk}");
    let alice = out.lines().next().expect("a token").to_owned();
    let bob = token(dir.path(), "bob").await;
    let served = run_ends::serve(dir.path(), &["--upstream", "simulator", "--tokens", "tokens.toml"]).await;
    // What is refused before it comes in counts for nobody, and health for nobody either.
    send(&served, "POST", CHAT, "x-aegis-token: wrong\r\n", &chat("Hi?")).await.assert_own_error(401, "no_token");
    assert_eq!(send(&served, "GET", "/healthz", &format!("x-aegis-token: {alice}\r\n"), b"").await.status, 200);
    for run in ["one", "two", "one"] {
        assert_eq!(ask(&served, &alice, &format!("/r/{run}"), "Hi?").await.status, 200);
    }
    let control = async |token: &str| {
        let mut client = Client::connect(served.control.expect("a control listener")).await;
        let headers = format!("authorization: Bearer {token}\r\nconnection: close\r\n");
        client.send(&request("GET", "/aegis/v1/runs", b"", &headers)).await;
        client.reply().await
    };
    assert_eq!(control(&alice).await.status, 200);
    let refused = ask(&served, &alice, "/r/three", "Hi?").await;
    refused.assert_own_error(429, "too_many_requests");
    let wait: u64 = refused.header("retry-after").expect("a time").parse().expect("seconds");
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(refused.text().contains("4 requests in a minute"), "{}", refused.text());
    // In the words of the API that was called, whatever stands before its path.
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi?"}]}).to_string();
    let path = format!("/t/{alice}/r/three/a/solver/v1/messages");
    let refused = send(&served, "POST", &path, "", body.as_bytes()).await;
    assert_eq!((refused.status, &refused.json()["type"]), (429, &json!("error")), "{}", refused.text());
    assert_eq!(refused.header("x-aegis-error").as_deref(), Some("too_many_requests"));
    let refused = control(&alice).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (429, &json!("too_many_requests")));
    assert!(refused.header("retry-after").is_some());
    for _ in 0..6 {
        assert_eq!(ask(&served, &bob, "/r/one", "Hi?").await.status, 200, "another user is not limited by it");
    }
    assert!(!dir.path().join("logs/@alice/three").exists(), "nothing was opened");
    // A reload gives nobody a new minute, but another limit.
    reload(&served, "reloaded  plan").await;
    ask(&served, &alice, "/r/one", "Hi?").await.assert_own_error(429, "too_many_requests");
    let file = dir.path().join("tokens.toml");
    let text = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, text.replace("requests_per_minute = 4", "requests_per_minute = 5")).expect("written");
    reload(&served, "reloaded  plan").await;
    assert_eq!(ask(&served, &alice, "/r/one", "Hi?").await.status, 200);
    ask(&served, &alice, "/r/one", "Hi?").await.assert_own_error(429, "too_many_requests");
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_no_longer_than_its_token_allows() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["token", "alice", "--file", "tokens.toml", "--max-body-bytes", "1000"];
    let (_, out, _) = verb(dir.path(), &arguments).await;
    let alice = out.lines().next().expect("a token").to_owned();
    let bob = token(dir.path(), "bob").await;
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("hi"))]).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--log-dir", "logs", "--tokens", "tokens.toml"];
    let served = Served::start(dir.path(), &arguments).await;
    let long = chat(&"x".repeat(2000));
    for path in [CHAT, "/v1/moderations", "/v1/files", "/upload"] {
        let path = format!("/t/{alice}/r/one{path}");
        let refused = send(&served, "POST", &path, "", &long).await;
        refused.assert_own_error(413, "body_too_large");
        assert!(refused.text().contains("1000 bytes that your token allows"), "{}", refused.text());
        // Of one that does not say how long it is, too.
        let mut client = Client::connect(served.address).await;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        client.send(head.as_bytes()).await;
        for piece in long.chunks(500) {
            client.send(format!("{:x}\r\n", piece.len()).as_bytes()).await;
            client.send(&[piece, b"\r\n"].concat()).await;
        }
        client.send(b"0\r\n\r\n").await;
        let refused = client.reply().await;
        refused.assert_own_error(413, "body_too_large");
    }
    assert_eq!(ask(&served, &alice, "/r/one", "Short.").await.status, 200);
    assert_eq!(send(&served, "POST", &format!("/t/{bob}/r/one{CHAT}"), "", &long).await.status, 200);
    assert_eq!(served.stop().await, Some(0));
}
