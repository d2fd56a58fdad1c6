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
    recording::Recording,
    replay::{AtFork, Cassette, ForkPoint, Rules, ToolResults, learned_tool_results},
    trajectory::RunId,
};

/// What may differ in the requests of a campaign that are still the same.
#[derive(Debug, Clone, Default)]
pub struct CampaignEquality {
    /// What the user says of it.
    pub rules: Rules,
    /// Whether that covers results of tools; else the clean runs of each task tell.
    pub tool_results_given: bool,
}

/// The records of references in use, each held once.
#[derive(Debug, Default)]
pub(super) struct References {
    equality: CampaignEquality,
    held: Mutex<HashMap<RunId, Weak<Cassette>>>,
    /// How far results of tools may differ from those of a reference, where its clean runs showed that they do.
    learned: Mutex<HashMap<RunId, ToolResults>>,
}

impl References {
    pub(super) fn new(equality: CampaignEquality) -> Self {
        Self { equality, ..Self::default() }
    }

    /// What the clean runs of a task show of its tools, unless the user says it.
    pub(super) fn learn(&self, reference: &RunId, clean: &[Recording]) -> ToolResults {
        let said = Some(self.equality.rules.tool_results()).filter(|_| self.equality.tool_results_given);
        let tool_results = said.unwrap_or_else(|| learned_tool_results(clean, &self.equality.rules));
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.insert(reference.clone(), tool_results);
        tool_results
    }

    /// What is equal in the runs of a reference.
    pub(super) fn rules(&self, reference: &RunId) -> Rules {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let tool_results = learned.get(reference).copied().unwrap_or(self.equality.rules.tool_results());
        self.equality.rules.clone().with_tool_results(tool_results)
    }

    /// The record of a run.
    pub(super) fn open(&self, state: &CampaignState, run: &RunId) -> Result<Arc<Cassette>, CampaignError> {
        let held = |known: &HashMap<RunId, Weak<Cassette>>| known.get(run).and_then(Weak::upgrade);
        if let Some(cassette) = held(&self.held.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(cassette);
        }
        // Read outside the lock: two cells may read the same record, and one of them is kept.
        let cassette = Arc::new(Cassette::open(&state.run_dir(run))?.with_rules(self.rules(run)));
        let mut known = self.held.lock().unwrap_or_else(PoisonError::into_inner);
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
        CellKind::Control { fork, .. } | CellKind::Sham { fork, .. } => {
            let at = if fork.replied { AtFork::Recorded } else { AtFork::Live };
            Some(ForkPoint { step: fork.step, at })
        }
        CellKind::Again { treatment, .. } | CellKind::Without { treatment, .. } => Some(treatment.fork.clone()),
    }
}
