//! A WebSocket: what passes in it is not looked at. It is recorded as a step with its byte counts, marked uninspected,
//! and whatever a plan wants done inside it is said to be undeliverable.
//!
//! Only the upstream's own `101` opens a tunnel. It holds one buffer for each direction, its place among the
//! connections, exchanges and tunnels under way, and its record is closed before the client sees its end. One in which
//! neither side says anything for too long is closed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    http::request::Parts,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    sync::OwnedSemaphorePermit,
};

use super::{
    Proxy,
    arrival::{Hinted, Kind},
    delivery::Delivery,
    error::Interrupted,
    exchange::{ModelCall, closed, deliver},
    faults, headers,
    inject::{self, Decided},
    open_step::OpenStep,
    socket::Link,
    unmade,
    upstream::UpstreamError,
};
use crate::trajectory::{CloseCause, Uninspected};

/// Bytes that are held in each direction.
const BUFFER: usize = 16 << 10;
/// Longest wait for the upstream's end once the client has ended.
const LINGER: Duration = Duration::from_secs(10);
/// Why a plan can do nothing in it.
const UNINSPECTED: &str = "the step is a WebSocket, which passes uninspected";

/// What has passed so far, in bytes, and when it last did.
#[derive(Debug)]
pub(super) struct Counts {
    from_client: AtomicU64,
    from_upstream: AtomicU64,
    opened: tokio::time::Instant,
    /// Microseconds after the opening.
    last_us: AtomicU64,
}

impl Counts {
    fn new() -> Self {
        Self {
            from_client: AtomicU64::new(0),
            from_upstream: AtomicU64::new(0),
            opened: tokio::time::Instant::now(),
            last_us: AtomicU64::new(0),
        }
    }

    fn passed(&self, count: &AtomicU64, bytes: usize) {
        count.fetch_add(bytes as u64, Ordering::Relaxed);
        let now = u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_us.store(now, Ordering::Relaxed);
    }

