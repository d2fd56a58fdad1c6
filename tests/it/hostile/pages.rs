//! A web page that is open in a browser on this machine.

use aegis::proxy::{Gate, serve_control};
use serde_json::json;

use crate::{
    lab::{Client, Lab, Reply, Setup, chat, request, within},
    program::Served,
    scripted::{Scripted, chat_reply, http},
};

const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// What browsers say of requests that a page of another site makes.
const PAGES: [&str; 5] = [
    "Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n",
    "Origin: null\r\n",
    "Origin: http://127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n",
    "Sec-Fetch-Site: cross-site\r\n",
    "Sec-Fetch-Site: same-site\r\n",
];

async fn upstream() -> Scripted {
    Scripted::always(vec![http("200 OK", "application/json", &chat_reply("hi"))]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_opens_a_run_or_reaches_the_upstream() {
    let upstream = upstream().await;
    let lab = Lab::before(upstream.address, Setup { key: Some("sk-theirs"), ..Setup::default() }).await;
    for page in PAGES {
        for (method, path, more) in [
            ("POST", "/r/poisoned/v1/chat/completions", "Content-Type: text/plain\r\n"),
            ("GET", "/r/poisoned/v1/models", ""),
            ("DELETE", "/v1/responses/resp_1", ""),
            ("OPTIONS", "/v1/chat/completions", "Access-Control-Request-Method: POST\r\n"),
            ("GET", "/r/poisoned/v1/realtime", HANDSHAKE),
        ] {
            let closing = if more == HANDSHAKE { "" } else { "Connection: close\r\n" };
            let body = if method == "POST" { chat("hi") } else { Vec::new() };
            let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{closing}{page}{more}");
            let sent = if body.is_empty() {
                format!("{head}\r\n").into_bytes()
            } else {
                [format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat()
            };
            let mut client = lab.client().await;
            client.send(&sent).await;
            assert!(client.read_until(b"\r\n\r\n").await, "{method} {path}");
            let head = String::from_utf8_lossy(&client.seen).to_lowercase();
            assert!(head.starts_with("http/1.1 403"), "{method} {path} {page}: {head}");
            assert!(head.contains("x-aegis-error: web_page"), "{head}");
        }
    }
    let reply = lab.post_with("/v1/chat/completions", &chat("hi"), PAGES[0]).await;
    reply.assert_own_error(403, "web_page");
    assert!(reply.text().contains("allowed_origins"), "it says what to type: {}", reply.text());
    assert!(upstream.heads().is_empty(), "{:?}", upstream.heads());
    assert!(!lab.logs.exists(), "no run was opened");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_and_named_pages_are_let_in() {
    let upstream = upstream().await;
    let gate = Gate { origins: vec!["http://localhost:3000".to_owned()], ..Gate::default() };
    let lab = Lab::before(upstream.address, Setup { gate, ..Setup::default() }).await;
    for headers in [
        "",
        // As Node's own `fetch` sends it.
        "Sec-Fetch-Mode: cors\r\nAccept-Language: *\r\n",
        "Origin: http://localhost:3000\r\nSec-Fetch-Site: cross-site\r\n",
    ] {
        assert_eq!(lab.post_with("/v1/chat/completions", &chat("hi"), headers).await.status, 200, "{headers}");
    }
    lab.post_with("/v1/chat/completions", &chat("hi"), PAGES[0]).await.assert_own_error(403, "web_page");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_listener_has_the_same_gate() {
    let upstream = upstream().await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    assert_eq!(lab.post("/v1/chat/completions", &chat("hi")).await.status, 200);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("an address");
    let proxy = std::sync::Arc::clone(&lab.proxy);
    tokio::spawn(async move { serve_control(proxy, listener, "open-sesame", std::future::pending()).await });
    let body = json!({"run": "r0", "verdict": "failure"}).to_string();
    let report = async |host: &str, headers: &str| {
        let sent = request(
            "POST",
            "/outcome",
            body.as_bytes(),
            &format!("Connection: close\r\nAuthorization: Bearer open-sesame\r\n{headers}"),
        );
        let sent = String::from_utf8(sent).expect("text").replace("Host: 127.0.0.1", &format!("Host: {host}"));
        let mut client = Client::connect(address).await;
        client.send(sent.as_bytes()).await;
        client.reply().await
    };
    for page in PAGES {
        report("127.0.0.1", page).await.assert_own_error(403, "web_page");
    }
    report("evil.example", "").await.assert_own_error(421, "unknown_host");
    assert_eq!(report("localhost:1", "").await.status, 200);
    let recording = lab.sealed("r0").await;
    assert_eq!(recording.manifest.outcome.verdict, aegis::trajectory::Verdict::Failure);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reward_listener_has_the_same_gate() {
    let dir = tempfile::tempdir().expect("a directory");
    let served = Served::start_verb("reward", dir.path()).await;
    for (host, headers, status) in
        [("127.0.0.1", PAGES[0], 403), ("127.0.0.1", PAGES[3], 403), ("evil.example", "", 421), ("localhost", "", 200)]
    {
        let sent = request("POST", "/rewards", br#"{"rows":[]}"#, &format!("Connection: close\r\n{headers}"));
        let sent = String::from_utf8(sent).expect("text").replace("Host: 127.0.0.1", &format!("Host: {host}"));
        let mut client = Client::connect(served.address).await;
        client.send(sent.as_bytes()).await;
        within(client.rest()).await;
        assert_eq!(Reply::parse(&client.seen).status, status, "{host} {headers}");
    }
}
