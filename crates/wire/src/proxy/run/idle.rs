//! Whether anybody uses a run.

use std::{sync::atomic::Ordering, time::Duration};

use super::Run;
use crate::proxy::lock::locked;

impl Run {
    pub(in crate::proxy) fn idle_for(&self) -> Duration {
        Duration::from_micros(self.elapsed_us().saturating_sub(self.last_seen_us.load(Ordering::Relaxed)))
    }

    /// Whether no exchange is under way.
    pub fn is_quiet(&self) -> bool {
        self.in_flight() == 0
    }

    /// Exchanges under way.
    pub(in crate::proxy) fn in_flight(&self) -> usize {
        locked(&self.state).agents.values().map(|agent| agent.in_flight as usize).sum()
    }

    /// Its program is still there. Gives the time, as [`Run::elapsed_us`] does.
    pub(in crate::proxy) fn touch(&self) -> u64 {
        let now = self.elapsed_us();
        self.last_seen_us.store(now, Ordering::Relaxed);
        now
    }

    /// Whether a request has named it: then another one can, whenever that comes.
    pub(in crate::proxy) fn is_named(&self) -> bool {
        self.is_named.load(Ordering::Relaxed)
    }

    pub(in crate::proxy) fn named(&self) {
        self.is_named.store(true, Ordering::Relaxed);
    }
}
