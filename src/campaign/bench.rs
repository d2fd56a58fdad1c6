//! The bench: one proxy a system, and cells run side by side, as many as the gate lets in.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::{Arc, PoisonError},
};

use tokio::{sync::Mutex, task::JoinSet};

use super::{
    cell::Cell,
    ended::EndedCell,
    error::CampaignError,
    metered::{CellMeter, House, Metered},
    prefix::References,
    salvage::Salvage,
    state::CampaignState,
};
use crate::{
    execution::{Executor, Stop},
    proxy::upstream::Upstream,
    trajectory::RunId,
    verify::Transcript,
};

/// Everything that a cell needs.
pub(super) struct CellBench {
    pub(super) house: Arc<House>,
    /// The systems behind their proxies; none where only what was run before is looked at: then there is no upstream and
    /// no socket, and no cell is begun.
    pub(super) systems: Vec<Executor>,
    /// Chains at once.
    pub(super) jobs: usize,
    /// Systems that were seen not to repeat themselves, by index.
    pub(super) revoked: std::sync::Mutex<BTreeSet<usize>>,
    pub(super) state: CampaignState,
    /// The digest of all that rows of the campaign depend on.
    pub(super) digest: String,
    /// Whether chains are concluded from their recordings, whatever was concluded before.
    pub(super) rereads: bool,
    pub(super) references: References,
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

/// The model that judges outcomes. It is asked once a question, however often that is put.
#[derive(Debug)]
pub(super) struct JudgeModel {
    pub(super) transcript: Arc<Transcript>,
    pub(super) meter: Arc<CellMeter>,
}

impl JudgeModel {
    /// A judge at an upstream, within the campaign's budget.
    pub(super) fn at(
        upstream: Arc<dyn Upstream>,
        house: &Arc<House>,
        state: &CampaignState,
    ) -> Result<Self, CampaignError> {
        let meter = Arc::new(CellMeter::default());
        let salvage = Arc::<Salvage>::default();
        let (house, counted) = (Arc::clone(house), Arc::clone(&meter));
        let metered = Metered { inner: upstream, house, meter: counted, salvage, max_calls: None };
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
            let place = self.house.gate.enter().await;
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
        Ok(self.state.ended(run)?.filter(|ended| ended.diverged.is_some() || !ended.upstream_failed))
    }

    /// Whether no further cell is to be begun.
    pub(super) fn is_over(&self) -> bool {
        self.systems.is_empty() || self.stop.borrow().is_some() || self.house.ledger.is_exhausted()
    }

    /// A system was seen not to repeat itself: none of its claims is shown by equal repeats any more.
    pub(super) fn revoke(&self, system: usize) {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner).insert(system);
    }

    /// The systems that were seen not to repeat themselves.
    pub(super) fn revoked(&self) -> BTreeSet<usize> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of a cell's system and task.
    pub(super) fn names(&self, cell: &Cell) -> Result<(String, String), CampaignError> {
        let campaign = &self.house.campaign;
        match (campaign.systems.get(cell.system), campaign.tasks.get(cell.task)) {
            (Some(system), Some(task)) => Ok((system.name.clone(), task.id.clone())),
            _ => Err(CampaignError::Lost),
        }
    }
}

impl House {
    /// Lets more cells in after one that the upstream took without a refusal.
    pub(super) fn gate_after(&self, ended: &EndedCell) {
        if ended.limited == 0 {
            self.gate.raise();
        }
    }
}
