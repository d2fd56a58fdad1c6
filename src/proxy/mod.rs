//! Listening, and the one way that a request takes (`exchange`). Nothing here knows an API's field names, what a
//! manipulator does, or whether the upstream is real.

mod arrival;
mod ask;
mod background;
mod control;
mod decode;
mod delivery;
mod disturb;
mod error;
mod exchange;
mod faults;
mod fetched;
mod framing;
mod gate;
mod gather;
mod headers;
mod heavy;
mod http_upstream;
mod inject;
pub mod model;
mod multiplexed;
mod open_step;
mod pool;
mod remembered;
mod reshape;
mod recorded_answers;
mod retell;
mod run;
mod runs;
mod socket;
mod tls;
mod tunnel;
mod unmade;
mod upload;
pub mod upstream;
mod waiting;

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

pub use ask::{AnswerFormat, Asking, AskingSettings, Budget, Price, Spent};
use bytes::Bytes;
pub use control::serve_control;
pub use error::ProxyError;
pub use framing::{Framing, FramingError};
pub use gate::{Gate, Token};
pub use http_upstream::{HttpUpstream, Origin, OriginError};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
pub use recorded_answers::RecordedAnswers;
pub use run::Run;
pub use runs::{EndedRun, RunSetup, RunTemplate, Runs};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use self::{
    delivery::Delivery,
    error::Interrupted,
    run::locked,
    socket::{Link, Socket},
    tunnel::Tunnel,
    upstream::Upstream,
};
use crate::{
    identity::Identity,
    surface::{self, OpenaiChat, Surface},
    trajectory::RunId,
};

/// What the system holds for a client that does not read, in bytes; Linux takes twice as much.
const SEND_BUFFER: usize = 256 << 10;

/// Bounds of a server. Times bound one wait each, never a whole exchange: a model may take minutes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest body that is read, in bytes.
    pub max_body_bytes: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// Exchanges at once; one more is answered 503.
    pub max_streams: usize,
    /// Longest wait for a request head, idle connections included.
    pub head_timeout: Duration,
    /// Longest wait for a whole request body.
    pub body_timeout: Duration,
    /// Longest silence of an upstream within a reply.
    pub silence_timeout: Duration,
    /// Longest wait for a client that does not read.
    pub write_timeout: Duration,
    /// Tunnels (`WebSocket`s) at once; one more is answered 503. They count among the exchanges too.
    pub max_tunnels: usize,
    /// Longest silence of both sides of a tunnel, pings included.
    pub tunnel_idle: Duration,
    /// Longest wait for exchanges under way when the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: 32 << 20,
            max_connections: 8192,
            max_streams: 4096,
            head_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_mins(1),
            silence_timeout: Duration::from_mins(10),
            write_timeout: Duration::from_mins(1),
            // Each holds two connections and two buffers, however little it says.
            max_tunnels: 1024,
            // An agent may think for long between two turns on one socket.
            tunnel_idle: Duration::from_mins(30),
            drain: Duration::from_secs(30),
        }
    }
}

/// Everything that an exchange needs.
#[derive(Debug)]
pub struct Proxy {
    /// Who is who.
    pub identity: Identity,
    /// Where requests go.
    pub upstream: Arc<dyn Upstream>,
    /// The runs under way.
    pub runs: Arc<Runs>,
    /// The run of requests that name none; without one they are refused.
    pub default_run: Option<RunId>,
    /// Model patterns of the upstream's routes, in their order.
    pub routes: Vec<regex::Regex>,
    /// Who may ask.
    pub gate: Gate,
    /// Bounds.
    pub limits: Limits,
}

/// Serves until `stop` resolves, then lets exchanges under way end, within the drain limit. Returns how many
/// connections were cut off after it.
pub async fn serve(proxy: Arc<Proxy>, listener: TcpListener, stop: impl Future<Output = ()>) -> usize {
    let connections = Arc::new(Semaphore::new(proxy.limits.max_connections));
    let streams = Arc::new(Semaphore::new(proxy.limits.max_streams));
    let tunnels = Arc::new(Semaphore::new(proxy.limits.max_tunnels));
    let (serving, stopping) = watch::channel(());
    let mut tasks = tokio::task::JoinSet::new();
    // Dropped before the connections, so that what they leave open is recorded as stopped by us.
    let ending = Ending::default();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = accept(&listener, &connections) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let link = Arc::new(Link::new(Arc::clone(&ending.0)));
        let client = Client {
            proxy: Arc::clone(&proxy),
            streams: Arc::clone(&streams),
            tunnels: Arc::clone(&tunnels),
            link,
            tunnel: Mutex::default(),
            is_late: false,
        };
        let connection = connection(Arc::new(client), stream, stopping.clone());
        tasks.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    drop(serving);
    let drained = async { while tasks.join_next().await.is_some() {} };
    let refused = refuse_all(&proxy, listener, &connections);
    let _ = tokio::time::timeout(proxy.limits.drain, async {
        tokio::select! {
            () = drained => {}
            () = refused => {}
        }
    })
    .await;
    let cut = tasks.len();
    drop(ending);
    tasks.shutdown().await;
    cut
}

