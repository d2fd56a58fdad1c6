//! The bench: one proxy a system, and cells run side by side, as many as the gate lets in.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::{Arc, PoisonError},
    time::Duration,
};

use hyper::Response;
use tokio::{sync::Mutex, task::JoinSet};

use super::{
    cell::Cell, definition::Campaign, ended::EndedCell, error::CampaignError, gate::CellGate, natural::FailureTracer,
    prefix::References, salvage::Salvage, sitting::Sitting, state::CampaignState,
};
use crate::{
    budget::{Ledger, Price},
    execution::{CallHook, ExecutionMeter, Executor, Meter, Stop},
    proxy::upstream::{ReceivedBody, Upstream},
    trajectory::RunId,
    verify::Transcript,
};

/// What all cells of a campaign share.
#[derive(Debug)]
pub(super) struct CampaignContext {
    pub(super) campaign: Arc<Campaign>,
    pub(super) meter: Arc<Meter>,
    pub(super) gate: Arc<CellGate>,
}

/// What a campaign does with the calls of a cell beside paying for them.
#[derive(Debug)]
pub(super) struct CellCalls {
    pub(super) salvage: Salvage,
    pub(super) gate: Arc<CellGate>,
}

impl CallHook for CellCalls {
    fn recall(&self, path: &str, body: &[u8]) -> Option<Response<ReceivedBody>> {
        self.salvage.take(path, body)
    }

    fn limited(&self, wait: Option<Duration>) {
        self.gate.lower(wait);
    }
}

/// Everything that a cell needs.
pub(super) struct CellBench {
    pub(super) context: Arc<CampaignContext>,
    /// The systems behind their proxies; none where only what was run before is looked at: then there is no upstream and
    /// no socket, and no cell is begun.
    pub(super) systems: Vec<Executor>,
    /// Chains at once.
    pub(super) jobs: usize,
    /// Systems that were seen not to repeat themselves, by index.
    pub(super) revoked: std::sync::Mutex<BTreeSet<usize>>,
    pub(super) state: CampaignState,
    /// What this start makes is of this sitting.
    pub(super) sitting: Sitting,
    /// The digest of all that rows of the campaign depend on.
    pub(super) digest: String,
    /// Whether chains are concluded from their recordings, whatever was concluded before.
    pub(super) rereads: bool,
    pub(super) references: References,
    /// What searches failures; none where nothing is executed.
    pub(super) tracer: Option<Arc<dyn FailureTracer>>,
    /// The model that judges, where one does.
    pub(super) judge: Option<JudgeModel>,
    /// This program, for `{aegis}`.
    pub(super) program: PathBuf,
    /// What paths of the campaign file are relative to.
    pub(super) directory: PathBuf,
    /// Set when we are asked to stop.
    pub(super) stop: Stop,
}

/// Cells that several claims of a chain may ask for: each is made once, whoever asks first.
pub(super) type Slots = Mutex<HashMap<RunId, Arc<Mutex<Option<EndedCell>>>>>;

/// The model that judges outcomes. It is asked about each execution, once.
#[derive(Debug)]
pub(super) struct JudgeModel {
    pub(super) transcript: Arc<Transcript>,
    pub(super) meter: Arc<ExecutionMeter>,
}

impl JudgeModel {
    /// A judge at an upstream, within the campaign's budget.
    pub(super) fn at(
        upstream: Arc<dyn Upstream>,
        context: &Arc<CampaignContext>,
        state: &CampaignState,
    ) -> Result<Self, CampaignError> {
        let meter = Arc::<ExecutionMeter>::default();
        let calls = CellCalls { salvage: Salvage::default(), gate: Arc::clone(&context.gate) };
        let metered = context.meter.metered(upstream, &meter).hooked(Arc::new(calls));
        let path = state.root().join("judge.jsonl");
        let transcript = Transcript::open(&path, Some(Arc::new(metered)));
        let transcript = transcript.map_err(|source| CampaignError::Directory { path, source })?;
        Ok(Self { transcript: Arc::new(transcript), meter })
    }
}

impl CellBench {
    /// Runs cells side by side and returns what came of them in their own order, whatever order they ended in. Cells
    /// that could not be finished are `None`.
    pub(super) async fn stage(self: &Arc<Self>, cells: &[Cell]) -> Result<Vec<Option<EndedCell>>, CampaignError> {
        let mut running = JoinSet::new();
        let mut ended = BTreeMap::new();
        for (number, cell) in cells.iter().enumerate() {
            if let Some(known) = self.finished(&cell.run)? {
                ended.insert(number, Some(known));
                continue;
            }
            let place = self.context.gate.enter().await;
            if self.is_over() {
                continue;
            }
            let (bench, cell) = (Arc::clone(self), cell.clone());
            running.spawn(async move {
                let conducted = bench.conduct(&cell).await;
                drop(place);
                (number, conducted)
            });
        }
        while let Some(done) = running.join_next().await {
            let (number, conducted) = done.map_err(|_| CampaignError::Lost)?;
            ended.insert(number, conducted?);
        }
        Ok((0..cells.len()).map(|number| ended.remove(&number).flatten()).collect())
    }

    /// What came of a cell that need not be run again. One that an upstream's failure ended is tried anew.
    pub(super) fn finished(&self, run: &RunId) -> Result<Option<EndedCell>, CampaignError> {
        let ended = self.state.ended(run)?.filter(|ended| ended.diverged.is_some() || !ended.upstream_failed);
        if let Some(learned) = ended.as_ref().and_then(|ended| ended.learned.as_ref()) {
            self.references.take_up(learned);
        }
        Ok(ended)
    }

    /// Whether no further cell is to be begun.
    pub(super) fn is_over(&self) -> bool {
        self.systems.is_empty() || self.stop.borrow().is_some() || self.context.meter.is_exhausted()
    }

    /// A system was seen not to repeat itself: none of its claims is shown by equal repeats any more. `evidence`: where two runs
    /// differed, if this process saw it.
    pub(super) fn revoke(&self, system: usize, evidence: Option<&str>) {
        let first = self.revoked.lock().unwrap_or_else(PoisonError::into_inner).insert(system);
        if let (true, Some(evidence), Some(system)) = (first, evidence, self.context.campaign.systems.get(system)) {
            tracing::warn!("`{}` does not repeat itself: {evidence}", system.name);
        }
    }

    /// The systems that were seen not to repeat themselves.
    pub(super) fn revoked(&self) -> BTreeSet<usize> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of a cell's system and task.
    pub(super) fn names(&self, cell: &Cell) -> Result<(String, String), CampaignError> {
        let campaign = &self.context.campaign;
        match (campaign.systems.get(cell.system), campaign.tasks.get(cell.task)) {
            (Some(system), Some(task)) => Ok((system.name.clone(), task.id.clone())),
            _ => Err(CampaignError::Lost),
        }
    }
}

impl CampaignContext {
    /// What all cells share; `ledger` has what was spent before.
    pub(super) fn new(campaign: &Arc<Campaign>, ledger: Ledger, jobs: usize) -> Arc<Self> {
        let priced = Arc::clone(campaign);
        let price =
            move |model: &str| priced.price(model).map(|price| Price { input: price.input, output: price.output });
        let meter = Meter::new(ledger, campaign.budget.max_output_tokens, price);
        Arc::new(Self { campaign: Arc::clone(campaign), meter, gate: Arc::new(CellGate::new(jobs)) })
    }

    /// Lets more cells in after one that the upstream took without a refusal.
    pub(super) fn gate_after(&self, ended: &EndedCell) {
        if ended.limited == 0 {
            self.gate.raise();
        }
    }
}
