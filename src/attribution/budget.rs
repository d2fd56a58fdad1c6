//! What a search may spend, and upstreams that never let it spend more.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use hyper::Request;
use serde::Serialize;

use crate::{
    execution::{ExecutedRun, ExecutionArm, ExecutionError, ExecutionMeter, Halt, SystemUnderTest},
    proxy::upstream::{BackendAnswering, SentBody, Upstream, UpstreamError},
    trajectory::RunId,
};

/// The most that a search may spend. Without a bound it spends what it asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct SearchBudget {
    /// Executions of the program.
    pub runs: Option<u64>,
    /// Live model calls, those to an analyzer included.
    pub calls: Option<u64>,
}

/// What a search has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SearchSpent {
    /// Executions of the program.
    pub runs: u64,
    /// Live model calls, those to an analyzer included.
    pub calls: u64,
    /// Tokens of the program's live calls, as the upstream counted them.
    pub live_tokens: u64,
    /// Tokens that came from the record instead.
    pub recorded_tokens: u64,
}

/// Counts live calls over all upstreams of a search: the call beyond the budget is refused, so it is never paid for.
#[derive(Debug)]
pub struct CallMeter {
    limit: u64,
    calls: AtomicU64,
}

/// An upstream whose calls are counted.
#[derive(Debug)]
pub(super) struct CountedUpstream {
    live: Arc<dyn Upstream>,
    meter: Arc<CallMeter>,
    /// The execution that is ended where a call is refused.
    execution: Arc<ExecutionMeter>,
}

impl CallMeter {
    /// Nothing is spent yet.
    pub fn new(budget: SearchBudget) -> Arc<Self> {
        let limit = budget.calls.unwrap_or(u64::MAX);
        Arc::new(Self { limit, calls: AtomicU64::new(0) })
    }

    /// An upstream whose calls are counted here; an execution that calls beyond the budget is ended.
    pub(super) fn count(
        self: &Arc<Self>,
        live: Arc<dyn Upstream>,
        execution: Arc<ExecutionMeter>,
    ) -> Arc<dyn Upstream> {
        Arc::new(CountedUpstream { live, meter: Arc::clone(self), execution })
    }

    /// Executes a system once with its live calls counted here. A call beyond the budget ends the program.
    ///
    /// # Errors
    /// [`ExecutionError`]; being told to stop is one.
    pub(super) async fn execute(
        self: &Arc<Self>,
        system: &SystemUnderTest,
        run: &RunId,
        arm: ExecutionArm,
    ) -> Result<ExecutedRun, ExecutionError> {
        let meter = Arc::<ExecutionMeter>::default();
        let live = self.count(system.live(), Arc::clone(&meter));
        let executed = system.execute_at(run, arm, Some(live), meter).await?;
        if executed.is_interrupted() { Err(ExecutionError::Interrupted) } else { Ok(executed) }
    }

    /// Counts calls that were made elsewhere for the same search.
    pub fn paid(&self, calls: u64) {
        self.calls.fetch_add(calls, Ordering::Relaxed);
    }

    /// Calls made so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether no further call would be let through.
    pub(super) fn is_spent(&self) -> bool {
        self.calls() >= self.limit
    }
}

impl Upstream for CountedUpstream {
    fn name(&self) -> &str {
        self.live.name()
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        let CallMeter { limit, calls } = &*self.meter;
        let reserve = |calls: u64| (calls < *limit).then_some(calls + 1);
        if calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_err() {
            self.execution.stop(Halt::Budget);
            let limit = *limit;
            return Box::pin(async move { Err(UpstreamError::OverBudget { limit }) });
        }
        self.live.send(request)
    }
}
