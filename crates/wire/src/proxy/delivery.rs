//! The reply on its way to the client: passed on as it comes, taped for the record, its end held until the record stands.
//!
//! Held are only the end marker of an event stream, the last chunk of a body of known length, or the end of the body; every other frame
//! is passed at once. Where a model must be asked before anything can pass, comments keep the stream alive; they stand in no record.
//! Dropping a delivery cancels the upstream call and records that the client left.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    HeaderMap, Response,
    body::{Body, Frame, SizeHint},
    header,
};

use super::{
    disturb::Breach,
    error::{DeliveryError, Interrupted},
    headers,
    listen::socket::{AnswerUnderWay, Link},
    open_step::OpenStep,
    tunnel::SwitchedConnection,
    upstream::ReceivedBody,
    waiting::{PassedOn, Patience, SentAhead, WaitingReply},
};
use crate::{recording::RecordingError, surface::sse::Splitter, trajectory::CloseCause};

/// A whole reply of at most so many bytes is taken in before its head goes out, as far as it is there.
const SHORT: u64 = 64 << 10;

/// What an edit of a held reply comes to.
type HeldEdit = Result<Response<Box<Delivery>>, Interrupted>;

/// A reply body.
#[derive(Debug)]
pub(super) struct Delivery {
    source: ReceivedBody,
    /// What makes the reply, as long as it is under way.
    edit: Option<WaitingReply<HeldEdit>>,
    step: Option<Box<OpenStep>>,
    /// Watches an event stream for its end marker.
    splitter: Option<Splitter>,
    /// Bytes of a body of known length that are still to come.
    remaining: Option<u64>,
    ready: VecDeque<Bytes>,
    gone_ahead: SentAhead,
    held: VecDeque<Bytes>,
    /// What the upstream said after the body.
    trailers: Option<HeaderMap>,
    breach: Option<Breach>,
    /// Whether the closing record may wait for those of others.
    joins: bool,
    over: bool,
    patience: Patience,
    size: SizeHint,
    permit: Option<tokio::sync::OwnedSemaphorePermit>,
    /// Ends with it.
    answering: Option<AnswerUnderWay>,
    /// What the connection turns into once this head has left.
    pub(super) switched: Option<SwitchedConnection>,
    link: Option<Arc<Link>>,
    /// How often the socket had been flushed when the last bytes were handed out.
    handed_at: u64,
    /// Why the reply is to break off, once what was let through has left.
    failure: Option<DeliveryError>,
}

impl Delivery {
    /// A reply that no step stands behind: passed on, not recorded. Counts as an exchange until its end.
    pub(super) fn pass(source: ReceivedBody, limit: Duration) -> Box<Self> {
        Box::new(Self::new(source, limit))
    }

    fn new(source: ReceivedBody, limit: Duration) -> Self {
        let size = source.size_hint();
        Self {
            source,
            edit: None,
            step: None,
            splitter: None,
            remaining: None,
            ready: VecDeque::new(),
            gone_ahead: SentAhead::default(),
            held: VecDeque::new(),
            trailers: None,
            breach: None,
            joins: false,
            over: false,
            patience: Patience::new(limit),
            size,
            permit: None,
            answering: None,
            switched: None,
            link: None,
            handed_at: 0,
            failure: None,
        }
    }

    /// Nothing: after this head the connection is no longer HTTP.
    pub(super) fn switched(switched: SwitchedConnection) -> Box<Self> {
        let nothing = ReceivedBody::Made(VecDeque::new());
        Box::new(Self { switched: Some(switched), over: true, ..Self::new(nothing, Duration::MAX) })
    }

    /// A stream whose frames come when an edit is made; until then comments go out, and what goes ahead.
    pub(super) fn held(edit: WaitingReply<HeldEdit>) -> Box<Self> {
        Box::new(Self { edit: Some(edit), size: SizeHint::default(), ..*Self::composed(Bytes::new()) })
    }

    /// A body of the proxy's own.
    pub(super) fn composed(body: Bytes) -> Box<Self> {
        Self::pass(ReceivedBody::Made(VecDeque::from([body])), Duration::MAX)
    }

    /// The reply of a step, to be recorded at its end.
    ///
    /// # Errors
    /// The record of an empty reply could not be written.
    pub(super) fn of_step(
        source: ReceivedBody,
        head: &HeaderMap,
        mut step: Box<OpenStep>,
        breach: Option<Breach>,
        limit: Duration,
    ) -> Result<Box<Self>, RecordingError> {
        // A stream has no length, whatever is known of it; a body whose head states one has been made already, whatever its type.
        let streamed =
            headers::is_event_stream(head) && (breach.is_some() || !head.contains_key(header::CONTENT_LENGTH));
        if source.is_end_stream() && breach.is_none() {
            step.close(CloseCause::Complete)?;
        }
        Ok(Box::new(Self {
            remaining: source.size_hint().exact().filter(|_| !streamed),
            step: Some(step),
            size: if streamed || breach.is_some() { SizeHint::default() } else { source.size_hint() },
            breach,
            ..Self::new(source, limit)
        }))
    }

