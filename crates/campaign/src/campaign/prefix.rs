//! The records that cells begin like, and where a cell leaves its own.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{
    cell::{Cell, CellKind},
    ended::LearnedEquality,
    error::CampaignError,
    state::CampaignState,
};
use crate::{
    recording::Recording,
    replay::{AtFork, Cassette, Departure, ForkPoint, Rules, learned_rules, rules_after_departure},
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
    /// What may differ from the requests of a reference, as runs of its task showed.
    learned: Mutex<HashMap<RunId, Rules>>,
    /// The references of which later runs showed more than the clean ones.
    shown_later: Mutex<HashSet<RunId>>,
}

impl References {
    pub(super) fn new(equality: CampaignEquality) -> Self {
        Self { equality, ..Self::default() }
    }

    /// What the clean runs of a task show to be equal; of its tools, unless the user says it.
    pub(super) fn learn(&self, reference: &RunId, clean: &[Recording]) -> Rules {
        self.add(reference, &learned_rules(clean, &self.equality.rules, !self.equality.tool_results_given));
        self.rules(reference)
    }

    /// Learns from a run that left its reference before anything was planted in it; whether there is more to learn than held for it.
    pub(super) fn learn_from_departure(
        &self,
        reference: &Recording,
        run: &Recording,
        departure: &Departure,
        held: &Rules,
    ) -> bool {
        let learns_results = !self.equality.tool_results_given;
        self.add_later(
            &reference.trajectory.run,
            &rules_after_departure(reference, run, departure, held, learns_results),
        );
        self.rules(&reference.trajectory.run).setting() != held.setting()
    }

    /// Learns from executions that were treated alike; whether they show more than is known. `rules`: how they are compared.
    pub(super) fn learn_from_arm(&self, reference: &RunId, arm: &[Recording], rules: &Rules) -> bool {
        self.add_later(reference, &learned_rules(arm, rules, !self.equality.tool_results_given))
    }

    /// Takes up what a finished cell was executed under.
    pub(super) fn take_up(&self, learned: &LearnedEquality) {
        let LearnedEquality { reference, tool_results, volatile } = learned;
        let rules = self.rules(reference).with_tool_results(*tool_results).with_volatile(volatile.clone());
        self.add_later(reference, &rules);
    }

    /// What a cell that is executed now keeps of what later runs showed.
    pub(super) fn shown_later(&self, reference: &RunId) -> Option<LearnedEquality> {
        let is_shown = self.shown_later.lock().unwrap_or_else(PoisonError::into_inner).contains(reference);
        let rules = self.rules(reference);
        let (tool_results, volatile) = (rules.tool_results(), rules.volatile().to_vec());
        is_shown.then(|| LearnedEquality { reference: reference.clone(), tool_results, volatile })
    }

    fn add_later(&self, reference: &RunId, rules: &Rules) -> bool {
        let is_more = self.add(reference, rules);
        if is_more {
            // A record that is held open goes by what was known when it was opened.
            self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(reference);
            self.shown_later.lock().unwrap_or_else(PoisonError::into_inner).insert(reference.clone());
        }
        is_more
    }

    /// Adds what these rules have learned to what is known of a reference; whether that is more than before.
    fn add(&self, reference: &RunId, rules: &Rules) -> bool {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let known = learned.get(reference).unwrap_or(&self.equality.rules).clone();
        let more = known.joined_with(rules);
        let is_more = more.setting() != known.setting();
        learned.insert(reference.clone(), more);
        is_more
    }

    /// What of these rules was learned, in words.
    pub(super) fn learned(&self, rules: &Rules) -> Vec<String> {
        rules.setting().learned_beyond(&self.equality.rules.setting())
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
