//! What an execution may do, and why it is ended before its program ends.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;

use super::judged::JudgedEnd;
use crate::{
    budget::Cost,
    replay::ReplayReport,
    trajectory::{Outcome, Reason, Verdict},
};

/// Why an execution is ended before its program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The budget does not hold another call.
    Budget,
    /// The program made more calls than it may.
    Calls,
    /// The price of a model is not known, and money is bounded.
    Price,
    /// The program left the record that it was to begin like.
    Diverged,
}

/// What one execution did at the upstream.
#[derive(Debug, Default)]
pub struct ExecutionMeter {
    halted: Mutex<Option<Halt>>,
    halting: Notify,
    spent: Mutex<Cost>,
    pub(super) calls: AtomicU64,
    pub(super) recalled: AtomicU64,
    pub(super) limited: AtomicU64,
}

impl ExecutionMeter {
    /// A meter for an execution that takes the place of another: what that one was charged counts as its own.
    #[must_use]
    pub fn in_place_of(other: &Self) -> Self {
        let count = |of: &AtomicU64| AtomicU64::new(of.load(Ordering::Relaxed));
        Self {
            spent: Mutex::new(other.spent()),
            recalled: count(&other.recalled),
            limited: count(&other.limited),
            ..Self::default()
        }
    }

    /// What was charged.
    pub fn spent(&self) -> Cost {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that were answered from what was paid for before ([`super::CallHook::recall`]).
    pub fn recalled(&self) -> u64 {
        self.recalled.load(Ordering::Relaxed)
    }

    /// Replies that said 429.
    pub fn limited(&self) -> u64 {
        self.limited.load(Ordering::Relaxed)
    }

    pub(super) fn charge(&self, cost: &Cost) {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).add(cost);
    }

    /// Why the execution is to end, if it is.
    pub fn halt(&self) -> Option<Halt> {
        *self.halted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the execution is to end.
    pub async fn halted(&self) {
        loop {
            let halting = self.halting.notified();
            if self.halt().is_some() {
                return;
            }
            halting.await;
        }
    }

    /// Has the execution ended; the first reason counts.
    pub fn stop(&self, why: Halt) {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.halting.notify_waiters();
    }
}

impl Halt {
    /// The outcome of an execution that was ended for that: nobody judges it.
    pub(super) fn judged(self, replay: Option<&ReplayReport>) -> JudgedEnd {
        let unknown = |evidence: String| Outcome { verdict: Verdict::Unknown, reason: None, evidence };
        let outcome = match self {
            Halt::Calls => Outcome {
                verdict: Verdict::Failure,
                reason: Some(Reason::Timeout),
                evidence: "the program made more model calls than it may".to_owned(),
            },
            Halt::Budget | Halt::Price => unknown("ended by the budget".to_owned()),
            Halt::Diverged => {
                let departure = replay.and_then(|report| report.diverged.as_ref());
                unknown(departure.map_or_else(|| "diverged".to_owned(), |departure| format!("diverged: {departure}")))
            }
        };
        outcome.into()
    }
}
