//! Listening: connections, their limits, and the end of a server. What is asked on them goes down the line (`exchange`).

mod control;
mod places;
pub(super) mod framing;
pub(super) mod gate;
mod health;
pub(super) mod http_route;
pub(super) mod socket;
mod token;

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
pub use control::{CONTROL_CODES, CONTROL_ROUTES, ControlRoute, audit_schema, control_error_schema, serve_control};
pub use health::HEALTH_PATHS;
use hyper::{
    Request, Response, Uri,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};
use tracing::{Instrument, Span, field};

use self::{
    places::ConnectionPlaces,
    socket::{AnswerUnderWay, Link, Socket},
};
use super::{
    arrival::{self, Arrived, Kind},
    attached,
    delivery::Delivery,
    error::{Interrupted, ProxyError},
    lock::locked,
    server::Server,
    tunnel::{SocketOpener, SwitchedConnection},
};
use crate::{identity::route, surface::Surface};

/// How long those who came while the server stopped have to read their answer.
const LATE_ANSWERS: Duration = Duration::from_secs(1);
/// How long exchanges that are cut off may take to end.
const CUT_DUE: Duration = Duration::from_millis(500);
/// How long a connection whose place is wanted may take to send its request.
const REQUEST_DUE: Duration = Duration::from_secs(1);

/// Serves until `stop` resolves, then lets exchanges under way end, within the drain limit. Returns how many
/// connections were cut off after it.
pub async fn serve(server: impl Into<Server>, listener: TcpListener, stop: impl Future<Output = ()>) -> usize {
    let server = server.into();
    let limits = &server.line.limits;
    let places = ConnectionPlaces::new(limits.max_connections);
    let streams = Arc::new(Semaphore::new(limits.max_streams));
    let tunnels = Arc::new(Semaphore::new(limits.max_tunnels));
    let (serving, stopping) = watch::channel(());
    let mut tasks = tokio::task::JoinSet::new();
    // Dropped before the connections, so that what they leave open is recorded as stopped by us.
    let ending = EndSignal::default();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = places.accept(&listener) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let link = Arc::new(Link::new(Arc::clone(&ending.0)));
        let client = Client {
            server: server.clone(),
            streams: Arc::clone(&streams),
            tunnels: Arc::clone(&tunnels),
            link,
            stopping: stopping.clone(),
            switched: Mutex::default(),
            late: None,
        };
        let connection = connection(
            Arc::new(client),
            stream,
            ConnectionEnds { stopping: stopping.clone(), wanted: places.wanted() },
        );
        tasks.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    drop(serving);
    server.lines().iter().for_each(|line| line.runs.attachments.stop());
    let (draining, over) = watch::channel(());
    let drained = async {
        let _ = tokio::time::timeout(limits.drain, async { while tasks.join_next().await.is_some() {} }).await;
        drop(draining);
    };
    tokio::join!(drained, refuse_all(&server, listener, &places, over));
    let cut = tasks.len();
    drop(ending);
    tasks.abort_all();
    // An exchange ends where it waits next. One that works on a large body does not wait soon, and is left.
    let _ = tokio::time::timeout(CUT_DUE, async { while tasks.join_next().await.is_some() {} }).await;
    cut
}

