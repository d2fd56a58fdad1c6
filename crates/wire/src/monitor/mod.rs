//! What passes, told to whoever watches a server: counts for Prometheus, spans for a collector of OpenTelemetry.
//!
//! Nothing here makes an exchange wait: counts are atomics; a call that is to become a span goes into a bounded queue, and one
//! that has no room in it is left out and counted. The recording is the record; this is a view of it.

mod accounts;
mod closed;
mod counts;
mod queue;
mod spans;

use std::time::SystemTime;

pub use closed::{ClosedBodies, ClosedCall};
pub use counts::TrafficCounts;
pub use queue::{SpanBatch, SpanSource};
pub use spans::SpanSettings;

use self::queue::SpanQueue;
use crate::trajectory::{Outcome, RunId};

/// What is told of a server's traffic.
#[derive(Debug, Default)]
pub struct Monitor {
    counts: TrafficCounts,
    spans: Option<SpanQueue>,
}

impl Monitor {
    /// Counts alone.
    pub fn counting() -> Self {
        Self::default()
    }

    /// Counts, and spans for a collector, which are taken from the source.
    pub fn spanning(settings: SpanSettings) -> (Self, SpanSource) {
        let (queue, source) = queue::channel(settings);
        (Self { counts: TrafficCounts::default(), spans: Some(queue) }, source)
    }

    /// The counts.
    pub fn counts(&self) -> &TrafficCounts {
        &self.counts
    }

    /// Whether closed calls are to bring what was asked and answered: for spans, or to count how much of it was read.
    pub fn wants_bodies(&self) -> bool {
        self.spans.is_some() || self.counts.wants_bodies()
    }

    /// A call was opened.
    pub fn opened(&self) {
        self.counts.opened();
    }

    /// A call was closed. `bodies`: what was asked and what the agent got; asked for only where they are wanted. `None` where they
    /// were not wanted when the call began.
    pub fn closed(&self, call: &ClosedCall<'_>, bodies: impl Fn() -> Option<ClosedBodies>) {
        self.counts.closed(call);
        self.counts.read(call, || self.counts.wants_bodies().then(&bodies).flatten());
        if let Some(spans) = &self.spans
            && !spans.push_call(call, || bodies().unwrap_or_default())
        {
            self.counts.span_left_out();
        }
    }

    /// Nothing more comes: what waits is sent, and then the source is at its end.
    pub async fn end(&self) {
        if let Some(spans) = &self.spans {
            spans.end().await;
        }
    }

    /// An ended run was removed, for there is room for so many only.
    pub fn run_pruned(&self) {
        self.counts.run_pruned();
    }

    /// A run has ended: it lasted from then until now.
    pub fn run_ended(&self, run: &RunId, began: SystemTime, outcome: &Outcome) {
        self.counts.run_ended();
        if let Some(spans) = &self.spans
            && !spans.push_run(run, began, outcome)
        {
            self.counts.span_left_out();
        }
    }
}
