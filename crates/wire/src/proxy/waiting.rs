//! What a reply on its way may have to wait for: an edit that a model makes, an upstream that is silent.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::{sync::mpsc, time::Sleep};

use crate::surface::{self, sse};

/// What keeps a held stream alive: a comment, which readers of event streams pass over.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// What goes ahead of a reply that is held: a server of tools may ask its client something before it answers, and waits for that.
#[derive(Debug)]
pub(super) struct EarlyPieces {
    sender: mpsc::UnboundedSender<Bytes>,
    /// What has not gone ahead, and how much of it is whole events that ask nothing.
    kept: Vec<u8>,
    looked: usize,
    /// How much has.
    pub(super) passed: usize,
}

impl EarlyPieces {
    /// Sends here what goes ahead.
    pub(super) fn new(sender: mpsc::UnboundedSender<Bytes>) -> Self {
        Self { sender, kept: Vec::new(), looked: 0, passed: 0 }
    }

    /// Takes a piece of the reply, and passes all up to the last question in it.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.kept.extend_from_slice(piece);
        let fresh = self.kept.get(self.looked..).unwrap_or_default();
        let (mut whole, mut asked) = (0, None);
        for event in sse::events(fresh).iter().filter(|event| event.is_whole(fresh)) {
            whole = event.span.end;
            if fresh.get(event.span.clone()).is_some_and(surface::asks_client) {
                asked = Some(self.looked + whole);
            }
        }
        self.looked += whole;
        if let Some(until) = asked {
            let rest = self.kept.split_off(until);
            let gone = std::mem::replace(&mut self.kept, rest);
            (self.looked, self.passed) = (self.looked - until, self.passed + until);
            // Nobody waits for it any more if this fails.
            let _ = self.sender.send(Bytes::from(gone));
        }
    }
}

/// The bytes of a reply that have gone ahead of it, and are not to go again.
#[derive(Debug, Default)]
pub(super) struct SentAhead(usize);

impl SentAhead {
    /// The next bytes that are to go.
    pub(super) fn next(&mut self, ready: &mut VecDeque<Bytes>) -> Option<Bytes> {
        loop {
            let mut chunk = ready.pop_front()?;
            let rest = chunk.split_off(self.0.min(chunk.len()));
            self.0 -= chunk.len();
            if !rest.is_empty() || self.0 == 0 {
                return Some(rest);
            }
        }
    }
}

/// An edit under way.
pub(super) type Edit<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A reply that waits for its edit.
pub(super) struct WaitingReply<T> {
    edit: Edit<T>,
    edited: Option<T>,
    ahead: mpsc::UnboundedReceiver<Bytes>,
    gone: usize,
    every: Duration,
    next: Pin<Box<Sleep>>,
}

/// What a held reply has to pass on.
pub(super) enum PassedOn<T> {
    /// That the edit has ended, what came of it, and what has gone ahead of it.
    Edited(T, SentAhead),
    /// What goes ahead, or a comment: that it is alive.
    Frame(Bytes),
}

impl<T> WaitingReply<T> {
    /// Tells the client every so often that the stream is alive.
    pub(super) fn new(edit: Edit<T>, every: Duration, ahead: mpsc::UnboundedReceiver<Bytes>) -> Self {
        Self { edit, edited: None, ahead, gone: 0, every, next: Box::pin(tokio::time::sleep(every)) }
    }

    /// Waits for the edit, for what goes ahead of it, or until a comment is due.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<PassedOn<T>> {
        if self.edited.is_none()
            && let Poll::Ready(edited) = self.edit.as_mut().poll(context)
        {
            self.edited = Some(edited);
        }
        if let Poll::Ready(Some(frame)) = self.ahead.poll_recv(context) {
            self.gone += frame.len();
            return Poll::Ready(PassedOn::Frame(frame));
        }
        if let Some(edited) = self.edited.take() {
            return Poll::Ready(PassedOn::Edited(edited, SentAhead(self.gone)));
        }
        ready!(self.next.as_mut().poll(context));
        let next = tokio::time::Instant::now() + self.every;
        self.next.as_mut().reset(next);
        Poll::Ready(PassedOn::Frame(Bytes::from_static(KEEP_ALIVE)))
    }
}

impl<T> std::fmt::Debug for WaitingReply<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Held").field("every", &self.every).finish_non_exhaustive()
    }
}

/// Watches for an upstream that falls silent. One timer a reply: it is only set anew when it fires.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    /// Since when something is waited for.
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// Waits so long at most.
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, since: None, timer: None }
    }

    /// The upstream has sent something.
    pub(super) fn reset(&mut self) {
        self.since = None;
    }

    /// Gives the upstream until the limit to send something; gives the limit when it has not.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Duration> {
        if self.limit == Duration::MAX {
            return Poll::Pending;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let deadline = tokio::time::Instant::from_std(since + self.limit);
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while timer.as_mut().poll(context).is_ready() {
            if since.elapsed() >= self.limit {
                return Poll::Ready(self.limit);
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