    /// Waits until nothing has passed for so long.
    async fn idle(&self, limit: Duration) {
        loop {
            let last = self.opened + Duration::from_micros(self.last_us.load(Ordering::Relaxed));
            let Some(due) = last.checked_add(limit) else { return std::future::pending().await };
            if due <= tokio::time::Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    pub(super) fn so_far(&self) -> Uninspected {
        Uninspected {
            from_client: self.from_client.load(Ordering::Relaxed),
            from_upstream: self.from_upstream.load(Ordering::Relaxed),
        }
    }
}

/// A connection that both sides have agreed to use for a WebSocket.
#[derive(Debug)]
pub(super) struct Tunnel {
    step: Box<OpenStep>,
    client: OnUpgrade,
    upstream: OnUpgrade,
    counts: Arc<Counts>,
    idle: Duration,
    /// Its places among the exchanges under way and among the tunnels.
    pub(super) permits: (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>),
}

impl Proxy {
    /// A request to switch to a WebSocket: passed on as such; any other answer than `101` is delivered like a reply.
    pub(super) async fn tunnel(
        &self,
        mut parts: Parts,
        received: Instant,
        hinted: &Hinted,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let client = parts.extensions.remove::<OnUpgrade>();
        let call = ModelCall { kind: Kind::Tunnel, parts, body: Bytes::new(), received };
        let (mut step, _, earlier) = self.open(&call, hinted, link)?;
        step.written().await?;
        let mut decision = inject::decide(&mut step, None, earlier);
        let answered = match refuse_edits(&step, &mut decision) {
            Ok(()) => self.answer(&mut step, call, None, &decision).await,
            Err(interrupted) => Err(interrupted),
        };
        let mut response = match answered {
            Ok(response) if response.status() != StatusCode::SWITCHING_PROTOCOLS => {
                return deliver(step, decision, None, response, &self.limits).await;
            }
            Ok(response) => response,
            Err(interrupted) => return Err(closed(&mut step, interrupted)?),
        };
        let (Some(client), Some(upstream)) = (client, response.extensions_mut().remove::<OnUpgrade>()) else {
            return Err(closed(&mut step, UpstreamError::Switched.into())?);
        };
        tracing::warn!(step = step.numbers.step, "a WebSocket passes uninspected: no plan can edit what it carries");
        let counts = Arc::new(Counts::new());
        step.run.count_uninspected();
        step.tunnel = Some(Arc::clone(&counts));
        link.switch();
        let idle = self.limits.tunnel_idle;
        let tunnel = Box::new(Tunnel { step, client, upstream, counts, idle, permits: (None, None) });
        let (mut head, _) = response.into_parts();
        headers::switch_to_websocket(&mut head.headers);
        Ok(Response::from_parts(head, Delivery::switched(tunnel)))
    }
}

/// Says of all that a plan wants done inside a WebSocket that it cannot be done; what meets the handshake is left.
fn refuse_edits(step: &OpenStep, decided: &mut Decided) -> Result<(), Interrupted> {
    let Some(plan) = &step.run.plan else { return Ok(()) };
    let (number, agent) = (step.numbers.step, &step.attribution.agent);
    if plan.injections.iter().any(|injection| injection.agents.matches(agent.as_str())) {
        step.run.recorder.note(&format!("step {number} of `{agent}` cannot be edited: {UNINSPECTED}"));
    }
    for hit in decided.edits.request.iter().chain(&decided.edits.response) {
        if let Some(injection) = inject::injection(step, hit) {
            unmade::failed(step, hit, injection, &UNINSPECTED.to_owned().into())?;
        }
    }
    let faults = std::mem::take(&mut decided.faults).into_iter();
    let (before, within): (Vec<_>, Vec<_>) = faults.partition(|fault| fault.disturbance.is_before_reply());
    for fault in &within {
        faults::fault_failed(step, fault, UNINSPECTED)?;
    }
    decided.faults = before;
    Ok(())
}

/// How one direction ended.
enum End {
    /// The side that spoke has closed in order.
    Over,
    /// The side that spoke broke off.
    SpeakerBroke,
    /// The side that was spoken to does not take any more.
    ListenerBroke,
}

impl Tunnel {
    /// Passes bytes both ways until one side ends, and closes the record before the client sees that.
    pub(super) async fn run(self) {
        let Self { mut step, client, upstream, counts, idle, permits: _permits } = self;
        let (client, upstream) = match tokio::join!(client, upstream) {
            (Ok(client), Ok(upstream)) => (TokioIo::new(client), TokioIo::new(upstream)),
            (Err(_), _) => return drop(step),
            (Ok(_), Err(_)) => return drop(step.close(CloseCause::UpstreamReset)),
        };
        let (mut from_client, mut to_client) = tokio::io::split(client);
        let (mut from_upstream, mut to_upstream) = tokio::io::split(upstream);
        let cause = {
            let down = pass(&mut from_upstream, &mut to_client, |bytes| counts.passed(&counts.from_upstream, bytes));
            let up = pass(&mut from_client, &mut to_upstream, |bytes| counts.passed(&counts.from_client, bytes));
            let mut down = std::pin::pin!(down);
            let ended = tokio::select! {
                ended = &mut down => Some(Err(ended)),
                ended = up => Some(Ok(ended)),
                () = counts.idle(idle) => None,
            };
            match ended {
                None => {
                    tracing::warn!(step = step.numbers.step, ?idle, "a WebSocket was closed: both sides were silent");
                    CloseCause::Idle
                }
                Some(Ok(End::Over)) => {
                    let _ = to_upstream.shutdown().await;
                    // What the upstream still says is passed on, as far as the client takes it.
                    let _ = tokio::time::timeout(LINGER, down).await;
                    CloseCause::Complete
                }
                Some(Err(End::Over)) => CloseCause::Complete,
                Some(Ok(End::SpeakerBroke) | Err(End::ListenerBroke)) => step.link.cause_of_end(),
                Some(Ok(End::ListenerBroke) | Err(End::SpeakerBroke)) => CloseCause::UpstreamReset,
            }
        };
        // A client that is told of the end finds the record closed; one that is not, sees its connection break.
        if step.close(cause).is_ok() {
            let _ = to_client.shutdown().await;
        }
    }
}

/// Passes bytes one way.
async fn pass(
    from: &mut ReadHalf<TokioIo<Upgraded>>,
    to: &mut WriteHalf<TokioIo<Upgraded>>,
    count: impl Fn(usize),
) -> End {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = match from.read(&mut buffer).await {
            Ok(0) => return End::Over,
            Ok(length) => length,
            // Without TLS's own goodbye, which many servers leave out; a WebSocket says goodbye by itself.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return End::Over,
            Err(_) => return End::SpeakerBroke,
        };
        let piece = buffer.get(..length).unwrap_or_default();
        if to.write_all(piece).await.is_err() || to.flush().await.is_err() {
            return End::ListenerBroke;
        }
        count(length);
    }
}
