//! How many cells run at once: as many as were asked for, fewer while the upstream says that it is too much.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// The longest pause that an upstream's `Retry-After` is given.
const PAUSE_MAX: Duration = Duration::from_mins(2);
/// Refusals within this time of a lowering belong to the calls that it was for.
const SAME_WAVE: Duration = Duration::from_millis(500);

/// The gate that cells pass.
#[derive(Debug)]
pub(super) struct CellGate {
    most: usize,
    state: Mutex<GateState>,
    changed: Notify,
}

#[derive(Debug)]
struct GateState {
    limit: usize,
    inside: usize,
    lowest: usize,
    lowered: Option<Instant>,
    closed_until: Option<Instant>,
    calm: usize,
}

/// A place inside; given back when it is dropped.
#[derive(Debug)]
pub(super) struct GatePlace(Arc<CellGate>);

impl CellGate {
    /// A gate for so many cells at once.
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        let state = GateState { limit: most, inside: 0, lowest: most, lowered: None, closed_until: None, calm: 0 };
        Self { most, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Waits for a place.
    pub(super) async fn enter(self: &Arc<Self>) -> GatePlace {
        loop {
            let changed = self.changed.notified();
            let wait = {
                let mut state = self.state();
                let pause = state.closed_until.and_then(|until| until.checked_duration_since(Instant::now()));
                match pause.filter(|pause| !pause.is_zero()) {
                    Some(pause) => Some(pause),
                    None if state.inside < state.limit => {
                        state.inside += 1;
                        return GatePlace(Arc::clone(self));
                    }
                    None => None,
                }
            };
            match wait {
                Some(pause) => tokio::time::sleep(pause).await,
                None => changed.await,
            }
        }
    }

    /// The upstream said 429: half as many from now on, none before it wants to be asked again.
    pub(super) fn lower(&self, retry_after: Option<Duration>) {
        let now = Instant::now();
        let mut state = self.state();
        if state.lowered.is_none_or(|at| now.duration_since(at) > SAME_WAVE) {
            state.limit = (state.limit / 2).max(1);
            state.lowest = state.lowest.min(state.limit);
            state.lowered = Some(now);
        }
        state.calm = 0;
        let until = retry_after.map(|wait| now + wait.min(PAUSE_MAX));
        state.closed_until = state.closed_until.max(until);
    }

    /// A cell ended without a refusal: after as many of these as run at once, one more may.
    pub(super) fn raise(&self) {
        let mut state = self.state();
        state.calm += 1;
        if state.limit < self.most && state.calm >= state.limit {
            state.limit += 1;
            state.calm = 0;
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// The fewest cells at once that there ever were room for.
    pub(super) fn lowest(&self) -> usize {
        self.state().lowest
    }

    /// A panic while the lock was held cannot have left a count half-made.
    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GatePlace {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.inside = state.inside.saturating_sub(1);
        drop(state);
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refusal_halves_and_calm_restores() {
        let gate = Arc::new(CellGate::new(4));
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(gate.enter().await);
        }
        gate.lower(None);
        gate.lower(None);
        assert_eq!(gate.lowest(), 2, "one wave, one lowering");
        places.truncate(2);
        assert!(tokio::time::timeout(Duration::from_millis(20), gate.enter()).await.is_err(), "two are inside");
        gate.raise();
        gate.raise();
        assert_eq!(gate.state().limit, 3);
        places.push(gate.enter().await);
        for _ in 0..20 {
            gate.raise();
        }
        assert_eq!(gate.state().limit, 4, "never more than was asked for");
    }

    #[tokio::test]
    async fn it_stays_closed_as_long_as_the_upstream_wants() {
        let gate = Arc::new(CellGate::new(1));
        gate.lower(Some(Duration::from_millis(60)));
        let asked = Instant::now();
        drop(gate.enter().await);
        assert!(asked.elapsed() >= Duration::from_millis(55));
    }
}
