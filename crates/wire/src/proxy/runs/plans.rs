//! The plans of a server: that of new runs, and those that earlier runs were opened under. A run keeps its own for its life.

use std::sync::{Arc, PoisonError, RwLock};

use super::Runs;
use crate::{
    identity::RosterRule,
    plan::Plan,
    proxy::{error::ProxyError, run::Run, setup::RunSetup},
    recording::RecordingError,
    trajectory::RunId,
};

/// Earlier plans that are remembered: a run of an older one can be ended, but not continued.
const EARLIER: usize = 16;

/// The plan of new runs, then the earlier ones, latest first.
#[derive(Debug, Default)]
pub(super) struct RunPlans(RwLock<Vec<Arc<Plan>>>);

impl RunPlans {
    pub(super) fn new(plan: Option<Arc<Plan>>) -> Self {
        Self(RwLock::new(plan.into_iter().collect()))
    }

    fn all(&self) -> Vec<Arc<Plan>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Clone for RunPlans {
    fn clone(&self) -> Self {
        Self(RwLock::new(self.all()))
    }
}

impl Runs {
    /// Gives new runs another plan; those that were opened before keep theirs.
    pub fn replan(&self, plan: Arc<Plan>) {
        let mut plans = self.plans.0.write().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|known| (&known.digest, known.seed) != (&plan.digest, plan.seed));
        plans.insert(0, plan);
        plans.truncate(1 + EARLIER);
    }

    /// Opens a run before its first request, under the server's plan: it waits for requests that name it.
    ///
    /// # Errors
    /// There is a run of this name, or its recording cannot be made.
    pub async fn begin(
        self: &Arc<Self>,
        id: &RunId,
        task: Option<String>,
        roster: Vec<RosterRule>,
    ) -> Result<Arc<Run>, ProxyError> {
        let plan = self.plans.all().into_iter().next();
        let run = self.open(id, RunSetup { plan, task, roster, ..RunSetup::default() }).await?;
        run.named();
        Ok(run)
    }

    /// The run of that id, opened on arrival with the server's plan if it is new, and with its own if it is not.
    ///
    /// # Errors
    /// The run is sealed, or its recording cannot be made.
    pub async fn get(self: &Arc<Self>, id: &RunId) -> Result<Arc<Run>, ProxyError> {
        let plans = self.plans.all();
        let under = |plan: Option<&Arc<Plan>>| RunSetup { plan: plan.cloned(), ..RunSetup::default() };
        let mut opened = self.open(id, under(plans.first())).await;
        for earlier in plans.iter().skip(1) {
            let Err(ProxyError::Recording(RecordingError::OtherPlan { .. })) = opened else { break };
            opened = self.open(id, under(Some(earlier))).await;
        }
        opened
    }
}