    /// On its way over a connection; keeps a place among the exchanges under way until the reply ends.
    pub(super) fn over(mut self: Box<Self>, link: Arc<Link>, permit: tokio::sync::OwnedSemaphorePermit) -> Box<Self> {
        (self.handed_at, self.link, self.permit) = (link.flushes(), Some(link), Some(permit));
        self
    }

    /// As the answer of a connection, which ends with it.
    pub(super) fn answering(mut self: Box<Self>, answering: AnswerUnderWay) -> Box<Self> {
        self.answering = Some(answering);
        self
    }

    /// Takes in what is there already of a short whole reply. One that is there to its end is recorded together with
    /// others; its head has not left yet, so nothing waits that could go alone.
    ///
    /// # Errors
    /// The record could not be written: the reply must not go out.
    pub(super) async fn take_in(&mut self) -> Result<(), RecordingError> {
        if self.breach.is_some() || self.remaining.is_none_or(|left| left > SHORT) {
            return Ok(());
        }
        self.joins = true;
        poll_fn(|context| {
            while self.failure.is_none() && self.step.as_ref().is_some_and(|step| !step.is_closed()) {
                if self.poll_source(context).is_pending() {
                    break;
                }
            }
            Poll::Ready(())
        })
        .await;
        self.joins = false;
        if let Some(step) = &mut self.step {
            step.written().await?;
        }
        match self.failure.take() {
            Some(DeliveryError::Recording(error)) => Err(error),
            other => {
                self.failure = other;
                Ok(())
            }
        }
    }

