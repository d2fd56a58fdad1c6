//! The connections to an origin that offers HTTP/2 (RFC 9113, by ALPN): one for all requests, each driven by a task of
//! its own, and a further one where the origin allows no more streams on those that are there. What a handshake said
//! counts for its connection; the next may say otherwise.

use std::{
    error::Error,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http_body_util::Either;
use hyper::{
    Request, Response, Uri, Version,
    body::{Body, Incoming},
    client::conn::http2::{self, SendRequest},
    header,
    http::uri::{Authority, PathAndQuery, Scheme},
};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::watch;

use super::{
    connection::{CONNECT_TIMEOUT, Stream, UnansweredRequest},
    error::UpstreamError,
    upload::SentBody,
};
use crate::proxy::listen::framing::HEAD_MAX;

/// What is held of one reply for a client that does not read, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
/// What is held of all replies together: so much that slow readers never stop the others.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// How often a connection with requests under way is asked whether it is still there, and how long it may take.
const PING: Duration = Duration::from_secs(20);
/// Longest wait for another request's handshake to end.
const GATE: Duration = Duration::from_secs(1);
/// How long a connection beside the first is kept without a request.
const IDLE: Duration = Duration::from_mins(1);
/// Most connections; further requests wait on the one with the fewest.
const LINES_MAX: usize = 64;
/// How often a request is sent that the origin says not to have processed.
const TRIES: usize = 32;

/// The connections to one origin, if that speaks HTTP/2.
pub(super) struct Multiplexed {
    /// Set for an origin that may offer HTTP/2: one over TLS.
    origin: Option<(Scheme, Authority)>,
    /// The origin has said in its last handshake that it speaks HTTP/1.1: its next ones need not wait for each other.
    is_plain: AtomicBool,
    /// Each with the time of its last request.
    lines: Mutex<Vec<(Arc<H2Connection>, Instant)>>,
    /// Held by the one that connects.
    gate: tokio::sync::Mutex<()>,
}

/// A connection.
struct H2Connection {
    sender: SendRequest<SentBody>,
    /// How many streams the origin allows at once; 0 until it has said.
    room: watch::Receiver<usize>,
    open: AtomicUsize,
}

/// A request's place on a connection, until its reply is over.
pub(super) struct Lease(Arc<H2Connection>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What came of a request.
pub(super) enum H2Sent {
    /// It was answered, on this connection.
    Answered(Response<Incoming>, Lease),
    /// It is to go over HTTP/1.1: itself, and the stream that was opened for it, if one was.
    Connect(Box<(Request<SentBody>, Option<Stream>)>),
}

/// What there is for a request.
enum H2Place {
    Free(Lease),
    /// On a connection whose origin has not said yet how many it allows.
    Settling(watch::Receiver<usize>),
    None,
}

enum Connected {
    Shared(Lease),
    Plain(Box<Stream>),
}

impl Multiplexed {
    /// No connection yet to this origin.
    pub(super) fn new(origin: &Uri) -> Self {
        let tls = origin.scheme().zip(origin.authority()).filter(|(scheme, _)| *scheme == &Scheme::HTTPS);
        Self {
            origin: tls.map(|(scheme, authority)| (scheme.clone(), authority.clone())),
            is_plain: AtomicBool::new(false),
            lines: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a request over a shared connection; where there is none with room, `connect` opens one. One that the
    /// origin says not to have processed (RFC 9113, 8.7) is sent again: nothing can have come of it.
    pub(super) async fn send<F>(
        &self,
        mut request: Request<SentBody>,
        connect: impl Fn() -> F,
    ) -> Result<H2Sent, UpstreamError>
    where
        F: Future<Output = Result<Stream, UpstreamError>>,
    {
        let Some((scheme, authority)) = &self.origin else {
            return Ok(H2Sent::Connect(Box::new((request, None))));
        };
        let mut tries = 1;
        loop {
            let lease = match self.lease(&connect).await? {
                Connected::Shared(lease) => lease,
                Connected::Plain(stream) => return Ok(H2Sent::Connect(Box::new((request, Some(*stream))))),
            };
            let kept = copy(&request);
            let host = request.headers().get(header::HOST).cloned();
            name_authority(&mut request, scheme, authority).map_err(UpstreamError::unreachable)?;
            let unanswered = match lease.ask(request).await? {
                Ok(response) => return Ok(H2Sent::Answered(response, lease)),
                Err(unanswered) => unanswered,
            };
            request = match unanswered {
                // The connection had ended before.
                UnansweredRequest(_, Some(mut unsent)) if tries < TRIES => {
                    name_host(&mut unsent, host).map_err(UpstreamError::unreachable)?;
                    unsent
                }
                UnansweredRequest(error, None) if tries < TRIES && is_unprocessed(&error) => match kept {
                    Some(kept) => kept,
                    None => return Err(UnansweredRequest(error, None).into()),
                },
                unanswered => return Err(unanswered.into()),
            };
            tries += 1;
        }
    }

    /// A place on a connection that is there, or on a new one.
    async fn lease<F>(&self, connect: &impl Fn() -> F) -> Result<Connected, UpstreamError>
    where
        F: Future<Output = Result<Stream, UpstreamError>>,
    {
        if let Some(lease) = self.place().await {
            return Ok(Connected::Shared(lease));
        }
        // Requests that come together wait for the first one's handshake; if that takes long, each connects by itself.
        let mut gate = None;
        if !self.is_plain.load(Ordering::Acquire) {
            gate = tokio::time::timeout(GATE, self.gate.lock()).await.ok();
            if let Some(lease) = self.place().await {
                return Ok(Connected::Shared(lease));
            }
        }
        if self.is_plain.load(Ordering::Acquire) {
            drop(gate.take());
        }
        let stream = match connect().await {
            Ok(stream) => stream,
            // No further connection, but those that are there live: the request waits its turn.
            Err(error) => return self.least_loaded().map(Connected::Shared).ok_or(error),
        };
        let is_plain = !speaks_h2(&stream);
        self.is_plain.store(is_plain, Ordering::Release);
        if is_plain {
            return Ok(Connected::Plain(Box::new(stream)));
        }
        let line = Arc::new(H2Connection::new(stream).await.map_err(UpstreamError::unreachable)?);
        let lease = H2Connection::lease(&line);
        self.lines().push((line, Instant::now()));
        Ok(Connected::Shared(lease))
    }

    /// A place on a connection that is there.
    async fn place(&self) -> Option<Lease> {
        loop {
            match self.look() {
                H2Place::Free(lease) => return Some(lease),
                H2Place::Settling(mut room) => {
                    let settled = async { room.wait_for(|room| *room > 0).await.is_ok() };
                    if !tokio::time::timeout(GATE, settled).await.unwrap_or(false) {
                        return None;
                    }
                }
                H2Place::None => return None,
            }
        }
    }

    fn look(&self) -> H2Place {
        let mut lines = self.lines();
        let now = Instant::now();
        let mut first = true;
        lines.retain(|(line, used)| {
            let spare = !std::mem::take(&mut first) && line.is_idle() && now - *used > IDLE;
            !line.sender.is_closed() && !spare
        });
        if let Some((line, used)) = lines.iter_mut().find(|(line, _)| line.has_room()) {
            *used = now;
            return H2Place::Free(H2Connection::lease(line));
        }
        if let Some((line, _)) = lines.iter().find(|(line, _)| *line.room.borrow() == 0) {
            return H2Place::Settling(line.room.clone());
        }
        if lines.len() < LINES_MAX {
            return H2Place::None;
        }
        drop(lines);
        self.least_loaded().map_or(H2Place::None, H2Place::Free)
    }

    /// A place on the connection with the fewest requests, whether it has room or not.
    fn least_loaded(&self) -> Option<Lease> {
        let lines = self.lines();
        let open = lines.iter().map(|(line, _)| line).filter(|line| !line.sender.is_closed());
        open.min_by_key(|line| line.open.load(Ordering::Acquire)).map(H2Connection::lease)
    }

    fn lines(&self) -> MutexGuard<'_, Vec<(Arc<H2Connection>, Instant)>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl H2Connection {
    async fn new(stream: Stream) -> Result<Self, hyper::Error> {
        let (sender, mut driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(HEAD_MAX).unwrap_or(u32::MAX))
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            // None before the origin has said how many: what it would refuse, or queue, goes elsewhere.
            .initial_max_send_streams(0)
            .handshake(stream)
            .await?;
        let (told, room) = watch::channel(0);
        // What goes wrong shows in the answers of the requests that are under way.
        tokio::spawn(poll_fn(move |context| {
            let polled = Pin::new(&mut driver).poll(context).map(drop);
            let now = driver.current_max_send_streams();
            told.send_if_modified(|room| std::mem::replace(room, now) != now);
            polled
        }));
        Ok(Self { sender, room, open: AtomicUsize::new(0) })
    }

    fn lease(line: &Arc<Self>) -> Lease {
        line.open.fetch_add(1, Ordering::AcqRel);
        Lease(Arc::clone(line))
    }

    fn has_room(&self) -> bool {
        self.open.load(Ordering::Acquire) < *self.room.borrow()
    }

    fn is_idle(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }
}

impl Lease {
    /// Sends a request. The inner error is of the request, the outer one of a connection that never came about.
    async fn ask(
        &self,
        request: Request<SentBody>,
    ) -> Result<Result<Response<Incoming>, UnansweredRequest>, UpstreamError> {
        let (mut sender, mut room) = (self.0.sender.clone(), self.0.room.clone());
        let mut asked = pin!(sender.try_send_request(request));
        let settling = async { room.wait_for(|room| *room > 0).await.is_ok() };
        let settling = tokio::time::timeout(CONNECT_TIMEOUT, settling);
        let answered = tokio::select! {
            biased;
            answered = &mut asked => answered,
            settled = settling => match settled {
                Ok(_) => asked.await,
                Err(_) => return Err(UpstreamError::unreachable("it speaks HTTP/2, but sends no settings")),
            },
        };
        Ok(match answered {
            Ok(mut response) => {
                *response.version_mut() = Version::HTTP_11;
                Ok(response)
            }
            Err(mut error) => {
                let unsent = error.take_message();
                Err(UnansweredRequest(error.into_error(), unsent))
            }
        })
    }
}

/// Whether the origin says, or the connection knows, that nothing was made of a request: its stream lies above the last
/// one of a GOAWAY, was refused, or was never opened.
fn is_unprocessed(error: &hyper::Error) -> bool {
    if error.is_user() {
        // The connection was told to end while the request waited for its stream.
        return true;
    }
    let Some(h2) = error.source().and_then(|source| source.downcast_ref::<h2::Error>()) else { return false };
    h2.is_remote() && (h2.is_go_away() || h2.reason() == Some(h2::Reason::REFUSED_STREAM))
}

/// The request once more, where its body can be sent twice.
fn copy(request: &Request<SentBody>) -> Option<Request<SentBody>> {
    let body = match request.body() {
        Either::Left(whole) => whole.clone(),
        Either::Right(streamed) if streamed.is_end_stream() => http_body_util::Full::default(),
        Either::Right(_) => return None,
    };
    let mut copy = Request::new(Either::Left(body));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

fn speaks_h2(stream: &Stream) -> bool {
    match stream {
        MaybeHttpsStream::Http(_) => false,
        MaybeHttpsStream::Https(tls) => tls.inner().get_ref().1.alpn_protocol() == Some(b"h2"),
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
fn name_host(request: &mut Request<SentBody>, host: Option<header::HeaderValue>) -> Result<(), hyper::http::Error> {
    let target = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::builder().path_and_query(target).build()?;
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
    Ok(())
}
