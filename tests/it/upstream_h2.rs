//! An upstream that offers HTTP/2: one connection for all requests, and nothing of it shows to the client.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use aegis::trajectory::CloseCause;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{Request, Response, body::Frame, body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::JoinSet,
};

use crate::{
    lab::{Lab, Setup, chat, request, until},
    routing::certificate,
    scripted::{chat_reply, delta},
};

/// A request: method, target, whether it has a host header, body.
type Heard = (String, String, bool, Vec<u8>);

/// What the server saw.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Heard>>,
    /// Reply bodies that nobody wanted to the end.
    cancelled: AtomicUsize,
}

/// A server of HTTP/2 over TLS. A request for a stream gets frames one by one, as the semaphore allows.
struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    go: Arc<Semaphore>,
    /// Ends the connections that are open.
    end: watch::Sender<()>,
    ca: tempfile::TempDir,
}

impl Server {
    async fn start() -> Self {
        let (pem, mut config) = certificate();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let ca = tempfile::tempdir().expect("a directory");
        std::fs::write(ca.path().join("ca.pem"), pem).expect("written");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("an address");
        let (seen, go) = (Arc::new(Seen::default()), Arc::new(Semaphore::new(0)));
        let (end, ending) = watch::channel(());
        let (noted, gate) = (Arc::clone(&seen), Arc::clone(&go));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                noted.connections.fetch_add(1, Ordering::SeqCst);
                let (acceptor, seen, go, mut ending) =
                    (acceptor.clone(), Arc::clone(&noted), Arc::clone(&gate), ending.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                    let service = service_fn(move |request| answer(Arc::clone(&seen), Arc::clone(&go), request));
                    ending.mark_unchanged();
                    tokio::select! {
                        _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service) => {}
                        _ = ending.changed() => {}
                    }
                });
            }
        });
        Self { address, seen, go, end, ca }
    }

    async fn lab(&self) -> Lab {
        let ca_file = Some(self.ca.path().join("ca.pem"));
        Lab::before_url(&format!("https://{}/v1", self.address), Setup { ca_file, ..Setup::default() }).await
    }
}

/// Counts a body that is dropped before its end.
struct Wanted(Arc<Seen>, bool);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.cancelled.fetch_add(usize::from(!self.1), Ordering::SeqCst);
    }
}

async fn answer(
    seen: Arc<Seen>,
    go: Arc<Semaphore>,
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
    let streamed = String::from_utf8_lossy(&body).contains("stream");
    let (method, target) = (head.method.to_string(), head.uri.to_string());
    seen.requests.lock().expect("lock").push((method, target, head.headers.contains_key("host"), body));
    if !streamed {
        let body = http_body_util::Full::from(chat_reply("over h2")).boxed_unsync();
        return Ok(Response::builder().header("content-type", "application/json").body(body).expect("a reply"));
    }
    let frames = [delta("one"), delta("two"), "data: [DONE]\n\n".to_owned()];
    let frames = stream::unfold((0, frames, go, Wanted(seen, false)), |(next, frames, go, mut wanted)| async move {
        let Some(frame) = frames.get(next).cloned() else {
            wanted.1 = true;
            drop(wanted);
            return None;
        };
        go.acquire().await.expect("open").forget();
        Some((Ok(Frame::data(Bytes::from(frame))), (next + 1, frames, go, wanted)))
    });
    let body = StreamBody::new(frames).boxed_unsync();
    Ok(Response::builder().header("content-type", "text/event-stream").body(body).expect("a reply"))
}

#[tokio::test(flavor = "multi_thread")]
async fn all_requests_share_one_connection() {
    let server = Server::start().await;
    let lab = Arc::new(server.lab().await);
    let mut calls = JoinSet::new();
    for number in 0..16 {
        let lab = Arc::clone(&lab);
        calls.spawn(async move {
            let body = chat(&format!("call {number}"));
            let reply = lab.post("/v1/chat/completions?a=%20b", &body).await;
            assert_eq!((reply.status, reply.text(), reply.whole), (200, chat_reply("over h2"), true));
            assert!(reply.head.starts_with("HTTP/1.1 200 OK"), "{}", reply.head);
            body
        });
    }
    let mut asked = calls.join_all().await;
    asked.push(b"up".to_vec());
    assert_eq!(lab.post("/v1/files", b"up").await.status, 200, "what is no model call goes the same way");
    assert_eq!(server.seen.connections.load(Ordering::SeqCst), 1);
    let mut came = server.seen.requests.lock().expect("lock").clone();
    let target = format!("https://{}/v1/chat/completions?a=%20b", server.address);
    assert!(came[..16].iter().all(|(method, to, host, _)| method == "POST" && *to == target && !host), "{:?}", came[0]);
    let mut bodies: Vec<_> = came.drain(..).map(|(.., body)| body).collect();
    bodies.sort();
    asked.sort();
    assert_eq!(bodies, asked);
    assert!(lab.causes("r0").iter().all(|cause| *cause == Some(CloseCause::Complete)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_over_h2_passes_frame_by_frame_and_a_client_that_leaves_cancels_it() {
    let server = Server::start().await;
    let lab = server.lab().await;
    let mut client = lab.client().await;
    client.post("/v1/chat/completions", &chat("stream")).await;
    for frame in [delta("one"), delta("two"), "data: [DONE]\n\n".to_owned()] {
        // The server says no more until this frame has reached the client.
        server.go.add_permits(1);
        assert!(client.read_until(frame.as_bytes()).await, "{}", String::from_utf8_lossy(&client.seen));
    }
    let mut leaver = lab.client().await;
    leaver.post("/v1/chat/completions", &chat("stream, and leave")).await;
    server.go.add_permits(1);
    assert!(leaver.read_until(delta("one").as_bytes()).await);
    let before = server.seen.cancelled.load(Ordering::SeqCst);
    drop(leaver);
    until("the stream is cancelled", || server.seen.cancelled.load(Ordering::SeqCst) > before).await;
    assert_eq!(lab.post("/v1/chat/completions", &chat("others go on")).await.status, 200);
    assert_eq!(server.seen.connections.load(Ordering::SeqCst), 1);
    until("both are recorded", || lab.causes("r0")[..2] == [Some(CloseCause::Complete), Some(CloseCause::ClientGone)])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_breaks_what_it_carried_and_is_made_anew() {
    let server = Server::start().await;
    let lab = server.lab().await;
    let mut client = lab.client().await;
    client.send(&request("POST", "/v1/chat/completions", &chat("stream"), "Connection: close\r\n")).await;
    server.go.add_permits(1);
    assert!(client.read_until(delta("one").as_bytes()).await);
    server.end.send_replace(());
    let reply = client.reply().await;
    assert!(!reply.whole && !reply.text().contains("[DONE]"), "{}", reply.text());
    assert_eq!(lab.causes("r0"), [Some(CloseCause::UpstreamReset)]);
    assert_eq!(lab.post("/v1/chat/completions", &chat("again")).await.text(), chat_reply("over h2"));
    assert_eq!(server.seen.connections.load(Ordering::SeqCst), 2);
}
