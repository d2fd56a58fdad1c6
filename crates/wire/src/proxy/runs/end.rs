//! The end of a run that somebody says is over, and where each run stands.

use std::{sync::Arc, time::Duration};

use super::{EndedRun, Runs, put_down::HOLDERS};
use crate::{
    identity::LateStep,
    proxy::{error::ProxyError, run::Run},
    recording::{self, RecordingError},
    ruling,
    trajectory::RunId,
};

/// How long the end of a run waits for calls under way: a client may have its reply before we are done with the call.
const QUIET_DUE: Duration = Duration::from_secs(2);
/// How often it is looked whether they are over.
const LOOK: Duration = Duration::from_millis(10);

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStanding {
    /// The server has it open.
    Open,
    /// Its recording goes on with the next request that names it.
    Idle,
    /// It is sealed.
    Ended,
}

impl RunStanding {
    /// Its name, for whoever asks over HTTP.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Idle => "idle",
            Self::Ended => "ended",
        }
    }
}

/// Why a run was not ended.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// There is none of this name.
    #[error("no run `{0}` was recorded here")]
    Unknown(RunId),
    /// Calls are under way in it.
    #[error("{calls} calls of run `{run}` are under way")]
    Busy {
        /// The run.
        run: RunId,
        /// How many.
        calls: usize,
    },
    /// It cannot be opened or sealed.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
}

impl From<RecordingError> for EndError {
    fn from(error: RecordingError) -> Self {
        Self::Proxy(error.into())
    }
}

impl EndedRun {
    /// Writes what all traffic says of the run, where it differs from what was said on arrival, and its label, where it has
    /// one. What goes wrong is logged: the run has ended all the same.
    pub fn conclude(&self, late: Option<&Vec<LateStep>>) {
        if let Some(steps) = late
            && let Err(error) = recording::write_identity(&self.dir, steps)
        {
            tracing::error!(run = %self.id, %error, "cannot write identity.json");
        }
        self.label();
    }

    /// Rules on what was recorded by now and writes the label, where there is one. A run that goes on is ruled on again.
    pub fn label(&self) {
        // Its recording would be read anew, to be told that there was no plan.
        if self.planned
            && let Err(error) = ruling::settle(&self.dir, None)
        {
            tracing::error!(run = %self.id, %error, "cannot derive a label");
        }
    }
}

impl Runs {
    /// Where a run stands; `None` where there is none of this name. Looks at the disk.
    pub fn standing(&self, id: &RunId) -> Option<RunStanding> {
        if self.read_places().get(id).is_some_and(|place| !place.is_vacant()) {
            return Some(RunStanding::Open);
        }
        let dir = self.template.log_dir.join(id.as_str());
        match (dir.join("seal.json").is_file(), dir.join("run.json").is_file()) {
            (true, _) => Some(RunStanding::Ended),
            (false, true) => Some(RunStanding::Idle),
            (false, false) => None,
        }
    }

    /// Ends a run: it takes nothing more, and is sealed. One that has ended stays as it is. Waits a while for calls under way,
    /// and gives up replies that nobody has fetched. The caller [concludes](EndedRun::conclude) it.
    ///
    /// # Errors
    /// [`EndError`]: then it goes on.
    pub async fn end(self: &Arc<Self>, id: &RunId) -> Result<EndedRun, EndError> {
        match self.standing(id) {
            None => return Err(EndError::Unknown(id.clone())),
            Some(RunStanding::Ended) => return Ok(self.ended_before(id)?),
            Some(RunStanding::Open | RunStanding::Idle) => {}
        }
        let run = match self.get(id).await {
            Ok(run) => run,
            Err(ProxyError::Sealed(_)) if self.standing(id) == Some(RunStanding::Ended) => {
                return Ok(self.ended_before(id)?);
            }
            Err(ProxyError::Sealed(run)) => return Err(EndError::Busy { run, calls: 0 }),
            // Of a plan that this server does not have: it can be ended, if not continued.
            Err(ProxyError::Recording(RecordingError::OtherPlan { .. })) => return self.end_left(id).await,
            Err(error) => return Err(error.into()),
        };
        self.background.give_up(|awaited| awaited.run.id == *id);
        let is_unused = |run: &Arc<Run>| run.is_quiet() && Arc::strong_count(run) == HOLDERS;
        let retired = tokio::time::timeout(QUIET_DUE, async {
            while !self.retire_where(&run, |_| is_unused(&run)) {
                tokio::time::sleep(LOOK).await;
            }
        });
        if retired.await.is_err() {
            return Err(EndError::Busy { run: id.clone(), calls: run.in_flight() });
        }
        let runs = Arc::clone(self);
        let sealed = tokio::task::spawn_blocking(move || {
            let sealed = runs.seal_one(&run).map(|(_, ended)| ended);
            if sealed.is_err() {
                run.recorder.let_go();
                runs.write_places().remove(&run.id);
            }
            sealed
        });
        Ok(sealed.await.map_err(|_| ProxyError::Internal)??)
    }

    async fn end_left(self: &Arc<Self>, id: &RunId) -> Result<EndedRun, EndError> {
        let (runs, id) = (Arc::clone(self), id.clone());
        let sealed = tokio::task::spawn_blocking(move || {
            recording::seal_left(&runs.template.log_dir.join(id.as_str()))?;
            runs.ended_before(&id)
        });
        Ok(sealed.await.map_err(|_| ProxyError::Internal)??)
    }

    /// A run that is sealed already, as its seal tells it.
    fn ended_before(&self, id: &RunId) -> Result<EndedRun, RecordingError> {
        let dir = self.template.log_dir.join(id.as_str());
        let steps = recording::read_seal(&dir)?.map_or(0, |seal| u32::try_from(seal.steps).unwrap_or(u32::MAX));
        // One that has its label, and nobody has edited that, is not ruled on again.
        let planned =
            recording::read_manifest(&dir)?.plan.is_some() && !matches!(recording::read_label(&dir), Ok(Some(_)));
        Ok(EndedRun { id: id.clone(), dir, steps, planned })
    }
}
