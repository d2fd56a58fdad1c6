//! What nobody wants edited passes byte for byte, both ways, and is recorded so.

use crate::{
    lab::{Lab, Reply, Setup, chat, request, within},
    scripted::{Act, Scripted, chat_reply, chunk, delta, http, last_chunk, stream_head},
};

/// Invariant 1.
#[tokio::test(flavor = "multi_thread")]
async fn an_untouched_step_leaves_as_the_bytes_that_came() {
    let odd_reply = chat_reply("ok")
        .replace("\"created\":1", "\"created\" : 1e0, \"x\":12345678901234567890123, \"x\":\"\\u00e9\\/\\ud800\"");
    let upstream = Scripted::start(vec![vec![http("200 OK", "application/json; charset=utf-8", &odd_reply)]]).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    let request = br#"{"messages":[{"role":"user","content":"a\/\u00e9\ud800"}], "temperature":0.1000, "seed":-0, "temperature":1E400}"#;
    let reply = lab.post("/r/r1/a/solver/v1/chat/completions?a=%20b&c", request).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.text(), odd_reply);
    assert_eq!(reply.header("content-type").as_deref(), Some("application/json; charset=utf-8"));
    assert_eq!(upstream.bodies(), [request.to_vec()]);
    assert!(upstream.heads()[0].starts_with("POST /v1/chat/completions?a=%20b&c HTTP/1.1"), "{}", upstream.heads()[0]);
    let recording = lab.sealed("r1").await;
    let step = &recording.trajectory.steps[0];
    assert_eq!(&step.request[..], request);
    assert_eq!(&step.attempts[0].reply[..], odd_reply.as_bytes());
    assert_eq!(step.attribution.agent.as_str(), "solver");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_passes_frame_by_frame() {
    let frames = [": ping\r\n\r\n".to_owned(), delta("one"), delta(" two")];
    let mut script = vec![stream_head()];
    for frame in &frames {
        script.extend([chunk(frame), Act::Wait]);
    }
    script.extend([chunk("data: [DONE]\n\n"), last_chunk()]);
    let upstream = Scripted::start(vec![script]).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    let mut client = lab.client().await;
    client.post("/v1/chat/completions", &chat("hi")).await;
    for frame in &frames {
        // The upstream says no more until this frame has reached the client.
        assert!(client.read_until(frame.as_bytes()).await, "ended early: {}", String::from_utf8_lossy(&client.seen));
        upstream.go.notify_one();
    }
    assert!(client.read_until(b"[DONE]").await);
    // Once a client has read the end marker, the record stands.
    assert_eq!(lab.causes("r0"), [Some(aegis::trajectory::CloseCause::Complete)]);
    drop(client);
    let recording = lab.sealed("r0").await;
    let reply = String::from_utf8(recording.trajectory.steps[0].attempts[0].reply.to_vec()).expect("utf-8");
    assert_eq!(reply, frames.concat() + "data: [DONE]\n\n");
}

/// A key that names an agent is a hint: nothing that the client sends takes it to the upstream, whatever it asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_a_hint_goes_no_further() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let config = "[[hints.keys]]\nkey = \"the-critic\"\nagent = \"critic\"\n";
    let lab = Lab::before(upstream.address, Setup { config, ..Setup::default() }).await;
    let asks = [
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/responses/compact"),
        ("POST", "/v1/images/generations"),
        ("GET", "/v1/models"),
        ("GET", "/v1/responses/resp_12345678"),
        ("GET", "/v1/chat/completions"),
        ("DELETE", "/v1/responses/resp_12345678"),
        ("POST", "/v1/files"),
        ("GET", "/v1/responses/resp_12345678?stream=true&starting_after=3"),
    ];
    for (number, (method, path)) in asks.into_iter().enumerate() {
        for header in ["Authorization: Bearer the-critic\r\n", "api-key: the-critic\r\n"] {
            let body = if method == "POST" { chat("x") } else { Vec::new() };
            let headers = format!("Connection: close\r\n{header}");
            let _ = lab.raw(&request(method, path, &body, &headers)).await;
            let head = upstream.heads().pop().unwrap_or_default();
            assert!(head.starts_with(method), "{number}: {method} {path} was sent on: {head}");
            assert!(!head.contains("the-critic"), "{head}");
        }
    }
    assert_eq!(upstream.count(), 2 * asks.len());
}

