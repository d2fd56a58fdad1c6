//! Bounds hold: slow clients lose their place, one exchange too many is told to come back, what is too large is
//! refused before it is read.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use aegis::proxy::Limits;
use tokio::task::JoinSet;

use crate::{
    lab::{Lab, Setup, chat, request, until},
    scripted::{Act, Scripted, chat_reply, chunk, delta, http, last_chunk, stream_head},
};

fn limited(limits: Limits) -> Setup {
    Setup { limits, ..Setup::default() }
}

async fn ok() -> Scripted {
    Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await
}

/// F10.
#[tokio::test(flavor = "multi_thread")]
async fn slow_senders_lose_their_place_and_others_notice_nothing() {
    let upstream = ok().await;
    let wait = Duration::from_secs(1);
    let limits = Limits { head_timeout: wait, body_timeout: wait, max_connections: 40, ..Limits::default() };
    let lab = Lab::before(upstream.address, limited(limits)).await;
    let half_body = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"mess";
    let half_chunk =
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe";
    let whole = request("GET", "/v1/models", b"", "");
    let mut slow = JoinSet::new();
    for (name, bytes) in [
        ("no bytes", &b""[..]),
        ("half a head", b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc"),
        ("half a body", half_body),
        ("half a chunk", half_chunk),
        ("idle after a reply", &whole),
    ] {
        for _ in 0..5 {
            let (mut client, bytes) = (lab.client().await, bytes.to_vec());
            slow.spawn(async move {
                client.send(&bytes).await;
                let start = Instant::now();
                client.rest().await;
                (name, start.elapsed(), client.seen)
            });
        }
    }
    for _ in 0..10 {
        assert_eq!(lab.post("/v1/chat/completions", &chat("normal")).await.status, 200);
    }
    while let Some(ended) = slow.join_next().await {
        let (name, after, seen) = ended.expect("no panic");
        assert!(after < wait + Duration::from_millis(500), "{name}: closed after {after:?}");
        assert!(after > wait / 2, "{name}: closed after {after:?}");
        if name.starts_with("half a body") {
            assert!(seen.starts_with(b"HTTP/1.1 408"), "{name}: {}", String::from_utf8_lossy(&seen));
        }
    }
}

/// L4.
#[tokio::test(flavor = "multi_thread")]
async fn one_stream_too_many_is_told_to_come_back() {
    let mut script = vec![stream_head(), chunk(delta("first")), Act::Gate];
    script.extend([chunk("data: [DONE]\n\n"), last_chunk()]);
    let upstream = Scripted::always(script).await;
    let lab = Lab::before(upstream.address, limited(Limits { max_streams: 50, ..Limits::default() })).await;
    let mut waiting = JoinSet::new();
    for number in 0..80 {
        let mut client = lab.client().await;
        waiting.spawn(async move {
            let body = chat(&format!("call {number}"));
            client.send(&request("POST", "/v1/chat/completions", &body, "Connection: close\r\n")).await;
            assert!(client.read_until(b"\r\n\r\n").await, "an answer");
            client
        });
    }
    let clients = waiting.join_all().await;
    upstream.open_gate();
    let (mut served, mut refused) = (0, 0);
    for mut client in clients {
        let reply = client.reply().await;
        if reply.status == 200 {
            assert!(reply.whole && reply.text().ends_with("data: [DONE]\n\n"), "{}", reply.text());
            served += 1;
        } else {
            reply.assert_own_error(503, "busy");
            assert_eq!(reply.header("retry-after").as_deref(), Some("1"));
            refused += 1;
        }
    }
    assert_eq!((served, refused), (50, 30));
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 50);
    // The places are free again.
    assert_eq!(lab.post("/v1/chat/completions", &chat("later")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_past_the_limit_wait_for_a_place() {
    let upstream = ok().await;
    let lab = Lab::before(upstream.address, limited(Limits { max_connections: 2, ..Limits::default() })).await;
    let idle = [lab.client().await, lab.client().await];
    for client in &idle {
        assert!(client.stream.peer_addr().is_ok());
    }
    let mut third = lab.client().await;
    third.send(&request("POST", "/v1/chat/completions", &chat("late"), "Connection: close\r\n")).await;
    drop(idle);
    assert_eq!(third.reply().await.status, 200);
}

/// Whoever has got a place is answered, however many wait for it: nobody is sent away between coming and asking.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_request_is_answered_where_places_are_wanted() {
    let upstream = ok().await;
    let lab = Lab::before(upstream.address, limited(Limits { max_connections: 1, ..Limits::default() })).await;
    for _ in 0..200 {
        let mut client = lab.client().await;
        client.send(&request("POST", "/v1/chat/completions", &chat("now"), "Connection: close\r\n")).await;
        assert_eq!(client.reply().await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let upstream = ok().await;
    let lab = Lab::before(upstream.address, limited(Limits { max_body_bytes: 1 << 20, ..Limits::default() })).await;
    // The length alone tells; no byte of the body was sent.
    let head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1048577\r\n\r\n";
    let mut client = lab.client().await;
    client.send(head).await;
    client.reply().await.assert_own_error(413, "body_too_large");
    // Without a length, the first byte past the limit tells.
    let mut client = lab.client().await;
    client
        .send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    let piece = [&b"10000\r\n"[..], &vec![b'x'; 0x10000], b"\r\n"].concat();
    for _ in 0..17 {
        client.send(&piece).await;
    }
    client.reply().await.assert_own_error(413, "body_too_large");
    // At the limit it passes.
    let body = vec![b' '; 1 << 20];
    assert_eq!(lab.post("/v1/chat/completions", &body).await.status, 200);
    assert_eq!(upstream.count(), 1);
    assert_eq!(lab.recorded("r0").trajectory.steps.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_head_is_refused() {
    let upstream = ok().await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let many = (0..101).map(|number| format!("X-{number}: y\r\n")).collect::<Vec<_>>().concat();
    for (name, path, headers, statuses) in [
        ("a long value", "/v1/models", format!("X: {}\r\n", "y".repeat(600 << 10)), &[431][..]),
        ("many headers", "/v1/models", many, &[431]),
        ("a long target", &*format!("/v1/{}", "x".repeat(70 << 10)), String::new(), &[414, 431]),
    ] {
        let mut client = lab.client().await;
        client.send(&request("GET", path, b"", &headers)).await;
        let status = client.reply().await.status;
        assert!(statuses.contains(&status), "{name}: {status}");
    }
    assert_eq!(upstream.count(), 0);
    until("all connections are given back", || upstream.live.load(Ordering::SeqCst) == 0).await;
    assert_eq!(lab.post("/v1/chat/completions", &chat("still there")).await.status, 200);
}
