//! The runs of a server: opened on arrival or on purpose, found by id, retired.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    ask::Asking,
    background::{Background, NEVER_FETCHED},
    error::ProxyError,
    run::{Run, locked},
    upstream::Upstream,
};
use crate::{
    plan::Plan,
    recording::{RecordingError, Settings},
    trajectory::RunId,
};

/// What every run of a server starts from.
#[derive(Debug)]
pub struct RunTemplate {
    /// Where run directories are made.
    pub log_dir: PathBuf,
    /// How recordings are written.
    pub recording: Settings,
    /// The plan, if there is one.
    pub plan: Option<Arc<Plan>>,
    /// The upstream's name.
    pub upstream: String,
}

/// What a run that somebody opens on purpose has of its own.
#[derive(Debug, Clone, Default)]
pub struct RunSetup {
    /// Its plan, immutable for its life.
    pub plan: Option<Arc<Plan>>,
    /// Its upstream; without one it uses the server's.
    pub upstream: Option<Arc<dyn Upstream>>,
    /// The model that its manipulators may ask; without one they ask the server's.
    pub asking: Option<Arc<Asking>>,
}

/// The runs of a server.
#[derive(Debug)]
pub struct Runs {
    template: RunTemplate,
    asking: Option<Arc<Asking>>,
    open: Mutex<HashMap<RunId, Arc<Run>>>,
    sealed: Mutex<HashSet<RunId>>,
    /// How many ids were made here.
    opened: AtomicU64,
    /// Replies that are made in the background, of all runs.
    pub(super) background: Background,
}
impl Runs {
    /// No run yet.
    pub fn new(template: RunTemplate) -> Self {
        Self {
            template,
            asking: None,
            open: Mutex::default(),
            sealed: Mutex::default(),
            opened: AtomicU64::new(0),
            background: Background::default(),
        }
    }

    /// With a model that the manipulators of all runs may ask.
    #[must_use]
    pub fn asking(self, model: Arc<Asking>) -> Self {
        Self { asking: Some(model), ..self }
    }

    /// The model that the manipulators of all runs may ask, if there is one.
    pub fn model(&self) -> Option<&Asking> {
        self.asking.as_deref()
    }

    /// What runs start from.
    pub fn template(&self) -> &RunTemplate {
        &self.template
    }

    /// The run of that id, opened on arrival with the server's plan if it is new.
    ///
    /// # Errors
    /// The run is sealed, or its recording cannot be made.
    pub fn get(&self, id: &RunId) -> Result<Arc<Run>, ProxyError> {
        self.open(id, RunSetup { plan: self.template.plan.clone(), ..RunSetup::default() })
    }

    /// The run of that id, opened with what it has of its own if it is new.
    ///
    /// # Errors
    /// The run is sealed, or its recording cannot be made.
    pub fn open(&self, id: &RunId, mut setup: RunSetup) -> Result<Arc<Run>, ProxyError> {
        let mut open = locked(&self.open);
        if let Some(run) = open.get(id) {
            return Ok(Arc::clone(run));
        }
        if locked(&self.sealed).contains(id) {
            return Err(ProxyError::Sealed(id.clone()));
        }
        setup.asking = setup.asking.or_else(|| self.asking.clone());
        let run = Arc::new(Run::create(id.clone(), setup, &self.template).map_err(|error| match error {
            RecordingError::Sealed { .. } => ProxyError::Sealed(id.clone()),
            other => ProxyError::Recording(other),
        })?);
        open.insert(id.clone(), Arc::clone(&run));
        Ok(run)
    }

    /// An opaque id for a run that nobody named.
    pub fn fresh_id(&self, body: u128) -> RunId {
        let count = self.opened.fetch_add(1, Ordering::Relaxed);
        let clock = self.template.recording.clock;
        let of = format!("{body}-{count}-{}-{}", clock.wall(), std::process::id());
        RunId::hashed("r", of.as_bytes())
    }

    /// The run of that id, if it is under way.
    pub fn find(&self, id: &RunId) -> Option<Arc<Run>> {
        locked(&self.open).get(id).cloned()
    }

    /// The first run under way of which this holds.
    pub(super) fn find_by(&self, holds: impl Fn(&Run) -> bool) -> Option<Arc<Run>> {
        locked(&self.open).values().find(|run| holds(run)).cloned()
    }

    /// Takes out one run; it accepts nothing more. The caller seals it.
    pub fn retire_run(&self, id: &RunId) -> Option<Arc<Run>> {
        self.background.give_up(NEVER_FETCHED, |awaited| awaited.run.id == *id);
        let retired = locked(&self.open).remove(id);
        locked(&self.sealed).insert(id.clone());
        retired
    }

    /// Takes out all runs; they accept nothing more. The caller seals them.
    pub fn retire(&self) -> Vec<Arc<Run>> {
        self.background.give_up(NEVER_FETCHED, |_| true);
        self.retire_if(|_| true)
    }

    /// Takes out the runs without traffic for that long, but never `kept`, the run of requests that name none: those
    /// would have nowhere to go. The caller seals them.
    pub fn retire_idle(&self, idle: Duration, kept: Option<&RunId>) -> Vec<Arc<Run>> {
        // A run is quiet when nobody has fetched what it waits for, for so long, nor does so now.
        let counts = self.background.counts();
        self.background.give_up(NEVER_FETCHED, |awaited| {
            let run = &awaited.run;
            let only_awaits = counts.get(&run.id) == Some(&run.in_flight());
            let is_fetched = Arc::strong_count(awaited) > 1;
            kept != Some(&run.id) && run.idle_for() >= idle && only_awaits && !is_fetched
        });
        self.retire_if(|run| kept != Some(&run.id) && run.idle_for() >= idle && run.is_quiet())
    }

    fn retire_if(&self, retires: impl Fn(&Run) -> bool) -> Vec<Arc<Run>> {
        let retired: Vec<_> = locked(&self.open).extract_if(|_, run| retires(run)).map(|(_, run)| run).collect();
        locked(&self.sealed).extend(retired.iter().map(|run| run.id.clone()));
        retired
    }
}
