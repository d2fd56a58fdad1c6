//! The request that opens a tunnel: a step like any other, until its upstream agrees.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{HeaderMap, Response, StatusCode, upgrade::OnUpgrade};

use super::{PassedBytes, SwitchedConnection, Tunnel};
use crate::{
    proxy::{
        arrival::{Arrived, ModelCall},
        decided::{self, Decided},
        delivery::Delivery,
        error::Interrupted,
        faults, headers,
        listen::socket::Link,
        open_step::OpenStep,
        pending_reply::PendingReply,
        shared::Proxy,
        skipped,
        upstream::UpstreamError,
    },
    surface::door::UnpackedBody,
};

/// Why a plan can do nothing in it.
const UNINSPECTED: &str = "the step is a WebSocket, which passes uninspected";

impl Proxy {
    /// A request to switch to a WebSocket: passed on as such; any other answer than `101` is delivered like a reply.
    pub(in crate::proxy) async fn tunnel(
        &self,
        arrived: Arrived,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let Arrived { kind, mut parts, hinted, received, .. } = arrived;
        let client = parts.extensions.remove::<OnUpgrade>();
        let unpacked = UnpackedBody::default();
        let call = ModelCall {
            kind,
            parts,
            body: Bytes::new(),
            memory: Arc::default(),
            unpacked,
            streams: false,
            hinted,
            received,
        };
        let (mut step, _, earlier) = self.open(&call, link).await?;
        step.written().await?;
        let mut decision = decided::decide(&mut step, None, earlier);
        let refused = refuse_edits(&step, &mut decision);
        let mut due = PendingReply { step, decision, conversation: None };
        let answered = match refused {
            Ok(()) => self.answer(&mut due, call).await,
            Err(interrupted) => Err(interrupted),
        };
        let mut response = match answered {
            Ok(response) if response.status() != StatusCode::SWITCHING_PROTOCOLS => {
                return due.deliver(response, &self.limits).await;
            }
            Ok(response) => response,
            Err(interrupted) => return Err(due.closed(interrupted)?),
        };
        let (Some(client), Some(upstream)) = (client, response.extensions_mut().remove::<OnUpgrade>()) else {
            return Err(due.closed(UpstreamError::Switched.into())?);
        };
        let mut step = due.step;
        tracing::warn!(step = step.numbers.step, "a WebSocket passes uninspected: no plan can edit what it carries");
        let counts = Arc::new(PassedBytes::new());
        step.run.count_uninspected();
        step.tunnel = Some(Arc::clone(&counts));
        let idle = self.limits.tunnel_idle;
        let tunnel = SwitchedConnection::Counted(Box::new(Tunnel { step, client, upstream, counts, idle }));
        Ok(agreed(tunnel, std::mem::take(response.headers_mut()), link))
    }
}

/// Says of all that a plan wants done inside a WebSocket that it cannot be done; what meets the handshake is left.
fn refuse_edits(step: &OpenStep, decided: &mut Decided) -> Result<(), Interrupted> {
    let Some(plan) = &step.run.plan else { return Ok(()) };
    let (number, agent) = (step.numbers.step, &step.attribution.agent);
    if plan.injections.iter().any(|injection| injection.agents.matches(agent.as_str())) {
        step.run.recorder.note(&format!("step {number} of `{agent}` cannot be edited: {UNINSPECTED}"));
    }
    let edits = decided.edits.request.iter().chain(&decided.edits.response);
    skipped::all_failed(step, edits, &UNINSPECTED.to_owned().into())?;
    let faults = std::mem::take(&mut decided.faults).into_iter();
    let (before, within): (Vec<_>, Vec<_>) = faults.partition(|fault| fault.disturbance.is_before_reply());
    for fault in &within {
        faults::fault_failed(step, fault, UNINSPECTED)?;
    }
    decided.faults = before;
    Ok(())
}

/// The answer with which a connection turns into a WebSocket.
pub(in crate::proxy) fn agreed(
    switched: SwitchedConnection,
    mut headers: HeaderMap,
    link: &Link,
) -> Response<Box<Delivery>> {
    link.switch();
    headers::switch_to_websocket(&mut headers);
    let mut response = Response::new(Delivery::switched(switched));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}