/// Answers whoever comes while exchanges under way end, for ever.
async fn refuse_all(proxy: &Arc<Proxy>, listener: TcpListener, connections: &Arc<Semaphore>) {
    let none = Arc::new(Semaphore::new(0));
    let (_never, stopping) = watch::channel(());
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = accept(&listener, connections) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let client = Client {
            proxy: Arc::clone(proxy),
            streams: Arc::clone(&none),
            tunnels: Arc::clone(&none),
            link: Arc::default(),
            tunnel: Mutex::default(),
            is_late: true,
        };
        let connection = connection(Arc::new(client), stream, stopping.clone());
        tasks.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
}

/// Tells the exchanges that are left, once it is dropped, that the server ends them.
#[derive(Default)]
struct Ending(Arc<AtomicBool>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Waits for a connection and a place for it.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            let _ = stream.set_nodelay(true);
            // Without a bound the system takes megabytes for a client that does not read, and so does its record.
            let _ = socket2::SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
            Some((stream, permit))
        }
        Err(error) => {
            // Out of descriptors, most likely: a pause lets some be freed.
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// What the exchanges of one connection share.
struct Client {
    proxy: Arc<Proxy>,
    streams: Arc<Semaphore>,
    tunnels: Arc<Semaphore>,
    link: Arc<Link>,
    /// What the connection turns into after its last exchange.
    tunnel: Mutex<Option<Box<Tunnel>>>,
    /// It came when the server was told to stop already.
    is_late: bool,
}

/// Serves one connection to its end.
async fn connection(client: Arc<Client>, stream: tokio::net::TcpStream, mut stopping: watch::Receiver<()>) {
    let limits = &client.proxy.limits;
    let socket = Socket::new(stream, Arc::clone(&client.link), limits.write_timeout);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .auto_date_header(false)
        .keep_alive(!client.is_late)
        .preserve_header_case(true);
    let answering = Arc::clone(&client);
    let service = service_fn(move |request| answer(Arc::clone(&answering), request));
    let mut served = pin!(builder.serve_connection(TokioIo::new(socket), service).with_upgrades());
    let ended = tokio::select! {
        biased;
        ended = &mut served => ended,
        _ = stopping.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    // What went wrong is recorded with the step; the connection itself has nobody left to tell.
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
    let tunnel = locked(&client.tunnel).take();
    if let Some(tunnel) = tunnel {
        tunnel.run().await;
    }
}

/// Answers a request: by the exchange, or by an error of our own. An error of this function ends the connection.
async fn answer(client: Arc<Client>, request: Request<Incoming>) -> Result<Response<Box<Delivery>>, Hushed> {
    let Client { proxy, streams, tunnels, link, tunnel, is_late } = &*client;
    let limit = proxy.limits.max_streams;
    let surface = surface::for_path(request.method().as_str(), request.uri().path()).unwrap_or(&OpenaiChat);
    if *is_late {
        return Ok(refuse(&ProxyError::Stopping, surface));
    }
    let Ok(permit) = Arc::clone(streams).try_acquire_owned() else {
        return Ok(refuse(&ProxyError::Busy { limit }, surface));
    };
    let (parts, body) = request.into_parts();
    let is_tunnel = headers::asks_for_websocket(&parts);
    let request = Request::from_parts(parts, body);
    let place = if is_tunnel {
        let limit = proxy.limits.max_tunnels;
        let Ok(place) = Arc::clone(tunnels).try_acquire_owned() else {
            return Ok(refuse(&ProxyError::BusyTunnels { limit }, surface));
        };
        Some(place)
    } else {
        None
    };
    match contained(pin!(proxy.exchange(request, link))).await {
        Ok(Ok(response)) => Ok(response.map(|mut delivery| match delivery.tunnel.take() {
            None => delivery.over(Arc::clone(link), permit),
            Some(mut opened) => {
                opened.permits = (Some(permit), place);
                *locked(tunnel) = Some(opened);
                delivery
            }
        })),
        Ok(Err(Interrupted::Error(error))) => Ok(refuse(&error, surface)),
        Ok(Err(Interrupted::Hushed)) => Err(Hushed),
        Err(Panicked) => Ok(refuse(&ProxyError::Internal, surface)),
    }
}

/// The answer for an error of our own, in the shape of the API that was asked.
fn refuse(error: &ProxyError, surface: &dyn Surface) -> Response<Box<Delivery>> {
    if let ProxyError::Id(_) = error {
        // A malformed hint may be a key that was put in the wrong place: only its sender is told what it was.
        tracing::warn!("answered by the proxy: a run or agent hint is malformed");
    } else {
        tracing::warn!(%error, "answered by the proxy");
    }
    error.response(surface).map(|body: Bytes| Delivery::made(body))
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
