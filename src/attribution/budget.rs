//! What a search may spend, and an upstream that never lets it spend more.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use hyper::Request;
use serde::Serialize;

use crate::proxy::upstream::{Answering, SentBody, Upstream, UpstreamError};

/// The most that a search may spend. Without a bound it spends what its order asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Budget {
    /// Executions of the program.
    pub runs: Option<u64>,
    /// Live model calls.
    pub calls: Option<u64>,
}

/// What a search has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Executions of the program.
    pub runs: u64,
    /// Live model calls.
    pub calls: u64,
    /// Tokens of the live calls, as the upstream counted them.
    pub live_tokens: u64,
    /// Tokens that came from the record instead.
    pub recorded_tokens: u64,
}

/// The live upstream, counted: the call beyond the budget is refused, so it is never paid for.
#[derive(Debug)]
pub(super) struct Metered {
    live: Arc<dyn Upstream>,
    limit: u64,
    calls: AtomicU64,
    refused: AtomicBool,
}

impl Metered {
    pub(super) fn new(live: Arc<dyn Upstream>, budget: Budget) -> Self {
        let limit = budget.calls.unwrap_or(u64::MAX);
        Self { live, limit, calls: AtomicU64::new(0), refused: AtomicBool::new(false) }
    }

    /// Calls made so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether a call was refused: what it belonged to proves nothing.
    pub(super) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether no further call would be let through.
    pub(super) fn is_spent(&self) -> bool {
        self.calls() >= self.limit
    }
}

impl Upstream for Metered {
    fn name(&self) -> &str {
        self.live.name()
    }

    fn send(&self, request: Request<SentBody>) -> Answering<'_> {
        let reserved = self
            .calls
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| (calls < self.limit).then_some(calls + 1));
        if reserved.is_err() {
            self.refused.store(true, Ordering::Relaxed);
            let limit = self.limit;
            return Box::pin(async move { Err(UpstreamError::OverBudget { limit }) });
        }
        self.live.send(request)
    }
}
