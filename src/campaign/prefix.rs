//! The records that cells begin like, and where a cell leaves its own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{
    cell::{Cell, CellKind},
    error::CampaignError,
    state::CampaignState,
};
use crate::{
    replay::{AtFork, Cassette, ForkPoint},
    trajectory::RunId,
};

/// The records of references in use, each held once.
#[derive(Debug, Default)]
pub(super) struct References(Mutex<HashMap<RunId, Weak<Cassette>>>);

impl References {
    /// The record of a run.
    pub(super) fn open(&self, state: &CampaignState, run: &RunId) -> Result<Arc<Cassette>, CampaignError> {
        let held = |known: &HashMap<RunId, Weak<Cassette>>| known.get(run).and_then(Weak::upgrade);
        if let Some(cassette) = held(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(cassette);
        }
        // Read outside the lock: two cells may read the same record, and one of them is kept.
        let cassette = Arc::new(Cassette::open(&state.run_dir(run))?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, cassette| cassette.strong_count() > 0);
        known.insert(run.clone(), Arc::downgrade(&cassette));
        Ok(cassette)
    }
}

/// Where a cell leaves the record of its reference.
pub(super) fn fork(cell: &Cell, cassette: &Cassette) -> Option<ForkPoint> {
    match &cell.kind {
        CellKind::Clean { .. } => None,
        CellKind::Injected { aimed, .. } => ForkPoint::of_plan(cassette, &aimed.plan, &cell.run),
        CellKind::Null { fork, .. } | CellKind::Sham { fork, .. } => {
            let at = if fork.replied { AtFork::Recorded } else { AtFork::Live };
            Some(ForkPoint { step: fork.step, at })
        }
        CellKind::Again { treatment, .. } | CellKind::Without { treatment, .. } => Some(treatment.fork.clone()),
    }
}