/// Every method and path passes, with bodies of every framing, both ways.
#[tokio::test(flavor = "multi_thread")]
async fn any_path_and_method_passes() {
    let multipart =
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\0b\"\r\n\r\n\u{0}\u{1}\r\n--b--\r\n";
    for (method, path, headers, body) in [
        ("PUT", "/v1/uploads/u_1/parts", "Content-Type: multipart/form-data; boundary=b\r\n", multipart),
        ("POST", "/v1/files", "Content-Type: multipart/form-data; boundary=b\r\n", multipart),
        ("GET", "/v1/models?limit=2&after=%20", "", ""),
        ("DELETE", "/v1/files/f-1", "", ""),
        ("PATCH", "/v1/anything", "", "{\"a\" : 1}"),
        ("OPTIONS", "/v1/models", "Access-Control-Request-Method: GET\r\n", ""),
        ("PROPFIND", "/unknown", "", "x"),
        ("GET", "/", "", ""),
        ("POST", "/r/x/a/y/v1/audio/speech", "", "{}"),
    ] {
        let upstream = Scripted::always(vec![http("200 OK", "application/octet-stream", "\u{0}\u{fffd}reply")]).await;
        let lab = Lab::before(upstream.address, Setup::default()).await;
        let bytes = request(method, path, body.as_bytes(), &format!("Connection: close\r\n{headers}"));
        let reply = Reply::parse(&lab.raw(&bytes).await);
        assert_eq!((reply.status, &*reply.text()), (200, "\u{0}\u{fffd}reply"), "{method} {path}");
        assert_eq!(upstream.bodies(), [body.as_bytes().to_vec()], "{method} {path}");
        let rest = path.strip_prefix("/r/x/a/y").unwrap_or(path);
        assert!(upstream.heads()[0].starts_with(&format!("{method} {rest} HTTP/1.1")), "{}", upstream.heads()[0]);
        assert!(!upstream.heads()[0].contains("identity"), "an opaque reply may come packed");
    }
}

/// Replies without a body stay without one, and the connection goes on.
#[tokio::test(flavor = "multi_thread")]
async fn replies_without_a_body_stay_so() {
    for (method, said, status) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\nx-y: z\r\n\r\n", 200),
        ("DELETE", "HTTP/1.1 204 No Content\r\nx-y: z\r\n\r\n", 204),
        ("GET", "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\nx-y: z\r\n\r\n", 304),
        ("POST", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-y: z\r\n\r\n", 200),
    ] {
        let upstream = Scripted::always(vec![Act::Say(said.into())]).await;
        let lab = Lab::before(upstream.address, Setup::default()).await;
        let mut client = lab.client().await;
        for path in ["/v1/models", "/v1/chat/completions"] {
            client.seen.clear();
            client.send(&request(method, path, b"", "")).await;
            assert!(client.read_until(b"\r\n\r\n").await, "{method} {path}");
            let reply = Reply::parse(&client.seen);
            assert_eq!((reply.status, reply.body.len()), (status, 0), "{method} {path}: {}", reply.head);
            assert_eq!(reply.header("x-y").as_deref(), Some("z"), "{method} {path}");
            if method == "HEAD" {
                assert_eq!(reply.header("content-length").as_deref(), Some("5"), "{method} {path}");
            }
        }
    }
}

/// A chunked request of a model call is collected and sent on with a length; its bytes stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_chunked_request_arrives_whole() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let body = chat("in pieces: é");
    let mut bytes = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in body.chunks(3) {
        bytes.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    bytes.extend(b"0\r\n\r\n");
    assert_eq!(Reply::parse(&lab.raw(&bytes).await).status, 200);
    assert_eq!(upstream.bodies(), [body]);
}

/// What is not a model call streams through: its first bytes arrive before its last are sent.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_streams_through() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let lab = Lab::before(listener.local_addr().expect("address"), Setup::default()).await;
    let mut client = lab.client().await;
    client
        .send(b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 11\r\n\r\nfirst")
        .await;
    let (mut upstream, _) = within(listener.accept()).await.expect("a connection");
    let mut got = Vec::new();
    let mut buffer = [0; 4096];
    while !got.ends_with(b"first") {
        let count = within(upstream.read(&mut buffer)).await.expect("readable");
        assert!(count > 0, "ended early");
        got.extend_from_slice(&buffer[..count]);
    }
    client.send(b" later").await;
    while !got.ends_with(b"first later") {
        let count = within(upstream.read(&mut buffer)).await.expect("readable");
        assert!(count > 0, "ended early");
        got.extend_from_slice(&buffer[..count]);
    }
    assert!(String::from_utf8_lossy(&got).to_lowercase().contains("content-length: 11\r\n"), "the length passes");
    upstream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.expect("written");
    assert_eq!(client.reply().await.text(), "ok");
}
