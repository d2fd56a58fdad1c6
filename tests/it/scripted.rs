//! An upstream that says exactly the bytes a test wants, and notes exactly the bytes it got.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinHandle,
};

use crate::lab::find;

/// What the scripted upstream does after it has read a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Says these bytes.
    Say(Vec<u8>),
    /// Says these bytes again and again, until this many were said or the other side leaves.
    Flood(Vec<u8>, u64),
    /// Waits until the test lets one exchange go on, or the other side leaves.
    Wait,
    /// Waits until the test opens the gate for all, or the other side leaves.
    Gate,
    /// Closes in order.
    Close,
    /// Closes with a reset.
    Reset,
    /// Does nothing more, until the other side leaves.
    Hang,
}

/// An upstream that follows a script: one list of acts a request, the last repeated.
pub struct Scripted {
    pub address: SocketAddr,
    /// Each request as it came, byte for byte.
    pub requests: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Connections open now.
    pub live: Arc<AtomicUsize>,
    /// Connections ever made.
    pub connections: Arc<AtomicUsize>,
    /// Bytes said so far.
    pub said: Arc<AtomicU64>,
    pub go: Arc<Notify>,
    gate: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What the connections of an upstream share.
#[derive(Clone)]
struct Shared {
    script: Arc<Mutex<VecDeque<Vec<Act>>>>,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    said: Arc<AtomicU64>,
    go: Arc<Notify>,
    gate: watch::Receiver<bool>,
}

/// A connection, plain or TLS.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send {
    /// Makes closing send a reset.
    fn reset_on_close(&self);
}

impl Wire for TcpStream {
    fn reset_on_close(&self) {
        self.set_zero_linger().expect("linger");
    }
}

impl Wire for tokio_rustls::server::TlsStream<TcpStream> {
    fn reset_on_close(&self) {
        self.get_ref().0.set_zero_linger().expect("linger");
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scripted {
    /// Plain HTTP.
    pub async fn start(script: Vec<Vec<Act>>) -> Self {
        Self::start_with(script, None).await
    }

    /// One answer to everything.
    pub async fn always(acts: Vec<Act>) -> Self {
        Self::start(vec![acts]).await
    }

    /// HTTP over TLS.
    pub async fn start_tls(script: Vec<Vec<Act>>, config: rustls::ServerConfig) -> Self {
        Self::start_with(script, Some(tokio_rustls::TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(script: Vec<Vec<Act>>, tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let (gate, opened) = watch::channel(false);
        let shared = Shared {
            script: Arc::new(Mutex::new(VecDeque::from(script))),
            requests: Arc::default(),
            said: Arc::default(),
            go: Arc::default(),
            gate: opened,
        };
        let (live, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (requests, said, go) = (Arc::clone(&shared.requests), Arc::clone(&shared.said), Arc::clone(&shared.go));
        let (living, counted) = (Arc::clone(&live), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                living.fetch_add(1, Ordering::SeqCst);
                let (shared, living, tls) = (shared.clone(), Arc::clone(&living), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => follow(stream, &shared).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                follow(stream, &shared).await;
                            }
                        }
                    }
                    living.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, requests, live, connections, said, go, gate, task }
    }

    /// Opens the gate for everyone who waits at it, now and later.
    pub fn open_gate(&self) {
        self.gate.send_replace(true);
    }

    /// The bodies that arrived, in order.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let requests = self.requests.lock().expect("lock");
        requests.iter().map(|request| split_head(request).1.to_vec()).collect()
    }

    /// The heads that arrived, in order.
    pub fn heads(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("lock");
        requests.iter().map(|request| String::from_utf8_lossy(split_head(request).0).into_owned()).collect()
    }

    /// How many requests arrived.
    pub fn count(&self) -> usize {
        self.requests.lock().expect("lock").len()
    }
}

async fn follow(mut stream: impl Wire, shared: &Shared) {
    while let Some(request) = read_request(&mut stream).await {
        shared.requests.lock().expect("lock").push(request);
        let acts = {
            let mut script = shared.script.lock().expect("lock");
            if script.len() > 1 { script.pop_front() } else { script.front().cloned() }.unwrap_or_default()
        };
        for act in acts {
            if !perform(act, &mut stream, shared).await {
                return;
            }
        }
    }
}

/// Performs one act; false when the connection is to end.
async fn perform(act: Act, stream: &mut impl Wire, shared: &Shared) -> bool {
    let mut byte = [0];
    match act {
        Act::Say(bytes) => {
            shared.said.fetch_add(bytes.len() as u64, Ordering::SeqCst);
            stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok()
        }
        Act::Flood(bytes, limit) => {
            let mut left = limit;
            while left > 0 {
                if stream.write_all(&bytes).await.is_err() {
                    return false;
                }
                shared.said.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                left = left.saturating_sub(bytes.len() as u64);
            }
            stream.flush().await.is_ok()
        }
        Act::Wait => tokio::select! {
            () = shared.go.notified() => true,
            _ = stream.read(&mut byte) => false,
        },
        Act::Gate => {
            let mut gate = shared.gate.clone();
            tokio::select! {
                opened = gate.wait_for(|open| *open) => opened.is_ok(),
                _ = stream.read(&mut byte) => false,
            }
        }
        Act::Close => false,
        Act::Reset => {
            stream.reset_on_close();
            false
        }
        Act::Hang => {
            let _ = stream.read(&mut byte).await;
            false
        }
    }
}

/// Reads one request: by its content-length, its chunks, or its head alone.
async fn read_request(stream: &mut impl Wire) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65536];
    loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
            let chunked = head.contains("transfer-encoding: chunked");
            if chunked && bytes.ends_with(b"0\r\n\r\n") || !chunked && bytes.len() >= end + 4 + length.unwrap_or(0) {
                return Some(bytes);
            }
        }
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

pub fn split_head(message: &[u8]) -> (&[u8], &[u8]) {
    let end = find(message, b"\r\n\r\n").map_or(message.len(), |at| at + 4);
    message.split_at(end)
}

/// A chat reply sent whole, as a provider writes it.
pub fn chat_reply(text: &str) -> String {
    serde_json::json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": null}, "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    })
    .to_string()
}

/// An HTTP response with a content-length.
pub fn http(status: &str, kind: &str, body: &str) -> Act {
    http_with(status, &format!("content-type: {kind}\r\n"), body.as_bytes())
}

/// An HTTP response with a content-length and these header lines.
pub fn http_with(status: &str, headers: &str, body: &[u8]) -> Act {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    Act::Say([head.as_bytes(), body].concat())
}

/// The head of a chunked event stream.
pub fn stream_head() -> Act {
    Act::Say(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// One HTTP chunk.
pub fn chunk(bytes: impl AsRef<[u8]>) -> Act {
    let bytes = bytes.as_ref();
    Act::Say([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

/// The end of a chunked body.
pub fn last_chunk() -> Act {
    Act::Say(b"0\r\n\r\n".to_vec())
}

/// A content frame of a chat stream.
pub fn delta(text: &str) -> String {
    let json = serde_json::json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    format!("data: {json}\n\n")
}

/// The frame of a chat stream that says why the model stopped.
pub fn finish(reason: &str) -> String {
    let json = serde_json::json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    format!("data: {json}\n\n")
}

/// A whole chat stream of these texts.
pub fn chat_stream(texts: &[&str]) -> Vec<Act> {
    let mut acts = vec![stream_head()];
    acts.extend(texts.iter().map(|text| chunk(delta(text))));
    acts.extend([chunk(finish("stop")), chunk("data: [DONE]\n\n"), last_chunk()]);
    acts
}
