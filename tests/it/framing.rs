//! What a proxy must refuse although its HTTP library would read on: one accepted request is one request upstream.

use std::time::Duration;

use aegis::proxy::Limits;
use tokio::task::JoinSet;

use crate::{
    lab::{Lab, Reply, Setup, chat, request, within},
    scripted::{Act, Scripted, chat_reply, http},
};

const H: &str = "Host: 127.0.0.1\r\n";
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

fn quick() -> Setup {
    // A payload that never completes must not hold up the test.
    let wait = Duration::from_millis(400);
    Setup { limits: Limits { head_timeout: wait, body_timeout: wait, ..Limits::default() }, ..Setup::default() }
}

async fn ok() -> Scripted {
    Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await
}

/// Payloads that must be refused with a 4xx, and reach nobody.
fn refused() -> Vec<(&'static str, String)> {
    let post = "POST /v1/chat/completions HTTP/1.1\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    let end = "5\r\nhello\r\n0\r\n\r\n";
    vec![
        // The eight shapes that hyper reads on.
        ("length and coding", format!("{post}{H}Content-Length: 5\r\n{chunked}\r\n{end}")),
        ("coding and length", format!("{post}{H}{chunked}Content-Length: 5\r\n\r\n{end}")),
        ("equal lengths twice", format!("{post}{H}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello")),
        ("coding twice", format!("{post}{H}{chunked}{chunked}\r\n{end}")),
        ("bare line feeds in the head", format!("{post}Host: 127.0.0.1\nContent-Length: 5\r\n\r\nhello")),
        ("nothing but bare line feeds", "GET / HTTP/1.1\nHost: 127.0.0.1\n\n".to_owned()),
        ("two hosts", format!("GET /v1/models HTTP/1.1\r\n{H}{H}\r\n")),
        ("two different hosts", format!("GET /v1/models HTTP/1.1\r\n{H}Host: localhost\r\n\r\n")),
        ("no host", "GET /v1/models HTTP/1.1\r\n\r\n".to_owned()),
        ("absolute target", format!("GET http://127.0.0.1:1/v1/models HTTP/1.1\r\n{H}\r\n")),
        ("CONNECT", format!("CONNECT 127.0.0.1:1 HTTP/1.1\r\n{H}\r\n")),
        // Lengths.
        ("different lengths", format!("{post}{H}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello")),
        ("a list of lengths", format!("{post}{H}Content-Length: 5, 5\r\n\r\nhello")),
        ("a signed length", format!("{post}{H}Content-Length: +5\r\n\r\nhello")),
        ("a negative length", format!("{post}{H}Content-Length: -5\r\n\r\nhello")),
        ("a hexadecimal length", format!("{post}{H}Content-Length: 0x5\r\n\r\nhello")),
        ("an empty length", format!("{post}{H}Content-Length: \r\n\r\nhello")),
        ("a length past 64 bits", format!("{post}{H}Content-Length: 18446744073709551621\r\n\r\nhello")),
        // Codings.
        ("an unknown coding", format!("{post}{H}Transfer-Encoding: xchunked\r\n\r\n{end}")),
        ("chunked is not last", format!("{post}{H}Transfer-Encoding: chunked, identity\r\n\r\n{end}")),
        ("two codings", format!("{post}{H}Transfer-Encoding: gzip, chunked\r\n\r\n{end}")),
        ("a vertical tab before the coding", format!("{post}{H}Transfer-Encoding:\u{b}chunked\r\n\r\n{end}")),
        ("a blank before the colon", format!("{post}{H}Transfer-Encoding : chunked\r\n\r\n{end}")),
        ("a folded line", format!("{post}{H}X: a\r\n Transfer-Encoding: chunked\r\n\r\n")),
        ("a quoted coding", format!("{post}{H}Transfer-Encoding: \"chunked\"\r\n\r\n{end}")),
        // Chunks.
        ("a prefixed chunk size", format!("{post}{H}{chunked}\r\n0x5\r\nhello\r\n0\r\n\r\n")),
        ("a negative chunk size", format!("{post}{H}{chunked}\r\n-5\r\nhello\r\n0\r\n\r\n")),
        ("a chunk size past 64 bits", format!("{post}{H}{chunked}\r\nFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n")),
        ("a chunk line without carriage return", format!("{post}{H}{chunked}\r\n5\nhello\r\n0\r\n\r\n")),
        ("an endless chunk line", format!("{post}{H}{chunked}\r\n5;{}", "x".repeat(9000))),
        // Heads.
        ("a zero byte in a value", format!("GET /v1/models HTTP/1.1\r\n{H}X: a\0b\r\n\r\n")),
        ("a carriage return in a value", format!("GET /v1/models HTTP/1.1\r\n{H}X: a\rb: c\r\n\r\n")),
        ("a zero byte in the target", format!("GET /v1/mod\0els HTTP/1.1\r\n{H}\r\n")),
        ("a blank in the target", format!("GET /v1/models /x HTTP/1.1\r\n{H}\r\n")),
        ("no colon", format!("GET /v1/models HTTP/1.1\r\n{H}Nonsense\r\n\r\n")),
        ("an empty name", format!("GET /v1/models HTTP/1.1\r\n{H}: x\r\n\r\n")),
        ("a bracket in a name", format!("GET /v1/models HTTP/1.1\r\n{H}X[y: z\r\n\r\n")),
        ("HTTP/2.0", format!("GET /v1/models HTTP/2.0\r\n{H}\r\n")),
        ("HTTP/0.9", "GET /v1/models\r\n\r\n".to_owned()),
        ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        ("a blank before the method", format!(" GET /v1/models HTTP/1.1\r\n{H}\r\n")),
        ("a greeting of TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}\r\n\r\n".to_owned()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_framing_is_refused_and_reaches_nobody() {
    let mut cases = JoinSet::new();
    for (name, payload) in refused() {
        cases.spawn(async move {
            let upstream = ok().await;
            let lab = Lab::before(upstream.address, quick()).await;
            let reply = Reply::parse(&lab.raw(format!("{payload}{SMUGGLED}").as_bytes()).await);
            assert!((400..500).contains(&reply.status), "{name}: {} {:?}", reply.status, reply.head);
            assert_eq!(upstream.count(), 0, "{name}: {:?}", upstream.heads());
            lab.post("/v1/chat/completions", &chat("still there")).await.whole.then_some(()).expect(name);
        });
    }
    while let Some(case) = cases.join_next().await {
        case.expect("the case holds");
    }
}

/// What may pass, passes as exactly one request, framed anew.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_accepted_is_one_request_upstream() {
    let post = "POST /v1/chat/completions HTTP/1.1\r\n";
    let body = r#"{"messages":[]}"#;
    let length = body.len();
    for (name, payload) in [
        ("blank lines first", format!("\r\n\r\n{post}{H}Content-Length: {length}\r\n\r\n{body}")),
        (
            "the length is named hop by hop",
            format!("{post}{H}Connection: content-length\r\nContent-Length: {length}\r\n\r\n{body}"),
        ),
        (
            "the host is named hop by hop",
            format!("{post}{H}Connection: host\r\nContent-Length: {length}\r\n\r\n{body}"),
        ),
        (
            "a chunk extension",
            format!("{post}{H}Transfer-Encoding: Chunked\r\n\r\n{length:x};a=b\r\n{body}\r\n0\r\n\r\n"),
        ),
        (
            "a length in a trailer",
            format!(
                "{post}{H}Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n{length:x}\r\n{body}\r\n0\r\nContent-Length: 99\r\n\r\n"
            ),
        ),
        ("an expectation", format!("{post}{H}Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n{body}")),
        ("a request within the body", format!("{post}{H}Content-Length: {}\r\n\r\n{SMUGGLED}", SMUGGLED.len())),
        (
            "an upgrade",
            format!("{post}{H}Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: {length}\r\n\r\n{body}"),
        ),
    ] {
        let upstream = ok().await;
        let lab = Lab::before(upstream.address, quick()).await;
        let raw = lab.raw(payload.as_bytes()).await;
        let raw = raw.strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(&raw);
        assert_eq!(Reply::parse(raw).status, 200, "{name}: {}", String::from_utf8_lossy(raw));
        assert_eq!(upstream.count(), 1, "{name}: {:?}", upstream.heads());
        let sent = upstream.requests.lock().expect("lock")[0].clone();
        let head = upstream.heads()[0].to_lowercase();
        let expected: &[u8] = if name == "a request within the body" { SMUGGLED.as_bytes() } else { body.as_bytes() };
        assert!(sent.ends_with(expected), "{name}: {}", String::from_utf8_lossy(&sent));
        assert_eq!(head.matches("content-length:").count(), 1, "{name}: {head}");
        assert!(head.contains(&format!("host: {}\r\n", upstream.address)), "{name}: {head}");
        for gone in ["transfer-encoding", "upgrade", "expect", "trailer", "connection: upgrade"] {
            assert!(!head.contains(gone), "{name}: {head}");
        }
    }
}

/// After the offer of a protocol switch that nobody took up, the gate still stands.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_does_not_open_the_gate() {
    let upstream = ok().await;
    let lab = Lab::before(upstream.address, quick()).await;
    let mut client = lab.client().await;
    client.send(format!("GET /v1/models HTTP/1.1\r\n{H}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n").as_bytes()).await;
    assert!(client.read_until(b"usage").await);
    let hostile =
        format!("POST /v1/files HTTP/1.1\r\n{H}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    client.send(format!("{hostile}{SMUGGLED}").as_bytes()).await;
    client.rest().await;
    assert_eq!(upstream.count(), 1, "{:?}", upstream.heads());
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_order() {
    let script = ["one", "two", "three"].map(|text| vec![http("200 OK", "application/json", &chat_reply(text))]);
    let upstream = Scripted::start(script.to_vec()).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let requests = [
        request("POST", "/v1/chat/completions", &chat("a"), ""),
        request("GET", "/v1/models", b"", ""),
        request("POST", "/v1/chat/completions", &chat("b"), "Connection: close\r\n"),
    ];
    let raw = String::from_utf8(lab.raw(&requests.concat()).await).expect("utf-8");
    let at: Vec<_> = ["\"one\"", "\"two\"", "\"three\""].iter().map(|text| raw.find(text)).collect();
    assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{at:?} {raw}");
    assert_eq!(upstream.bodies(), [chat("a"), Vec::new(), chat("b")]);
}

/// A hostile request behind a good one does not reach the upstream, and what the good one is told stays whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_request_does_not_spoil_the_reply_before_it() {
    let upstream = Scripted::always(vec![Act::Gate, http("200 OK", "application/json", &chat_reply("whole"))]).await;
    let lab = Lab::before(upstream.address, quick()).await;
    let mut client = lab.client().await;
    client.post("/v1/chat/completions", &chat("good")).await;
    crate::lab::until("the request arrives", || upstream.count() == 1).await;
    client.send(format!("GET /x HTTP/1.1\r\n{H}{H}\r\n").as_bytes()).await;
    upstream.open_gate();
    within(client.rest()).await;
    let seen = String::from_utf8_lossy(&client.seen).into_owned();
    // The reply comes whole or not at all; a refusal in its middle would be taken for a part of it.
    assert!(seen.is_empty() || Reply::parse(seen.as_bytes()).json()["object"] == "chat.completion", "{seen}");
    assert_eq!(upstream.count(), 1);
}
