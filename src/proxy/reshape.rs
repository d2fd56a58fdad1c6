//! Faults that change a reply: its bytes, its content type, its pace.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    Response,
    body::{Body, Frame, SizeHint},
    header::{self, HeaderValue},
};
use tokio::time::Sleep;

use super::{
    Limits, decode,
    error::Interrupted,
    faults,
    gather::{gather, joined},
    headers, inject,
    inject::{Decided, Planned},
    open_step::OpenStep,
    retell,
    upstream::{BodyError, ReceivedBody},
};
use crate::{
    fault::{Answered, Disturbance, Fault, Pace},
    surface::{Conversation, sse},
    trajectory::Side,
};

/// The reply after the faults that change it.
pub(super) async fn reshape(
    step: &mut OpenStep,
    decided: &Decided,
    conversation: Option<&Conversation>,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let mut response = received;
    for fault in &decided.faults {
        match &fault.disturbance {
            // An error of the upstream is never changed: it passes verbatim.
            _ if !response.status().is_success() => {}
            Disturbance::Reshape => response = change(step, fault, conversation, response, limits).await?,
            Disturbance::ContentType(kind) => {
                let value = HeaderValue::from_str(kind).unwrap_or(HeaderValue::from_static("text/plain"));
                response.headers_mut().insert(header::CONTENT_TYPE, value);
                faults::record_fault(step, fault)?;
            }
            Disturbance::Pace(pace) => {
                faults::record_fault(step, fault)?;
                let streamed = headers::is_event_stream(response.headers());
                response = response.map(|body| ReceivedBody::Paced(Box::new(Paced::new(body, *pace, streamed))));
            }
            _ => {}
        }
    }
    Ok(response)
}

/// Collects a reply and lets a fault change its bytes.
async fn change(
    step: &mut OpenStep,
    fault: &Planned,
    conversation: Option<&Conversation>,
    response: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let (mut head, body) = response.into_parts();
    let streamed = headers::is_event_stream(&head.headers);
    let raw = match collect(step, body, limits).await? {
        Ok(raw) => raw,
        Err(rest) => {
            let why = format!("the reply is larger than {} bytes", limits.max_body_bytes);
            faults::fault_failed(step, fault, &why)?;
            return Ok(Response::from_parts(head, rest));
        }
    };
    let encoding = headers::text(&head.headers, &header::CONTENT_ENCODING).map(str::to_owned);
    let plain = decode::body(&raw, encoding.as_deref()).ok_or("the reply's content-encoding cannot be read");
    let changed = plain.map_err(str::to_owned).and_then(|plain| {
        let operator = faults::operator(step, fault).ok_or("the fault is not in the plan")?;
        Ok((changed(step, operator.as_ref(), fault.draw, &plain, streamed)?, plain))
    });
    let (changed, plain) = match changed {
        Ok(changed) => changed,
        Err(why) => {
            faults::fault_failed(step, fault, &why)?;
            return Ok(Response::from_parts(head, inject::made(raw, streamed)));
        }
    };
    inject::record(step, fault.injection, fault.draw, Side::Response, Some((&plain, &changed)))?;
    if faults::operator(step, fault).is_some_and(|fault| fault.rewords()) {
        let change = retell::Retelling { kept: &plain, told: &changed, streamed };
        retell::edited(step, &change, &[], conversation);
    }
    step.delivered = Some(changed.clone());
    headers::body_changed(&mut head.headers);
    head.headers.remove(header::CONTENT_ENCODING);
    Ok(Response::from_parts(head, inject::made(changed, streamed)))
}

fn changed(step: &OpenStep, fault: &dyn Fault, draw: u64, body: &Bytes, streamed: bool) -> Result<Bytes, String> {
    let surface = step.surface.ok_or("the reply is of no API that is read")?;
    let earlier = step.run.answers();
    let agent = step.attribution.agent.as_str();
    fault.reshape(&Answered { body, streamed, surface, agent, earlier: &earlier }, draw)
}

/// Reads a whole reply, onto the step's tape where that still runs. What is too large comes back as it was.
async fn collect(
    step: &mut OpenStep,
    body: ReceivedBody,
    limits: &Limits,
) -> Result<Result<Bytes, ReceivedBody>, Interrupted> {
    let chunks = match gather(body, limits).await? {
        Ok(chunks) => chunks,
        Err(rest) => return Ok(Err(rest)),
    };
    for chunk in &chunks {
        step.tape(chunk);
    }
    step.stop_taping();
    Ok(Ok(joined(chunks)))
}

/// A body that is passed on slowly.
#[derive(Debug)]
pub struct Paced {
    source: ReceivedBody,
    pace: Pace,
    /// Whether it is an event stream, which goes frame by frame.
    streamed: bool,
    pieces: VecDeque<Bytes>,
    started: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    fn new(source: ReceivedBody, pace: Pace, streamed: bool) -> Self {
        Self { source, pace, streamed, pieces: VecDeque::new(), started: false, timer: None }
    }

    /// Takes a chunk apart into what is passed on at once.
    fn take(&mut self, chunk: &Bytes) {
        let frames = if self.streamed { sse::events(chunk) } else { Vec::new() };
        let mut end = 0;
        for frame in frames {
            end = frame.span.end;
            self.cut(chunk.slice(frame.span));
        }
        self.cut(chunk.slice(end..));
    }

    /// Cuts a piece so that none is more than a tenth of a second.
    fn cut(&mut self, mut piece: Bytes) {
        let most = self.pace.bytes_per_s.map_or(usize::MAX, |rate| usize::try_from(rate / 10).unwrap_or(1).max(1));
        while !piece.is_empty() {
            let first = piece.split_to(most.min(piece.len()));
            self.pieces.push_back(first);
        }
    }

    /// How long the next piece waits.
    fn wait(&self, piece: &Bytes) -> Duration {
        let rate = self.pace.bytes_per_s.map_or(0.0, f64::from);
        let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        let bytes = if rate > 0.0 { Duration::from_secs_f64(f64::from(length) / rate) } else { Duration::ZERO };
        bytes + if self.started { self.pace.frame } else { self.pace.first }
    }

    pub(super) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if let Some(piece) = self.pieces.front() {
                let wait = self.wait(piece);
                let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
                ready!(timer.as_mut().poll(context));
                (self.timer, self.started) = (None, true);
                return Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))));
            }
            match ready!(Pin::new(&mut self.source).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(chunk) => self.take(&chunk),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return Poll::Ready(other),
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.pieces.is_empty() && self.source.is_end_stream()
    }

    pub(super) fn hint(&self) -> SizeHint {
        let mut hint = self.source.size_hint();
        let waiting: u64 = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + waiting);
        }
        hint.set_lower(hint.lower() + waiting);
        hint
    }
}
