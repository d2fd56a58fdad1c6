//! F6, F7: what the upstream does wrong reaches the client as it happened, and never looks like a whole reply.

use std::{net::SocketAddr, sync::atomic::Ordering, time::Duration};

use aegis::{proxy::Limits, trajectory::CloseCause};

use crate::{
    lab::{Client, Lab, Reply, Setup, chat, request, until},
    scripted::{Act, Scripted, chat_reply, chunk, delta, finish, http_with, last_chunk, stream_head},
};

fn impatient() -> Setup {
    let limits = Limits { silence_timeout: Duration::from_millis(500), ..Limits::default() };
    Setup { limits, ..Setup::default() }
}

/// Sends a call, lets the upstream go on once the first frame has arrived, and reads to the end.
async fn after_first_frame(address: SocketAddr, upstream: &Scripted) -> Reply {
    let mut client = Client::connect(address).await;
    client.send(&request("POST", "/v1/chat/completions", &chat("x"), "Connection: close\r\n")).await;
    assert!(client.read_until(delta("one").as_bytes()).await, "the first frame is delivered");
    upstream.go.notify_one();
    client.reply().await
}

/// A stream that breaks: its frames are delivered, the end is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_is_delivered_as_far_as_it_came_and_never_ended() {
    for (name, last, cause) in [
        ("reset", Act::Reset, CloseCause::UpstreamReset),
        ("closed within the body", Act::Close, CloseCause::UpstreamReset),
        ("closed within a chunk", Act::Say(b"100\r\ndata: {\"half".to_vec()), CloseCause::UpstreamReset),
        ("a malformed chunk", Act::Say(b"zz\r\ndata".to_vec()), CloseCause::UpstreamReset),
        ("silent", Act::Hang, CloseCause::UpstreamTimeout),
    ] {
        let script = vec![stream_head(), chunk(delta("one")), Act::Wait, last, Act::Close];
        let upstream = Scripted::always(script).await;
        let direct = after_first_frame_unless_silent(name, upstream.address, &upstream).await;
        let lab = Lab::before(upstream.address, impatient()).await;
        let reply = after_first_frame(lab.address, &upstream).await;
        assert_eq!(reply.status, 200, "{name}");
        assert!(!reply.whole, "{name}: the end is forged: {}", reply.text());
        assert!(!reply.text().contains("[DONE]"), "{name}: {}", reply.text());
        assert!(reply.text().starts_with(&delta("one")), "{name}: {}", reply.text());
        if let Some(direct) = direct {
            assert_eq!(reply.whole, direct.whole, "{name}: as without the proxy");
        }
        assert_eq!(lab.causes("r0"), [Some(cause)], "{name}");
        let step = &lab.recorded("r0").trajectory.steps[0];
        assert!(step.attempts[0].reply.starts_with(delta("one").as_bytes()), "{name}: what came is recorded");
    }
}

/// Frames that come at one moment with the break are delivered too.
#[tokio::test(flavor = "multi_thread")]
async fn frames_that_come_with_the_break_are_delivered() {
    let frames: String = (0..50).map(|number| delta(&format!("frame {number}"))).collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let all_at_once = format!("{head}{:x}\r\n{frames}\r\n", frames.len());
    let upstream = Scripted::always(vec![Act::Say(all_at_once.into_bytes()), Act::Close]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    for path in ["/v1/chat/completions", "/v1/unread"] {
        let reply = lab.post(path, &chat("x")).await;
        assert_eq!((reply.status, reply.text().len(), reply.whole), (200, frames.len(), false), "{path}");
    }
}

/// The same without a proxy, to compare with; a direct client of a silent server would wait for ever.
async fn after_first_frame_unless_silent(name: &str, address: SocketAddr, upstream: &Scripted) -> Option<Reply> {
    if name == "silent" { None } else { Some(after_first_frame(address, upstream).await) }
}

/// A stream that ends in order but too early passes as it is: what it lacks is recorded, nothing is added.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_its_end_marker_passes_as_it_is() {
    for (name, frames, cause) in [
        ("no finish", vec![delta("one")], CloseCause::UpstreamTruncated),
        ("with a finish", vec![delta("one"), finish("stop")], CloseCause::Complete),
    ] {
        let mut script = vec![stream_head()];
        script.extend(frames.iter().map(chunk));
        script.push(last_chunk());
        let upstream = Scripted::always(script).await;
        let lab = Lab::before(upstream.address, Setup::default()).await;
        let reply = lab.post("/v1/chat/completions", &chat("x")).await;
        assert_eq!((reply.text(), reply.whole), (frames.concat(), true), "{name}");
        assert_eq!(lab.causes("r0"), [Some(cause)], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_whole_reply_is_never_completed() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"half\":".to_vec();
    for (name, last, cause) in [
        ("reset", Act::Reset, CloseCause::UpstreamReset),
        ("closed", Act::Close, CloseCause::UpstreamReset),
        ("silent", Act::Hang, CloseCause::UpstreamTimeout),
    ] {
        let upstream = Scripted::always(vec![Act::Say(head.clone()), Act::Wait, last]).await;
        let lab = Lab::before(upstream.address, impatient()).await;
        let mut client = lab.client().await;
        client.post("/v1/chat/completions", &chat("x")).await;
        assert!(client.read_until(b"{\"half\":").await, "{name}");
        upstream.go.notify_one();
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.whole, &*reply.text()), (200, false, "{\"half\":"), "{name}");
        assert_eq!(lab.causes("r0"), [Some(cause)], "{name}");
    }
}

