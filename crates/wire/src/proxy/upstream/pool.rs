//! Connections to one origin. Each is driven by the exchange that uses it, so a request passes without another task
//! having to wake; idle ones wait here, and are looked at when they are taken out. An origin that offers HTTP/2 has
//! connections that all share (`multiplexed`).

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    os::fd::{AsRawFd, RawFd},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{
    Request, Response, StatusCode, Uri,
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1::{self, SendRequest},
    header,
    service::Service,
};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, service::TowerToHyperService};

use super::{
    connection::{CONNECT_TIMEOUT, Stream, UnansweredRequest},
    error::{BodyError, UpstreamError},
    multiplexed::{self, Lease, Multiplexed},
    upload::SentBody,
};

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The same without TLS: servers in Python and Node, which stand near and speak so, close what was idle for five seconds, and a
/// request that meets the close is lost. A new connection costs little there.
const PLAIN_IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// Most idle connections; further ones are closed.
const IDLE_MAX: usize = 1024;

/// A connection that may switch to another protocol; hyper does not name its type.
type Driver = dyn Future<Output = hyper::Result<()>> + Send;

/// The connections to one origin.
pub(super) struct Pool {
    connector: HttpsConnector<HttpConnector>,
    /// Offers HTTP/1.1 alone: only there a connection can switch to another protocol.
    plain: HttpsConnector<HttpConnector>,
    origin: Uri,
    shared: Multiplexed,
    /// Oldest first.
    idle: Mutex<VecDeque<(Wire, Instant)>>,
}

/// A connection.
struct Wire {
    sender: SendRequest<SentBody>,
    /// What moves bytes; `None` once the connection is over.
    driver: Option<Pin<Box<Driver>>>,
    /// The socket, which the driver owns.
    socket: RawFd,
}

impl Pool {
    /// No connection yet to this origin (scheme and authority). `plain` offers HTTP/1.1 alone.
    pub(super) fn new(
        connector: HttpsConnector<HttpConnector>,
        plain: HttpsConnector<HttpConnector>,
        origin: Uri,
    ) -> Self {
        let shared = Multiplexed::new(&origin);
        Self { connector, plain, origin, shared, idle: Mutex::default() }
    }

