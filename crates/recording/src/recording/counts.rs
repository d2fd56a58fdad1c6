//! What is counted of a run as it is recorded: exchanges, steps of each agent, the time that its calls took.

use std::collections::{BTreeMap, HashMap};

use crate::trajectory::StepIndex;

/// A call by its step and attempt.
type CallKey = (StepIndex, u32);

#[derive(Debug, Default)]
pub(super) struct RecordCounts {
    /// Steps per agent.
    pub(super) agents: BTreeMap<String, u64>,
    /// Exchanges that were opened.
    pub(super) exchanges: u64,
    /// Exchanges that were closed.
    pub(super) closed: u64,
    /// Calls under way: when each arrived, in microseconds since the recording began.
    open: HashMap<CallKey, u64>,
    /// From the arrival of the first call to the end of the last.
    span: Option<(u64, u64)>,
    /// How often the recording went on: each time its clock begins anew.
    reopened: u32,
    /// Whether calls were recorded by more than one clock: then no span is known.
    has_two_clocks: bool,
}

impl RecordCounts {
    /// An exchange was opened.
    pub(super) fn opened(&mut self, call: CallKey, agent: &str, at_us: u64) {
        self.exchanges += 1;
        let is_first = call.1 == 0;
        if is_first {
            *self.agents.entry(agent.to_owned()).or_default() += 1;
        }
        self.has_two_clocks |= self.reopened > 0;
        self.open.insert(call, at_us);
        let (first, last) = self.span.unwrap_or((at_us, at_us));
        self.span = Some((first.min(at_us), last.max(at_us)));
    }

    /// An exchange was closed, so long after it arrived.
    pub(super) fn closed(&mut self, call: CallKey, took_us: Option<u64>) {
        self.closed += 1;
        if let (Some(at_us), Some((first, last))) = (self.open.remove(&call), self.span) {
            self.span = Some((first, last.max(at_us.saturating_add(took_us.unwrap_or_default()))));
        }
    }

    /// The recording goes on.
    pub(super) fn reopened(&mut self) {
        self.open.clear();
        self.reopened += 1;
    }

    /// From the arrival of the first call to the end of the last, in microseconds, where one clock has counted all of them.
    pub(super) fn calls_us(&self) -> Option<u64> {
        self.span.filter(|_| !self.has_two_clocks).map(|(first, last)| last - first)
    }
}
