//! What the proxy itself says on a socket, and which faults have no place there.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::{HeaderMap, Response, header};

use super::upstream_end::StreamId;
use crate::{
    fault::{AnswerBody, Disturbance},
    proxy::{
        arrival::ModelCall, decided::Decided, error::Interrupted, faults, headers, lock::locked, open_step::OpenStep,
        run::Run, upstream::ReceivedBody,
    },
    surface::socket,
};

/// Why a fault that changes what HTTP alone has cannot act.
const NO_PLACE: &str = "a message of a WebSocket has no such place: there are no pages and no content types";

/// Marks a request that came as a message.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct FramedCall {
    pub(super) stream: StreamId,
    /// Where its run is kept for its socket.
    pub(super) run: Arc<Mutex<Option<Arc<Run>>>>,
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

    /// Its step is decided: says of faults that have no place on a socket that they cannot act.
    pub(in crate::proxy) fn decided(&self, step: &OpenStep, decided: &mut Decided) -> Result<(), Interrupted> {
        *locked(&self.run) = Some(Arc::clone(&step.run));
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
    let whole = match frames.iter().collect::<Vec<_>>().as_slice() {
        [only] => (*only).clone(),
        several => several.iter().flat_map(|frame| frame.iter().copied()).collect(),
    };
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