/// Before a head came, the client gets an error that names itself as the proxy's.
#[tokio::test(flavor = "multi_thread")]
async fn no_reply_at_all_is_answered_by_the_proxy_once() {
    for (name, acts, status, code, cause) in [
        ("closed", vec![Act::Close], 502, "upstream_closed", CloseCause::UpstreamReset),
        ("reset", vec![Act::Reset], 502, "upstream_closed", CloseCause::UpstreamReset),
        (
            "garbage",
            vec![Act::Say(b"SSH-2.0-x\r\n\r\n".to_vec()), Act::Close],
            502,
            "upstream_closed",
            CloseCause::UpstreamReset,
        ),
        ("silent", vec![Act::Hang], 504, "upstream_timeout", CloseCause::UpstreamTimeout),
    ] {
        let upstream = Scripted::always(acts).await;
        let lab = Lab::before(upstream.address, impatient()).await;
        lab.post("/v1/chat/completions", &chat("x")).await.assert_own_error(status, code);
        assert_eq!(upstream.count(), 1, "{name}: asked once");
        assert_eq!(lab.causes("r0"), [Some(cause)], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_cannot_be_reached_is_said_so() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let refused = format!("http://{}", closed.local_addr().expect("address"));
    drop(closed);
    // A label of a name has at most 63 octets, so this fails without asking anybody.
    let nowhere = format!("http://{}.invalid", "x".repeat(70));
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let not_tls = format!("https://{}", plain.local_addr().expect("address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    for (name, url) in [("refused", &refused), ("no such name", &nowhere), ("no TLS", &not_tls)] {
        let lab = Lab::before_url(url, Setup::default()).await;
        lab.post("/v1/chat/completions", &chat("x")).await.assert_own_error(502, "upstream_unreachable");
        assert_eq!(lab.causes("r0"), [Some(CloseCause::UpstreamUnreachable)], "{name}");
    }
}

/// F7. Errors of the upstream are its own: never altered, never retried by us.
#[tokio::test(flavor = "multi_thread")]
async fn upstream_errors_pass_verbatim_and_are_not_retried() {
    let limits = "Retry-After: 7\r\nretry-after-ms: 7123\r\nx-should-retry: true\r\nX-RateLimit-Remaining-Requests: 0\r\nx-request-id: req_1\r\nSet-Cookie: a=b\r\nset-cookie: c=d\r\n";
    for status in [
        "301 Moved Permanently",
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "408 Request Timeout",
        "409 Conflict",
        "413 Payload Too Large",
        "422 Unprocessable Content",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
        "529 Overloaded",
    ] {
        let body =
            format!("{{\"error\": {{\"message\":\"é {status}\",  \"type\":\"x\",\"param\":null,\"code\":429}}}}\n");
        let headers =
            format!("Content-Type: application/json; odd\r\nLocation: http://127.0.0.1:1/elsewhere\r\n{limits}");
        let upstream = Scripted::always(vec![http_with(status, &headers, body.as_bytes())]).await;
        let lab = Lab::before(upstream.address, Setup::default()).await;
        let reply = lab.post("/v1/chat/completions", &chat("x")).await;
        assert_eq!(reply.text(), body, "{status}");
        assert_eq!(reply.status.to_string(), status[..3], "{status}");
        for line in headers.lines() {
            assert!(reply.head.contains(line), "{status}: `{line}` is missing in {}", reply.head);
        }
        assert!(!reply.head.to_lowercase().contains("aegis"), "{status}: {}", reply.head);
        assert_eq!((upstream.count(), upstream.connections.load(Ordering::SeqCst)), (1, 1), "{status}");
        let recording = lab.recorded("r0");
        let attempt = &recording.trajectory.steps[0].attempts[0];
        assert_eq!((attempt.cause, attempt.status), (Some(CloseCause::Complete), Some(reply.status)), "{status}");
        assert_eq!(&attempt.reply[..], body.as_bytes(), "{status}");
    }
}

/// An error within a stream is the upstream's own too.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_frame_within_a_stream_passes() {
    let error = "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n";
    let script = vec![stream_head(), chunk(delta("one")), chunk(error), chunk("data: [DONE]\n\n"), last_chunk()];
    let upstream = Scripted::always(script).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let reply = lab.post("/v1/chat/completions", &chat("x")).await;
    assert_eq!(reply.text(), format!("{}{error}data: [DONE]\n\n", delta("one")));
    assert!(reply.whole);
}

/// A connection that the upstream closed while it was idle costs the next call nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_connection_is_replaced_without_an_error() {
    let reply = http_with("200 OK", "content-type: application/json\r\n", chat_reply("ok").as_bytes());
    let upstream = Scripted::always(vec![reply, Act::Close]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    for number in 0..20 {
        let reply = lab.post("/v1/chat/completions", &chat(&format!("call {number}"))).await;
        assert_eq!(reply.status, 200, "call {number}: {}", reply.text());
        // What is closed after the next request was written may have been heard: that call is not sent again.
        until("the upstream has closed", || upstream.live.load(Ordering::SeqCst) == 0).await;
    }
    assert_eq!(upstream.count(), 20);
}
