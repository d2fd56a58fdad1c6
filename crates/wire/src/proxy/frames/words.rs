//! What the proxy itself says on a socket, and what of a plan has no place there.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyper::{HeaderMap, Response, header};

use crate::{
    fault::{AnswerBody, Disturbance},
    plan::Decision,
    proxy::{
        arrival::ModelCall, chunks::joined, decided::Decided, error::Interrupted, faults, headers, open_step::OpenStep,
        run::Run, skipped, upstream::ReceivedBody,
    },
    surface::socket,
    trajectory::Attribution,
};

/// Why a fault that changes what HTTP alone has cannot act.
const NO_PLACE: &str = "a message of a WebSocket has no such place: there are no pages and no content types";
/// Why nothing can be edited in a request that nobody has sent.
const UNASKED: &str = "the server started the response by itself, and got no request for it";

/// The stream of a socket that a response comes by; none where its request names none.
pub(super) type StreamId = Option<String>;

/// Marks a request that came as a message.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct FramedCall {
    pub(super) stream: StreamId,
    /// Whether the client has asked: a server may start a response by itself.
    pub(in crate::proxy) is_asked: bool,
    /// The call that it goes on from, where the server goes on by itself.
    pub(super) last: Option<CallOwner>,
    /// Where it is told what became of it.
    pub(super) placed: Arc<OnceLock<CallOwner>>,
}

/// Whose a call is: the run, and the agent.
#[derive(Debug, Clone)]
pub(super) struct CallOwner {
    pub(super) run: Arc<Run>,
    attribution: Attribution,
}

impl FramedCall {
    /// The mark, where a request came as a message.
    pub(in crate::proxy) fn carried(call: &ModelCall) -> Option<Self> {
        call.parts.extensions.get().cloned()
    }

    /// Whether a request came as a message that only prepares those to come.
    pub(in crate::proxy) fn is_warm_up(call: &ModelCall) -> bool {
        call.parts.extensions.get::<Self>().is_some() && socket::is_warm_up(&call.unpacked.plain)
    }

    /// Whose response it is that the server starts by itself: that of whom it goes on from.
    pub(in crate::proxy) fn continued(call: &ModelCall) -> Option<Attribution> {
        let last = Self::carried(call)?.last?.attribution;
        let evidence = format!("the server goes on by itself from a response to `{}`", last.agent);
        Some(Attribution { evidence, ..last })
    }

    /// Its step is decided: says of what has no place on a socket that it cannot be done.
    pub(in crate::proxy) fn decided(&self, step: &OpenStep, decided: &mut Decided) -> Result<(), Interrupted> {
        let _ = self.placed.set(CallOwner { run: Arc::clone(&step.run), attribution: step.attribution.clone() });
        if !self.is_asked {
            let number = step.numbers.step;
            step.run.recorder.note(&format!("step {number} is a response that the server started by itself"));
            skipped::all_failed(step, &decided.edits.request, &UNASKED.to_owned().into())?;
            decided.edits = Arc::new(Decision { request: Vec::new(), ..Decision::clone(&decided.edits) });
        }
        let placed = |disturbance: &Disturbance| match disturbance {
            Disturbance::Answer { body: AnswerBody::Raw { .. }, .. } | Disturbance::ContentType(_) => false,
            // Its status would say that nothing is wrong.
            Disturbance::Answer { status, .. } => *status >= 400,
            _ => true,
        };
        for fault in decided.faults.extract_if(.., |fault| !placed(&fault.disturbance)) {
            faults::fault_failed(step, &fault, NO_PLACE)?;
        }
        Ok(())
    }
}

/// A reply that was made in this process, as it is said on a socket where its request came as a message.
pub(in crate::proxy) fn worded(framed: Option<&FramedCall>, reply: Response<ReceivedBody>) -> Response<ReceivedBody> {
    let Some(FramedCall { stream, .. }) = framed.filter(|_| !headers::is_event_stream(reply.headers())) else {
        return reply;
    };
    let (mut head, body) = reply.into_parts();
    let ReceivedBody::Made(frames) = body else { return Response::from_parts(head, body) };
    let whole = joined(frames);
    let said = message(head.status.as_u16(), &head.headers, &whole, stream.as_deref());
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, ReceivedBody::Made([said].into()))
}

/// An error as a message.
pub(super) fn message(status: u16, headers: &HeaderMap, body: &Bytes, stream: Option<&str>) -> Bytes {
    let of_body = [header::CONTENT_TYPE, header::CONTENT_LENGTH];
    let named = headers.iter().filter(|(name, _)| !of_body.contains(name));
    let named: Vec<(&str, &str)> =
        named.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    socket::error_message(body, status, &named, stream)
}