    /// Takes what the upstream has sent.
    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let taken = match ready!(Pin::new(&mut self.source).poll_frame(context)) {
            Some(Ok(frame)) => {
                self.patience.reset();
                match frame.into_data() {
                    Ok(chunk) => self.take(chunk),
                    // Nothing follows them, and whoever passes them on does not ask for more.
                    Err(trailers) => self.end().map(|()| self.trailers = trailers.into_trailers().ok()),
                }
            }
            Some(Err(error)) => {
                let recorded = self.finish(CloseCause::UpstreamReset);
                recorded.and(Err(DeliveryError::Upstream(error)))
            }
            None => self.end(),
        };
        self.failure = taken.err();
        Poll::Ready(())
    }

    /// Waits for the edit of a held reply, and goes on as its delivery. `Some` is a comment for the meantime.
    fn poll_edit(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, DeliveryError>> {
        let Some(held) = &mut self.edit else { return Poll::Ready(Ok(None)) };
        let (edited, gone_ahead) = match ready!(held.poll(context)) {
            PassedOn::Frame(frame) => return Poll::Ready(Ok(Some(frame))),
            PassedOn::Edited(edited, gone_ahead) => (edited, gone_ahead),
        };
        self.edit = None;
        let Ok(response) = edited else { return Poll::Ready(Err(DeliveryError::Interrupted)) };
        let (permit, link, answering) = (self.permit.take(), self.link.take(), self.answering.take());
        *self = Self { permit, answering, link, handed_at: self.handed_at, gone_ahead, ..*response.into_body() };
        Poll::Ready(Ok(None))
    }

    /// Takes a chunk from the upstream.
    fn take(&mut self, chunk: Bytes) -> Result<(), DeliveryError> {
        let Some(step) = &mut self.step else {
            self.ready.push_back(chunk);
            return Ok(());
        };
        step.tape(&chunk);
        let mut ended = false;
        if self.remaining.is_none() && step.is_stream() && !step.is_closed() {
            let splitter = self.splitter.get_or_insert_with(|| Splitter::new(step.ends_of_stream()));
            let seen = splitter.push(&chunk);
            if seen.release_held {
                self.ready.append(&mut self.held);
            }
            let mut free = chunk;
            let kept = free.split_off(seen.free.min(free.len()));
            push(&mut self.ready, free);
            push(&mut self.held, kept);
            ended = seen.ended || (seen.events > 0 && step.has_answer());
        } else if let Some(remaining) = &mut self.remaining {
            *remaining = remaining.saturating_sub(chunk.len() as u64);
            ended = *remaining == 0;
            if ended { push(&mut self.held, chunk) } else { push(&mut self.ready, chunk) }
        } else {
            push(&mut self.ready, chunk);
        }
        if self.apply_breach(ended)? {
            return Ok(());
        }
        if ended && !self.over {
            self.finish(CloseCause::Complete)?;
            self.ready.append(&mut self.held);
        }
        Ok(())
    }

    /// The upstream ended the body.
    fn end(&mut self) -> Result<(), DeliveryError> {
        if !self.apply_breach(true)? && !self.over {
            let unframed = self.step.as_ref().filter(|step| step.is_stream() && self.remaining.is_none());
            let cut = unframed.is_some_and(|step| !step.has_finish());
            self.finish(if cut { CloseCause::UpstreamTruncated } else { CloseCause::Complete })?;
            self.ready.append(&mut self.held);
            self.over = true;
        }
        Ok(())
    }

    /// Lets a planned fault act on what is about to be passed on; says whether it has.
    fn apply_breach(&mut self, at_end: bool) -> Result<bool, DeliveryError> {
        let Some(breach) = &mut self.breach else { return Ok(false) };
        if breach.has_acted() {
            self.ready.clear();
            return Ok(true);
        }
        if self.splitter.is_none() {
            // The last chunk of a whole body may be more than its end.
            self.ready.append(&mut self.held);
        }
        if !breach.is_reached(&mut self.ready, at_end) {
            return Ok(false);
        }
        self.held.clear();
        let end = self.step.as_ref().filter(|_| self.splitter.is_some()).and_then(|step| step.last_frame());
        let added = end.map(|end| breach.end_marker(end)).unwrap_or_default();
        push(&mut self.ready, added.clone());
        if let Some(step) = &mut self.step {
            step.breach(breach, &added);
        }
        if breach.is_clean() {
            self.finish(CloseCause::Injected)?;
            self.over = true;
        }
        Ok(true)
    }

    /// After a fault has acted: what it let through goes out, then the connection breaks, at once or after a wait.
    fn poll_breach(&mut self, context: &mut Context<'_>) -> Poll<Result<(), DeliveryError>> {
        if !self.breach.as_ref().is_some_and(|breach| breach.has_acted() && !breach.is_clean()) {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_flushed(context));
        let Some(breach) = &mut self.breach else { return Poll::Ready(Ok(())) };
        ready!(breach.poll_wait(context));
        if let Some(step) = &mut self.step {
            if breach.resets() {
                step.reset_connection();
            }
            step.close(CloseCause::Injected)?;
        }
        Poll::Ready(Err(DeliveryError::Breached))
    }

    /// Waits until the socket has taken everything that was handed out: an error would throw away what has not left.
    fn poll_flushed(&self, context: &mut Context<'_>) -> Poll<()> {
        match &self.link {
            Some(link) => link.poll_flushed_after(self.handed_at, context),
            None => Poll::Ready(()),
        }
    }

    fn finish(&mut self, cause: CloseCause) -> Result<(), DeliveryError> {
        match &mut self.step {
            Some(step) if self.joins => Ok(step.queue_close(cause)?),
            Some(step) => Ok(step.close(cause)?),
            None => Ok(()),
        }
    }
}

fn push(queue: &mut VecDeque<Bytes>, chunk: Bytes) {
    if !chunk.is_empty() {
        queue.push_back(chunk);
    }
}

impl Body for Delivery {
    type Data = Bytes;
    type Error = DeliveryError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, DeliveryError>>> {
        loop {
            let Self { ready, gone_ahead, .. } = &mut *self;
            if let Some(chunk) = gone_ahead.next(ready) {
                self.handed_at = self.link.as_ref().map_or(0, |link| link.flushes());
                return Poll::Ready(Some(Ok(Frame::data(chunk))));
            }
            if self.failure.is_some() {
                ready!(self.poll_flushed(context));
                self.over = true;
                return Poll::Ready(self.failure.take().map(Err));
            }
            if self.over {
                return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            match ready!(self.poll_edit(context)) {
                Ok(None) => {}
                Ok(Some(comment)) => self.ready.push_back(comment),
                Err(error) => self.failure = Some(error),
            }
            if self.failure.is_some() || !self.ready.is_empty() {
                continue;
            }
            if let Err(error) = ready!(self.poll_breach(context)) {
                self.failure = Some(error);
                continue;
            }
            if self.poll_source(context).is_pending() {
                let limit = ready!(self.patience.poll(context));
                let recorded = self.finish(CloseCause::UpstreamTimeout);
                self.failure = Some(recorded.err().unwrap_or(DeliveryError::Silent(limit)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let closed = self.step.as_ref().is_none_or(|step| step.is_closed());
        self.edit.is_none()
            && self.failure.is_none()
            && self.ready.is_empty()
            && self.held.is_empty()
            && self.trailers.is_none()
            && closed
            && (self.over || self.source.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}