/// Answers whoever comes while exchanges under way end. A request is held until they have: who is told then to try again finds the
/// next server, and spends one try of the few that its SDK has, however long the drain takes.
async fn refuse_all(server: &Server, listener: TcpListener, places: &ConnectionPlaces, mut over: watch::Receiver<()>) {
    let none = Arc::new(Semaphore::new(0));
    let (_never, stopping) = watch::channel(());
    let mut tasks = tokio::task::JoinSet::new();
    let held = over.clone();
    loop {
        let accepted = tokio::select! {
            _ = over.changed() => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = places.accept(&listener) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let client = Client {
            server: server.clone(),
            streams: Arc::clone(&none),
            tunnels: Arc::clone(&none),
            link: Arc::default(),
            stopping: stopping.clone(),
            switched: Mutex::default(),
            late: Some(held.clone()),
        };
        let connection = connection(
            Arc::new(client),
            stream,
            ConnectionEnds { stopping: stopping.clone(), wanted: places.wanted() },
        );
        tasks.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LATE_ANSWERS, async { while tasks.join_next().await.is_some() {} }).await;
}

/// Tells the exchanges that are left, once it is dropped, that the server ends them.
#[derive(Default)]
struct EndSignal(Arc<AtomicBool>);

impl Drop for EndSignal {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// What the exchanges of one connection share.
struct Client {
    server: Server,
    streams: Arc<Semaphore>,
    tunnels: Arc<Semaphore>,
    link: Arc<Link>,
    /// Changes when the server stops.
    stopping: watch::Receiver<()>,
    /// What the connection turns into after its last exchange.
    switched: Mutex<Option<(SwitchedConnection, SocketOpener)>>,
    /// It came when the server was told to stop already: ends when the exchanges under way have.
    late: Option<watch::Receiver<()>>,
}

impl Client {
    /// A place among the exchanges under way; `None` where the reply to one of them comes, which has its place.
    ///
    /// # Errors
    /// The server stops, or all places are taken.
    async fn permit(&self, path: &str) -> Result<Option<OwnedSemaphorePermit>, ProxyError> {
        let brings_reply = attached::brings_reply(path);
        if let Some(late) = self.late.as_ref().filter(|_| !brings_reply) {
            // It ends by its sender's end.
            let _ = late.clone().changed().await;
            return Err(ProxyError::Stopping);
        }
        match Arc::clone(&self.streams).try_acquire_owned() {
            Ok(permit) => Ok(Some(permit)),
            Err(_) if brings_reply => Ok(None),
            Err(_) => Err(ProxyError::Busy { limit: self.server.line.limits.max_streams }),
        }
    }
}

/// What ends a connection from our side.
struct ConnectionEnds {
    /// The server stops.
    stopping: watch::Receiver<()>,
    /// Somebody waits for its place.
    wanted: watch::Receiver<u64>,
}

/// Serves one connection to its end.
async fn connection(client: Arc<Client>, stream: tokio::net::TcpStream, mut ends: ConnectionEnds) {
    let limits = &client.server.line.limits;
    let peer = stream.peer_addr().map(|address| address.to_string()).unwrap_or_default();
    let socket = Socket::new(stream, Arc::clone(&client.link), limits.write_timeout);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .auto_date_header(false)
        .keep_alive(client.late.is_none())
        .preserve_header_case(true);
    let answering = Arc::clone(&client);
    let service = service_fn(move |request: Request<Incoming>| {
        // At once: the client may have ended its half before the answer is first looked at.
        let under_way = answering.link.answer(request.version());
        // What is logged of a request says whose it is. Its path and run are written in once they are known to hold no key.
        let span = tracing::error_span!("request", client = peer.as_str(), path = field::Empty, run = field::Empty);
        answer(Arc::clone(&answering), request, under_way).instrument(span)
    });
    let mut served = pin!(builder.serve_connection(TokioIo::new(socket), service).with_upgrades());
    let ended = tokio::select! {
        biased;
        ended = &mut served => ended,
        _ = ends.stopping.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
        // One that is idle ends at once, another with its answer, and one whose request does not come, soon.
        Ok(()) = ends.wanted.changed() => {
            // The first request of who has just come may be on its way, and nobody sends it twice.
            let due = if client.link.has_asked() { Duration::ZERO } else { REQUEST_DUE };
            if let Ok(ended) = tokio::time::timeout(due, served.as_mut()).await {
                ended
            } else {
                served.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = &mut served => ended,
                    () = tokio::time::sleep(REQUEST_DUE) => {
                        if !client.link.is_answering() {
                            return;
                        }
                        served.await
                    }
                }
            }
        }
    };
    // What went wrong is recorded with the step; the connection itself has nobody left to tell.
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
    let switched = locked(&client.switched).take();
    if let Some((switched, opener)) = switched {
        switched.run(opener).await;
    }
}

/// Answers a request: by the exchange, or by an error of our own. An error of this function ends the connection.
async fn answer(
    client: Arc<Client>,
    request: Request<Incoming>,
    under_way: AnswerUnderWay,
) -> Result<Response<Box<Delivery>>, Hushed> {
    let answered = answer_any(&client, request).await;
    answered.map(|response| response.map(|delivery| delivery.answering(under_way)))
}

async fn answer_any(client: &Client, request: Request<Incoming>) -> Result<Response<Box<Delivery>>, Hushed> {
    let Client { server, tunnels, link, switched, late, .. } = client;
    if let Some(answered) = health::answer(&server.line, &request, late.is_some()).await {
        return Ok(answered);
    }
    let uri = request.uri().clone();
    let permit = match client.permit(uri.path()).await {
        Ok(permit) => permit,
        Err(error) => return Ok(refuse_at_door(&error, arrival::spoken_at(request.method(), &uri), &uri)),
    };
    // A user has a line of its own. Whoever shows the token of none meets the gate of the server, which refuses it.
    let users = server.users.as_ref();
    let user = users.and_then(|users| users.find(gate::shown_token(request.headers(), &uri)?));
    let proxy = user.as_ref().map_or(&server.line, |user| &user.line);
    let arrived = match Arrived::read(request, &proxy.gate, &proxy.identity.hints, &proxy.servers) {
        Ok(arrived) => arrived,
        Err((error, surface)) => return Ok(refuse_at_door(&error, surface, &uri)),
    };
    Span::current().record("path", arrived.parts.uri.path());
    let surface = arrived.kind.spoken();
    if permit.is_none() && !matches!(arrived.kind, Kind::Attached) {
        return Ok(refuse(&ProxyError::Busy { limit: proxy.limits.max_streams }, surface));
    }
    let asking = user.as_ref().filter(|_| !matches!(arrived.kind, Kind::Attached));
    if let Some(Err(error)) = asking.map(|user| user.take_request(arrived.body.size_hint().lower())) {
        return Ok(refuse(&error, surface));
    }
    let limit = proxy.limits.max_tunnels;
    let place = match arrived.kind {
        Kind::Tunnel | Kind::Frames(_) => match Arc::clone(tunnels).try_acquire_owned() {
            Ok(place) => Some(place),
            Err(_) if limit == 0 => return Ok(refuse(&ProxyError::NoWebSocket, surface)),
            Err(_) => return Ok(refuse(&ProxyError::BusyTunnels { limit }, surface)),
        },
        _ => None,
    };
    match contained(pin!(proxy.exchange(arrived, link))).await {
        Ok(Ok(response)) => Ok(response.map(|mut delivery| match delivery.switched.take() {
            None => match permit {
                Some(permit) => delivery.over(Arc::clone(link), permit),
                None => delivery,
            },
            Some(opened) => {
                let user = users.cloned().zip(user.clone());
                let (line, stopping) = (Arc::clone(proxy), client.stopping.clone());
                let opener = SocketOpener { line, user, stopping, permits: (permit, place) };
                *locked(switched) = Some((opened, opener));
                delivery
            }
        })),
        Ok(Err(Interrupted::Error(error))) => {
            let error = match &user {
                Some(user) => user.limited(error),
                None => error,
            };
            Ok(refuse(&error, surface))
        }
        Ok(Err(Interrupted::Hushed)) => Err(Hushed),
        Err(Panicked) => Ok(refuse(&ProxyError::Internal, surface)),
    }
}

/// The same of a request whose path was not read yet.
fn refuse_at_door(error: &ProxyError, surface: &dyn Surface, uri: &Uri) -> Response<Box<Delivery>> {
    let path = gate::path_without_token(uri.path());
    Span::current().record("path", &path);
    if let Some(run) = route(path.strip_prefix("/t/<token>").unwrap_or(&path)).run {
        Span::current().record("run", run);
    }
    refuse(error, surface)
}

/// The answer for an error of our own, in the shape of the API that was asked.
fn refuse(error: &ProxyError, surface: &dyn Surface) -> Response<Box<Delivery>> {
    if let ProxyError::Id(_) = error {
        // A malformed hint may be a key that was put in the wrong place: only its sender is told what it was.
        tracing::warn!("answered by the proxy: a run or agent hint is malformed");
    } else {
        tracing::warn!(%error, "answered by the proxy");
    }
    error.response(surface).map(|body: Bytes| Delivery::composed(body))
}

/// The connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection was closed")]
struct Hushed;

/// A defect ended an exchange.
struct Panicked;

/// Keeps a defect in one exchange from ending the others of its connection.
async fn contained<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    std::future::poll_fn(move |context| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
