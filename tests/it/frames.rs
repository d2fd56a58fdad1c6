//! An upstream that speaks HTTP/2 over TLS in frames of a test's choice.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};
use tokio_rustls::server::TlsStream;

use crate::{
    lab::{Lab, Setup},
    routing::certificate,
};

pub const NO_ERROR: u32 = 0;
pub const INTERNAL_ERROR: u32 = 2;
pub const REFUSED_STREAM: u32 = 7;

/// A request that has come to its end.
#[derive(Debug, Clone)]
pub struct Asked {
    pub stream: u32,
    pub body: Vec<u8>,
}

/// What follows a request.
pub enum Move {
    Say(Vec<u8>),
    Close,
}

/// What an upstream is made of.
pub struct Peer {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    ca: tempfile::TempDir,
}

impl Peer {
    /// `settings` is the payload of the first frame; `answer` is asked for each request, beside the others.
    pub async fn start<F>(settings: &[(u16, u32)], answer: impl Fn(Asked) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Vec<Move>> + Send + 'static,
    {
        let (pem, mut config) = certificate();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let ca = tempfile::tempdir().expect("a directory");
        std::fs::write(ca.path().join("ca.pem"), pem).expect("written");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let (settings, answer) = (settings.to_vec(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (acceptor, settings, answer) = (acceptor.clone(), settings.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, &settings, move |asked| answer(asked)).await;
                    }
                });
            }
        });
        Self { address, connections, ca }
    }

    pub async fn lab(&self, setup: Setup) -> Lab {
        let ca_file = Some(self.ca.path().join("ca.pem"));
        Lab::before_url(&format!("https://{}/v1", self.address), Setup { ca_file, ..setup }).await
    }
}

/// Serves a connection until the other side closes it.
pub async fn serve<F>(
    stream: TlsStream<TcpStream>,
    settings: &[(u16, u32)],
    answer: impl Fn(Asked) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Vec<Move>> + Send + 'static,
{
    let payload: Vec<u8> =
        settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    let (mut from, mut to) = tokio::io::split(stream);
    let _ = to.write_all(&frame(4, 0, 0, &payload)).await;
    let to = Arc::new(Mutex::new(to));
    let mut bodies = std::collections::HashMap::<u32, Vec<u8>>::new();
    let mut preface = [0; 24];
    if from.read_exact(&mut preface).await.is_err() {
        return;
    }
    let mut head = [0; 9];
    while from.read_exact(&mut head).await.is_ok() {
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        if from.read_exact(&mut payload).await.is_err() {
            return;
        }
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        match kind {
            0 => bodies.entry(stream).or_default().extend_from_slice(&payload),
            4 if flags & 1 == 0 => drop(to.lock().await.write_all(&frame(4, 1, 0, &[])).await),
            6 if flags & 1 == 0 => drop(to.lock().await.write_all(&frame(6, 1, 0, &payload)).await),
            _ => {}
        }
        if kind > 1 || flags & 1 == 0 {
            continue;
        }
        let asked = Asked { stream, body: bodies.remove(&stream).unwrap_or_default() };
        let (moves, to) = (answer(asked), Arc::clone(&to));
        tokio::spawn(async move {
            for next in moves.await {
                let mut to = to.lock().await;
                let _ = match next {
                    Move::Say(bytes) => to.write_all(&bytes).await,
                    Move::Close => to.shutdown().await,
                };
            }
        });
    }
}

/// A frame (RFC 9113, 4.1).
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a length").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A head of status 200, without compression (RFC 7541, 6.2.2); in as many frames as it takes.
pub fn head(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    fields_of(stream, &[0x88], fields, 0)
}

/// Trailers: the end of a stream.
pub fn trailers(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    fields_of(stream, &[], fields, 1)
}

fn fields_of(stream: u32, before: &[u8], fields: &[(&str, &str)], flags: u8) -> Vec<u8> {
    let mut block = before.to_vec();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            number(text.len(), &mut block);
            block.extend_from_slice(text.as_bytes());
        }
    }
    let last = block.chunks(16_000).count() - 1;
    let part = |(at, chunk): (usize, &[u8])| {
        let (kind, flags) = if at == 0 { (1, flags) } else { (9, 0) };
        frame(kind, if at == last { flags | 4 } else { flags }, stream, chunk)
    };
    block.chunks(16_000).enumerate().flat_map(part).collect()
}

/// A length with a prefix of seven bits (RFC 7541, 5.1).
fn number(mut value: usize, to: &mut Vec<u8>) {
    if value < 127 {
        to.push(u8::try_from(value).expect("small"));
        return;
    }
    to.push(127);
    value -= 127;
    while value >= 128 {
        to.push(u8::try_from(value % 128 + 128).expect("small"));
        value /= 128;
    }
    to.push(u8::try_from(value).expect("small"));
}

pub fn data(stream: u32, bytes: &[u8], ends: bool) -> Vec<u8> {
    frame(0, u8::from(ends), stream, bytes)
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(3, 0, stream, &code.to_be_bytes())
}

pub fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(7, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// A whole reply of JSON.
pub fn whole(stream: u32, body: &str) -> Vec<u8> {
    [head(stream, &[("content-type", "application/json")]), data(stream, body.as_bytes(), true)].concat()
}
