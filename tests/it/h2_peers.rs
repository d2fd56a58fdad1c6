//! What origins of HTTP/2 do at the edges: streams given up, connections that end, limits, trailers.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use aegis::trajectory::CloseCause;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Barrier,
    task::JoinSet,
};

use crate::{
    frames::{
        self, Asked, INTERNAL_ERROR, Move, NO_ERROR, Peer, REFUSED_STREAM, data, go_away, head, reset, trailers, whole,
    },
    lab::{Lab, Setup, chat, find, request, until, within},
    routing::certificate,
    scripted::{Act, Scripted, chat_reply, delta},
};

/// What a peer does to a stream.
type Next = fn(u32) -> Move;

/// How often each body was answered.
type Processed = Arc<Mutex<HashMap<Vec<u8>, usize>>>;

fn answered(processed: &Processed, asked: &Asked) -> Vec<u8> {
    *processed.lock().expect("lock").entry(asked.body.clone()).or_default() += 1;
    whole(asked.stream, &chat_reply("over h2"))
}

/// Sends calls side by side; each must be answered whole.
async fn all_answered(lab: &Arc<Lab>, calls: usize, at_once: usize) {
    let mut clients = JoinSet::new();
    for client in 0..at_once {
        let lab = Arc::clone(lab);
        clients.spawn(async move {
            for number in (client..calls).step_by(at_once) {
                let reply = lab.post("/v1/chat/completions", &chat(&format!("call {number}"))).await;
                assert_eq!((reply.status, reply.text(), reply.whole), (200, chat_reply("over h2"), true), "{number}");
            }
        });
    }
    within(clients.join_all()).await;
    let causes = lab.causes("r0");
    assert_eq!(causes.len(), calls);
    assert!(causes.iter().all(|cause| *cause == Some(CloseCause::Complete)), "{causes:?}");
}

/// As nginx does at the end of `keepalive_requests`: a GOAWAY, and silence for the streams above its last.
#[tokio::test(flavor = "multi_thread")]
async fn streams_above_a_goaway_are_sent_again_and_none_twice() {
    let processed = Processed::default();
    let noted = Arc::clone(&processed);
    let peer = Peer::start(&[], move |asked| {
        let moves = match asked.stream {
            ..11 => vec![Move::Say(answered(&noted, &asked))],
            11 => vec![Move::Say([answered(&noted, &asked), go_away(11, NO_ERROR)].concat())],
            _ => Vec::new(),
        };
        async move { moves }
    })
    .await;
    let lab = Arc::new(peer.lab(Setup::default()).await);
    all_answered(&lab, 64, 16).await;
    let processed = processed.lock().expect("lock");
    assert_eq!(processed.len(), 64);
    assert!(processed.values().all(|times| *times == 1), "{processed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_streams_are_sent_again() {
    let (refused, processed) = (Arc::new(Mutex::new(Vec::new())), Processed::default());
    let noted = Arc::clone(&processed);
    let peer = Peer::start(&[], move |asked| {
        let mut refused = refused.lock().expect("lock");
        let moves = if refused.contains(&asked.body) {
            answered(&noted, &asked)
        } else {
            refused.push(asked.body.clone());
            reset(asked.stream, REFUSED_STREAM)
        };
        async move { vec![Move::Say(moves)] }
    })
    .await;
    let lab = Arc::new(peer.lab(Setup::default()).await);
    all_answered(&lab, 12, 4).await;
    assert!(processed.lock().expect("lock").values().all(|times| *times == 1));
}

/// Where an origin may have processed a request it is asked once.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_processed_is_not_sent_again() {
    for (name, moves) in [
        ("an error", vec![(|stream| Move::Say(reset(stream, INTERNAL_ERROR))) as Next]),
        ("the end of the connection", vec![|_| Move::Close]),
        ("a goaway that names it, and the end", vec![|stream| Move::Say(go_away(stream, NO_ERROR)), |_| Move::Close]),
    ] {
        let asked_for = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked_for);
        let peer = Peer::start(&[], move |asked| {
            counted.fetch_add(1, Ordering::SeqCst);
            let moves = moves.iter().map(|next| next(asked.stream)).collect();
            async move { moves }
        })
        .await;
        let lab = peer.lab(Setup::default()).await;
        lab.post("/v1/chat/completions", &chat("x")).await.assert_own_error(502, "upstream_closed");
        assert_eq!(asked_for.load(Ordering::SeqCst), 1, "{name}");
        assert_eq!(lab.causes("r0"), [Some(CloseCause::UpstreamReset)], "{name}");
    }
}

