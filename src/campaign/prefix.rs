//! What a cell's model calls are answered by: a clean run by the live upstream alone, any other by the record of its
//! reference up to where it leaves it. So all arms of a task begin alike by construction, and the beginning is paid
//! for once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use hyper::Request;

use super::{
    cell::{Cell, CellKind},
    cost::Cost,
    error::CampaignError,
    metered::{CellMeter, Halt},
    state::CampaignState,
};
use crate::{
    proxy::upstream::{BackendAnswering, SentBody, Upstream, UpstreamError},
    replay::{AtFork, Cassette, ForkPoint, Prefixed},
    trajectory::RunId,
};

/// The records of references in use, each held once.
#[derive(Debug, Default)]
pub(super) struct References(Mutex<HashMap<RunId, Weak<Cassette>>>);

/// The upstream of one cell, with what is to be asked of it afterwards.
#[derive(Debug)]
pub(super) enum ArmUpstream {
    /// Live from the beginning.
    Live(Arc<dyn Upstream>),
    /// From a record, then live.
    Forked(Arc<Forked>),
}

/// A record, then live; a program that leaves the record is ended.
#[derive(Debug)]
pub(super) struct Forked {
    prefixed: Prefixed,
    meter: Arc<CellMeter>,
}

impl Upstream for Forked {
    fn name(&self) -> &str {
        self.prefixed.name()
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let answer = self.prefixed.send(request).await;
            if matches!(answer, Err(UpstreamError::Diverged(_))) {
                self.meter.stop(Halt::Diverged);
            }
            answer
        })
    }
}

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

impl ArmUpstream {
    /// The upstream of a cell over the live one.
    pub(super) fn of(
        references: &References,
        state: &CampaignState,
        cell: &Cell,
        live: Arc<dyn Upstream>,
        meter: &Arc<CellMeter>,
    ) -> Result<Self, CampaignError> {
        let Some(reference) = cell.reference() else { return Ok(Self::Live(live)) };
        let cassette = references.open(state, reference)?;
        let fork = fork(cell, &cassette);
        let Some(fork) = fork else { return Ok(Self::Live(live)) };
        let prefixed = Prefixed::new(cassette, fork, live).map_err(|_| CampaignError::Lost)?;
        Ok(Self::Forked(Arc::new(Forked { prefixed, meter: Arc::clone(meter) })))
    }

    /// The upstream.
    pub(super) fn upstream(&self) -> Arc<dyn Upstream> {
        match self {
            ArmUpstream::Live(live) => Arc::clone(live),
            ArmUpstream::Forked(forked) => Arc::<Forked>::clone(forked),
        }
    }

    /// Where the run left the record before it was to, in words.
    pub(super) fn diverged(&self) -> Option<String> {
        match self {
            ArmUpstream::Live(_) => None,
            ArmUpstream::Forked(forked) => forked.prefixed.report().diverged.map(|departure| departure.to_string()),
        }
    }

    /// What the record answered.
    pub(super) fn served(&self) -> Cost {
        let ArmUpstream::Forked(forked) = self else { return Cost::default() };
        let report = forked.prefixed.report();
        Cost {
            calls: report.served.len() as u64,
            input: report.saved.input,
            output: report.saved.output,
            ..Cost::default()
        }
    }
}

/// Where a cell leaves the record of its reference.
fn fork(cell: &Cell, cassette: &Cassette) -> Option<ForkPoint> {
    match &cell.kind {
        CellKind::Clean { .. } => None,
        CellKind::Injected { aimed, .. } => ForkPoint::of_plan(cassette, &aimed.plan, &cell.run),
        CellKind::Null { fork, .. } => {
            let at = if fork.replied { AtFork::Recorded } else { AtFork::Live };
            Some(ForkPoint { step: fork.step, at })
        }
        CellKind::Again { treatment, .. } | CellKind::Without { treatment, .. } => Some(treatment.fork.clone()),
    }
}
