//! The connection to an origin that offers HTTP/2 (RFC 9113, by ALPN): one for all requests, driven by a task of its
//! own. An origin that does not is asked once; from then on nobody waits here.

use std::{
    future::Future,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{
    Request, Response, Uri, Version,
    body::Incoming,
    client::conn::http2::{self, SendRequest},
    header::{self, HeaderValue},
    http::uri::{Authority, PathAndQuery, Scheme},
};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;

use super::{
    pool::Unanswered,
    upstream::{SentBody, UpstreamError},
};

/// What is held of one reply for a client that does not read, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
/// What is held of all replies together: so much that slow readers never stop the others.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// How often a connection with requests under way is asked whether it is still there, and how long it may take.
const PING: Duration = Duration::from_secs(20);
/// Longest wait for another request's handshake to end.
const GATE: Duration = Duration::from_secs(10);

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// The shared connection to one origin, if that speaks HTTP/2.
pub(super) struct Multiplexed {
    /// Set for an origin that may offer HTTP/2: one over TLS.
    origin: Option<(Scheme, Authority)>,
    /// The origin has said in a handshake that it speaks HTTP/1.1 only.
    is_plain: AtomicBool,
    sender: Mutex<Option<SendRequest<SentBody>>>,
    /// Held by the one that connects.
    gate: tokio::sync::Mutex<()>,
}

/// What came of a request.
pub(super) enum Sent {
    /// It was answered.
    Answered(Response<Incoming>),
    /// It is to go over HTTP/1.1: itself, and the stream that was opened for it, if one was.
    Connect(Box<(Request<SentBody>, Option<Stream>)>),
}

impl Multiplexed {
    /// No connection yet to this origin.
    pub(super) fn new(origin: &Uri) -> Self {
        let tls = origin.scheme().zip(origin.authority()).filter(|(scheme, _)| *scheme == &Scheme::HTTPS);
        Self {
            origin: tls.map(|(scheme, authority)| (scheme.clone(), authority.clone())),
            is_plain: AtomicBool::new(false),
            sender: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a request over the shared connection; where there is none, `connect` opens one.
    pub(super) async fn send<F>(
        &self,
        request: Request<SentBody>,
        connect: impl Fn() -> F,
    ) -> Result<Sent, UpstreamError>
    where
        F: Future<Output = Result<Stream, UpstreamError>>,
    {
        let Some((scheme, authority)) = self.origin.as_ref().filter(|_| !self.is_plain.load(Ordering::Acquire)) else {
            return Ok(Sent::Connect(Box::new((request, None))));
        };
        let mut request = request;
        loop {
            let (sender, is_new) = match self.sender(&connect).await? {
                Connected::Shared { sender, is_new } => (sender, is_new),
                Connected::Plain(stream) => {
                    return Ok(Sent::Connect(Box::new((request, stream.map(|stream| *stream)))));
                }
            };
            name_authority(&mut request, scheme, authority)
                .map_err(|error| UpstreamError::Unreachable(error.into()))?;
            match ask(sender, request).await {
                Ok(response) => return Ok(Sent::Answered(response)),
                // The connection had ended before; a new one that ends at once is no better the next time.
                Err(Unanswered(_, Some(unsent))) if !is_new => {
                    request = unsent;
                    name_host(&mut request, authority).map_err(|error| UpstreamError::Unreachable(error.into()))?;
                }
                Err(unanswered) => return Err(unanswered.into()),
            }
        }
    }

    /// The shared connection, or a new one.
    async fn sender<F>(&self, connect: &impl Fn() -> F) -> Result<Connected, UpstreamError>
    where
        F: Future<Output = Result<Stream, UpstreamError>>,
    {
        if let Some(sender) = self.open() {
            return Ok(Connected::Shared { sender, is_new: false });
        }
        // Requests that come together wait for the first one's handshake; if that takes long, each connects by itself.
        let _gate = tokio::time::timeout(GATE, self.gate.lock()).await;
        if let Some(sender) = self.open() {
            return Ok(Connected::Shared { sender, is_new: false });
        }
        if self.is_plain.load(Ordering::Acquire) {
            return Ok(Connected::Plain(None));
        }
        let stream = connect().await?;
        if !speaks_h2(&stream) {
            self.is_plain.store(true, Ordering::Release);
            return Ok(Connected::Plain(Some(Box::new(stream))));
        }
        let sender = handshake(stream).await.map_err(|error| UpstreamError::Unreachable(Box::new(error)))?;
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender.clone());
        Ok(Connected::Shared { sender, is_new: true })
    }

    fn open(&self) -> Option<SendRequest<SentBody>> {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.take_if(|sender| sender.is_closed());
        sender.clone()
    }
}

enum Connected {
    Shared { sender: SendRequest<SentBody>, is_new: bool },
    Plain(Option<Box<Stream>>),
}

fn speaks_h2(stream: &Stream) -> bool {
    match stream {
        MaybeHttpsStream::Http(_) => false,
        MaybeHttpsStream::Https(tls) => tls.inner().get_ref().1.alpn_protocol() == Some(b"h2"),
    }
}

async fn handshake(stream: Stream) -> Result<SendRequest<SentBody>, hyper::Error> {
    let (sender, driver) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .handshake(stream)
        .await?;
    tokio::spawn(async move {
        // What went wrong shows in the answers of the requests that were under way.
        let _ = driver.await;
    });
    Ok(sender)
}

async fn ask(mut sender: SendRequest<SentBody>, request: Request<SentBody>) -> Result<Response<Incoming>, Unanswered> {
    match sender.try_send_request(request).await {
        Ok(mut response) => {
            *response.version_mut() = Version::HTTP_11;
            Ok(response)
        }
        Err(mut error) => {
            let unsent = error.take_message();
            Err(Unanswered(error.into_error(), unsent))
        }
    }
}

/// HTTP/2 names the host in the target (RFC 9113, 8.3.1).
fn name_authority(
    request: &mut Request<SentBody>,
    scheme: &Scheme,
    authority: &Authority,
) -> Result<(), hyper::http::Error> {
    let target = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let target = Uri::builder().scheme(scheme.clone()).authority(authority.clone()).path_and_query(target).build()?;
    *request.uri_mut() = target;
    request.headers_mut().remove(header::HOST);
    Ok(())
}

/// Takes the host out of the target again, for a request that is to go another way.
fn name_host(request: &mut Request<SentBody>, authority: &Authority) -> Result<(), hyper::http::Error> {
    let target = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::builder().path_and_query(target).build()?;
    request.headers_mut().insert(header::HOST, HeaderValue::from_str(authority.as_str())?);
    Ok(())
}
