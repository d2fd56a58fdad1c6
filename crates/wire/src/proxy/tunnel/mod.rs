//! A WebSocket: what passes in it is not looked at. It is recorded as a step with its byte counts, marked uninspected,
//! and whatever a plan wants done inside it is said to be undeliverable (`handshake`).
//!
//! Only the upstream's own `101` opens a tunnel. It holds one buffer for each direction, its place among the
//! connections, exchanges and tunnels under way, and its record is closed before the client sees its end. One in which
//! neither side says anything for too long is closed, and so is one whose token is gone.

pub(super) mod counts;
pub(super) mod ending;
pub(super) mod framed;
pub(super) mod handshake;
mod opener;
mod switched;

use std::{sync::Arc, time::Duration};

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use self::counts::PassedBytes;
pub(in crate::proxy) use self::{opener::SocketOpener, switched::SwitchedConnection};
use super::open_step::OpenStep;
use crate::trajectory::CloseCause;

/// Bytes that are held in each direction.
const BUFFER: usize = 16 << 10;
/// Longest wait for the upstream's end once the client has ended.
const LINGER: Duration = Duration::from_secs(10);

/// A connection that both sides have agreed to use for a WebSocket.
#[derive(Debug)]
pub(in crate::proxy) struct Tunnel {
    step: Box<OpenStep>,
    client: OnUpgrade,
    upstream: OnUpgrade,
    counts: Arc<PassedBytes>,
    idle: Duration,
}

/// How one direction ended.
enum End {
    /// The side that spoke has closed in order.
    Over,
    /// The side that spoke broke off.
    SpeakerBroke,
    /// The side that was spoken to does not take any more.
    ListenerBroke,
    /// Its token is gone.
    NotAllowed,
}

impl Tunnel {
    /// Passes bytes both ways until one side ends, and closes the record before the client sees that.
    /// `refused`: ends once who opened it is let in no more.
    async fn run(self, refused: impl Future<Output = ()>) {
        let Self { mut step, client, upstream, counts, idle } = self;
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
                () = refused => {
                    tracing::warn!(step = step.numbers.step, "a WebSocket was closed: its token lets nobody in any more");
                    Some(Err(End::NotAllowed))
                }
            };
            match ended {
                None => {
                    tracing::warn!(step = step.numbers.step, ?idle, "a WebSocket was closed: both sides were silent");
                    CloseCause::Idle
                }
                Some(Ok(End::NotAllowed) | Err(End::NotAllowed)) => CloseCause::Refused,
                Some(Ok(End::Over)) => {
                    let _ = to_upstream.shutdown().await;
                    // What the upstream still says is passed on, as far as the client takes it.
                    let _ = tokio::time::timeout(LINGER, down).await;
                    CloseCause::Complete
                }
                Some(Err(End::Over)) => CloseCause::Complete,
                Some(Ok(End::SpeakerBroke) | Err(End::ListenerBroke)) => step.cause_of_end(),
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