    /// Sends a request over an idle connection or a new one. One that the upstream closed while it was idle costs
    /// nothing but another try.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Box<Request<SentBody>>,
    ) -> Result<Response<Live>, UpstreamError> {
        let switches = request.headers().contains_key(header::UPGRADE);
        while let Some(wire) = self.take() {
            match wire.ask(request).await {
                Ok((response, wire)) => return Ok(self.received(response, wire)),
                Err(UnansweredRequest(_, Some(unsent))) => request = Box::new(unsent),
                Err(unanswered) => return Err(unanswered.into()),
            }
        }
        // Rare, and large: boxed, so that the common way does not carry it.
        Box::pin(self.connect(*request, switches)).await
    }

    /// Sends a request over a connection that all share, or over a new one.
    async fn connect(
        self: &Arc<Self>,
        mut request: Request<SentBody>,
        switches: bool,
    ) -> Result<Response<Live>, UpstreamError> {
        let stream = if switches {
            self.stream(&self.plain).await?
        } else {
            match self.shared.send(request, || self.stream(&self.connector)).await? {
                multiplexed::H2Sent::Answered(response, lease) => return Ok(self.shared_reply(response, Some(lease))),
                multiplexed::H2Sent::Connect(unsent) => {
                    let (unsent, stream) = *unsent;
                    request = unsent;
                    match stream {
                        Some(stream) => stream,
                        None => self.stream(&self.connector).await?,
                    }
                }
            }
        };
        let wire = Wire::new(stream).await.map_err(UpstreamError::unreachable)?;
        let (response, wire) = wire.ask(Box::new(request)).await?;
        Ok(self.received(response, wire))
    }

    async fn stream(&self, connector: &HttpsConnector<HttpConnector>) -> Result<Stream, UpstreamError> {
        let connected = TowerToHyperService::new(connector.clone()).call(self.origin.clone());
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connected).await;
        connected
            .unwrap_or_else(|_| Err(format!("no connection within {CONNECT_TIMEOUT:?}, TLS handshake included").into()))
            .map_err(UpstreamError::unreachable)
    }

    /// The idle connection that was used last, if it is still open.
    fn take(&self) -> Option<Wire> {
        loop {
            let (mut wire, since) = self.idle().pop_back()?;
            if since.elapsed() < self.idle_timeout() && wire.is_still_open() {
                return Some(wire);
            }
        }
    }

    /// Keeps a connection whose exchange is over, and lets go of those that nobody has used for long.
    fn give_back(&self, mut wire: Wire) {
        if !wire.is_idle() {
            return;
        }
        let timeout = self.idle_timeout();
        let mut idle = self.idle();
        let now = Instant::now();
        idle.push_back((wire, now));
        while idle.len() > IDLE_MAX || idle.front().is_some_and(|(_, since)| now - *since >= timeout) {
            idle.pop_front();
        }
    }

    fn idle_timeout(&self) -> Duration {
        let is_plain = self.origin.scheme_str() == Some("http");
        if is_plain { PLAIN_IDLE_TIMEOUT } else { IDLE_TIMEOUT }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<(Wire, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn received(self: &Arc<Self>, response: Response<Incoming>, wire: Wire) -> Response<Live> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // The connection is no longer ours: it ends when the tunnel does.
            if let Some(driver) = wire.driver {
                tokio::spawn(async move {
                    let _ = driver.await;
                });
            }
            return self.shared_reply(response, None);
        }
        response.map(|body| Live { body, wire: Some(wire), lease: None, pool: Arc::clone(self) })
    }

    /// A reply over a connection that another task drives.
    fn shared_reply(self: &Arc<Self>, response: Response<Incoming>, lease: Option<Lease>) -> Response<Live> {
        response.map(|body| Live { body, wire: None, lease, pool: Arc::clone(self) })
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Wire {
    async fn new(stream: Stream) -> Result<Self, hyper::Error> {
        let socket = match &stream {
            MaybeHttpsStream::Http(plain) => plain.inner().as_raw_fd(),
            MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner().inner().as_raw_fd(),
        };
        let (sender, driver) = http1::Builder::new().preserve_header_case(true).handshake(stream).await?;
        Ok(Self { sender, driver: Some(Box::pin(driver.with_upgrades())), socket })
    }

    /// Sends a request and drives the connection until the head of the answer is there.
    async fn ask(mut self, request: Box<Request<SentBody>>) -> Result<(Response<Incoming>, Self), UnansweredRequest> {
        let mut answer = pin!(self.sender.try_send_request(*request));
        let answered = poll_fn(|context| {
            drive(&mut self.driver, context);
            answer.as_mut().poll(context)
        });
        match answered.await {
            Ok(response) => Ok((response, self)),
            Err(mut error) => {
                let unsent = error.take_message();
                Err(UnansweredRequest(error.into_error(), unsent))
            }
        }
    }

    /// Whether the upstream has left it open since it went idle. The system is asked itself: nobody has waited for the
    /// socket, so the runtime may not have heard. What has come unasked is the driver's to judge.
    fn is_still_open(&mut self) -> bool {
        use nix::sys::socket::{MsgFlags, recv};
        match recv(self.socket, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) {
            Ok(0) => false,
            Ok(_) => self.is_idle(),
            Err(error) => error == nix::errno::Errno::EAGAIN && self.sender.is_ready(),
        }
    }

    /// Whether it is open and has nothing under way.
    fn is_idle(&mut self) -> bool {
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Moves what can be moved. What went wrong shows in the answer or in its body.
fn drive(driver: &mut Option<Pin<Box<Driver>>>, context: &mut Context<'_>) {
    if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(context).is_ready()) {
        *driver = None;
    }
}

/// A reply's body with the connection that it comes over. Dropped before its end, it closes the connection.
pub struct Live {
    body: Incoming,
    wire: Option<Wire>,
    /// Its place on a connection that all share, until it is over.
    lease: Option<Lease>,
    pool: Arc<Pool>,
}

impl Live {
    /// Once the body is over, the connection is free for others.
    fn release_if_over(&mut self) {
        if self.body.is_end_stream() {
            self.lease = None;
            if let Some(wire) = self.wire.take() {
                self.pool.give_back(wire);
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.release_if_over();
    }
}

impl Body for Live {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(wire) = &mut self.wire {
            drive(&mut wire.driver, context);
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match &frame {
            Poll::Ready(Some(_)) => self.release_if_over(),
            Poll::Ready(None) => {
                // hyper takes a stream that was reset without an error, or given up by a GOAWAY, for one that ended.
                let cut = self.lease.take().is_some() && !self.body.is_end_stream();
                if let Some(wire) = self.wire.take() {
                    self.pool.give_back(wire);
                }
                if cut {
                    return Poll::Ready(Some(Err(BodyError::Reset)));
                }
            }
            Poll::Pending => {}
        }
        frame.map(|frame| frame.map(|frame| Ok(frame?)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Live").field("body", &self.body).finish_non_exhaustive()
    }
}
