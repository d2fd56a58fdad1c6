//! What a reply on its way may have to wait for: an edit that a model makes, an upstream that is silent.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::time::Sleep;

/// What keeps a held stream alive: a comment, which readers of event streams pass over.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// An edit under way.
pub(super) type Edit<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A reply that waits for its edit.
pub(super) struct Held<T> {
    edit: Edit<T>,
    every: Duration,
    next: Pin<Box<Sleep>>,
}

/// What a held reply has to pass on.
pub(super) enum PassedOn<T> {
    /// That the edit has ended, and what came of it.
    Edited(T),
    /// That it is alive.
    Comment(Bytes),
}

impl<T> Held<T> {
    /// Tells the client every so often that the stream is alive.
    pub(super) fn new(edit: Edit<T>, every: Duration) -> Self {
        Self { edit, every, next: Box::pin(tokio::time::sleep(every)) }
    }

    /// Waits for the edit, or until a comment is due.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<PassedOn<T>> {
        if let Poll::Ready(edited) = self.edit.as_mut().poll(context) {
            return Poll::Ready(PassedOn::Edited(edited));
        }
        ready!(self.next.as_mut().poll(context));
        let next = tokio::time::Instant::now() + self.every;
        self.next.as_mut().reset(next);
        Poll::Ready(PassedOn::Comment(Bytes::from_static(KEEP_ALIVE)))
    }
}

impl<T> std::fmt::Debug for Held<T> {
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
