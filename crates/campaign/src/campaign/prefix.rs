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
    replay::{AtFork, Cassette, ForkPoint, Rules, ToolResults, learned_rules},
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
    /// What may differ from the requests of a reference, as its clean runs showed.
    learned: Mutex<HashMap<RunId, Rules>>,
}

impl References {
    pub(super) fn new(equality: CampaignEquality) -> Self {
        Self { equality, ..Self::default() }
    }

    /// What the clean runs of a task show to be equal; of its tools, unless the user says it.
    pub(super) fn learn(&self, reference: &RunId, clean: &[Recording]) -> Rules {
        let rules = learned_rules(clean, &self.equality.rules, !self.equality.tool_results_given);
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.insert(reference.clone(), rules.clone());
        rules
    }

    /// What of these rules was learned, in words.
    pub(super) fn learned(&self, rules: &Rules) -> Vec<String> {
        let how = match rules.tool_results() {
            setting if setting == self.equality.rules.tool_results() => None,
            ToolResults::Exact => None,
            ToolResults::Masked => Some("results of tools, in words with a digit".to_owned()),
            ToolResults::Any => Some("results of tools".to_owned()),
        };
        let places = rules.volatile().iter().map(|place| format!("volatile: {place}"));
        how.into_iter().chain(places).collect()
    }

    /// What is equal in the runs of a reference.
    pub(super) fn rules(&self, reference: &RunId) -> Rules {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.get(reference).unwrap_or(&self.equality.rules).clone()
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