/// An origin that refuses for ever is given up.
#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_only_refuses_is_given_up() {
    let peer = Peer::start(&[], |asked| async move { vec![Move::Say(reset(asked.stream, REFUSED_STREAM))] }).await;
    let lab = peer.lab(Setup::default()).await;
    lab.post("/v1/chat/completions", &chat("x")).await.assert_own_error(502, "upstream_closed");
    lab.post("/v1/files", b"not a model call").await.assert_own_error(502, "upstream_closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_reply_is_never_a_whole_one() {
    let reply = chat_reply("never whole");
    let length = reply.len().to_string();
    let plain = ("content-type", "application/json");
    for (name, fields, said) in [
        ("json", vec![plain], &reply[..60]),
        ("json of known length", vec![plain, ("content-length", length.as_str())], &reply[..60]),
        ("stream", vec![("content-type", "text/event-stream")], &delta("one")),
    ] {
        for (end, moves) in [
            ("reset without an error", vec![(|stream| Move::Say(reset(stream, NO_ERROR))) as Next]),
            ("reset with an error", vec![|stream| Move::Say(reset(stream, INTERNAL_ERROR))]),
            ("goaway above it", vec![|_| Move::Say(go_away(0, NO_ERROR))]),
            ("goaway and the end", vec![|stream| Move::Say(go_away(stream, NO_ERROR)), |_| Move::Close]),
            ("the end", vec![|_| Move::Close]),
        ] {
            let fields: Vec<(String, String)> =
                fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let said = said.to_owned();
            let peer = Peer::start(&[], move |asked| {
                let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let begun = [head(asked.stream, &fields), data(asked.stream, said.as_bytes(), false)].concat();
                let mut all = vec![Move::Say(begun)];
                all.extend(moves.iter().map(|next| next(asked.stream)));
                async move { all }
            })
            .await;
            let lab = peer.lab(Setup::default()).await;
            let reply = lab.post("/v1/chat/completions", &chat("x")).await;
            assert!(reply.status == 502 || !reply.whole, "{name}, {end}: {}{}", reply.head, reply.text());
            assert_eq!(lab.causes("r0"), [Some(CloseCause::UpstreamReset)], "{name}, {end}");
            let passed = lab.post("/v1/unread", &chat("x")).await;
            assert!(passed.status == 502 || !passed.whole, "passed on, {name}, {end}");
        }
    }
}

/// Trailers end a reply as its end does, and go to a client that asked for them.
#[tokio::test(flavor = "multi_thread")]
async fn trailers_are_the_end_of_a_whole_reply() {
    let body = chat_reply("with trailers");
    let over_h2 = body.clone();
    let peer = Peer::start(&[], move |asked| {
        let fields = [("content-type", "application/json"), ("trailer", "x-sum")];
        let said = [
            head(asked.stream, &fields),
            data(asked.stream, over_h2.as_bytes(), false),
            trailers(asked.stream, &[("x-sum", "abc")]),
        ];
        async move { vec![Move::Say(said.concat())] }
    })
    .await;
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\nx-sum: abc\r\n\r\n",
        body.len()
    );
    let plain = Scripted::always(vec![Act::Say(chunked.into_bytes()), Act::Close]).await;
    for lab in [peer.lab(Setup::default()).await, Lab::before(plain.address, Setup::default()).await] {
        for path in ["/v1/chat/completions", "/v1/unread", "/v1/files"] {
            let headers = "Connection: close, TE\r\nTE: trailers\r\n";
            let raw = lab.raw(&request("POST", path, &chat("x"), headers)).await;
            assert!(raw.ends_with(b"\r\n0\r\nx-sum: abc\r\n\r\n"), "{path}: {}", String::from_utf8_lossy(&raw));
            assert!(find(&raw, body.as_bytes()).is_some(), "{path}");
            let reply = lab.post(path, &chat("x")).await;
            assert_eq!((reply.text(), reply.whole), (body.clone(), true), "{path}: to whom did not ask, without");
        }
        assert_eq!(lab.causes("r0"), [Some(CloseCause::Complete); 6]);
    }
}

/// Twenty-five replies at once from an origin that allows ten a connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_connection_gets_company() {
    let together = Arc::new(Barrier::new(25));
    let peer = Peer::start(&[(3, 10)], move |asked| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            vec![Move::Say(whole(asked.stream, &chat_reply("over h2")))]
        }
    })
    .await;
    let lab = Arc::new(peer.lab(Setup::default()).await);
    all_answered(&lab, 25, 25).await;
    let connections = peer.connections.load(Ordering::SeqCst);
    assert!((3..=5).contains(&connections), "{connections}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_heads_of_replies_pass() {
    let large = "v".repeat(40_000);
    let sent = large.clone();
    let peer = Peer::start(&[], move |asked| {
        let fields = [("content-type", "application/json"), ("x-large", sent.as_str())];
        let said = [head(asked.stream, &fields), data(asked.stream, chat_reply("x").as_bytes(), true)].concat();
        async move { vec![Move::Say(said)] }
    })
    .await;
    let lab = peer.lab(Setup::default()).await;
    let reply = lab.post("/v1/chat/completions", &chat("x")).await;
    assert_eq!((reply.status, reply.header("x-large")), (200, Some(large)));
}

const SPOKEN: [&str; 5] = ["http/1.1", "h2", "h2", "http/1.1", "h2"];

/// One handshake says HTTP/1.1, the next HTTP/2, and back.
#[tokio::test(flavor = "multi_thread")]
async fn each_handshake_says_anew_what_is_spoken() {
    let (pem, config) = certificate();
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("ca.pem"), pem).expect("written");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("https://{}/v1", listener.local_addr().expect("an address"));
    let open = Arc::new(AtomicUsize::new(0));
    let opened = Arc::clone(&open);
    tokio::spawn(async move {
        for spoken in SPOKEN {
            let mut config = config.clone();
            config.alpn_protocols = vec![spoken.into()];
            let (stream, _) = listener.accept().await.expect("a connection");
            let stream = tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(stream).await.expect("TLS");
            let opened = Arc::clone(&opened);
            opened.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                if spoken == "h2" {
                    serve_h2_once(stream).await;
                } else {
                    serve_once(stream).await;
                }
                opened.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    let lab = Lab::before_url(&url, Setup { ca_file: Some(dir.path().join("ca.pem")), ..Setup::default() }).await;
    for (number, spoken) in SPOKEN.into_iter().enumerate() {
        let reply = lab.post("/v1/chat/completions", &chat("x")).await;
        assert_eq!((reply.status, reply.text()), (200, chat_reply(spoken)), "{number}");
    }
    until("all but the last are closed", || open.load(Ordering::SeqCst) <= 1).await;
}

type Tls = tokio_rustls::server::TlsStream<tokio::net::TcpStream>;

/// Answers one request, says that it was the last, and waits for the other side to close.
async fn serve_h2_once(stream: Tls) {
    let answer = |asked: Asked| async move {
        vec![Move::Say([whole(asked.stream, &chat_reply("h2")), go_away(asked.stream, NO_ERROR)].concat())]
    };
    frames::serve(stream, &[], answer).await;
}

async fn serve_once(mut stream: Tls) {
    let mut seen = Vec::new();
    while find(&seen, b"}]}").is_none() {
        stream.read_buf(&mut seen).await.expect("a request");
    }
    let body = chat_reply("http/1.1");
    let reply = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(reply.as_bytes()).await.expect("said");
    stream.shutdown().await.expect("closed");
}

/// A handshake that nobody answers costs its own request ten seconds, and the others one at most.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_handshake_is_given_up_and_nobody_else_waits_for_it() {
    let (pem, mut config) = certificate();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("ca.pem"), pem).expect("written");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("https://{}/v1", listener.local_addr().expect("an address"));
    let (accepted, first) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let silent = listener.accept().await.expect("a connection");
        accepted.send(()).expect("heard");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut seen = Vec::new();
            while find(&seen, b"}]}").is_none() && stream.read_buf(&mut seen).await.is_ok_and(|read| read > 0) {}
            let reply = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(reply.as_bytes()).await.expect("said");
            let _ = (stream.shutdown().await, &silent);
        }
    });
    let setup = Setup { ca_file: Some(dir.path().join("ca.pem")), ..Setup::default() };
    let lab = Arc::new(Lab::before_url(&url, setup).await);
    let begun = Instant::now();
    let waiting = Arc::clone(&lab);
    let stuck = tokio::spawn(async move { waiting.post("/v1/chat/completions", &chat("stuck")).await });
    first.await.expect("the first has connected");
    assert_eq!(lab.post("/v1/chat/completions", &chat("x")).await.status, 200);
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    stuck.await.expect("answered").assert_own_error(502, "upstream_unreachable");
    assert!(begun.elapsed() > Duration::from_secs(9), "{:?}", begun.elapsed());
}
