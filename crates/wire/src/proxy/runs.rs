//! The runs of a server: opened on arrival or on purpose, found by id, retired.

mod disk_check;
mod displaced;
mod end;
mod go_on;
mod place;
mod plans;
mod put_down;
mod user_runs;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, oneshot},
    task::spawn_blocking,
};

use self::{
    disk_check::DiskCheck,
    displaced::{ForgottenRuns, SEALED_AT_ONCE},
    place::{FoundRun, RunCell, RunPlace},
    plans::RunPlans,
    put_down::HOLDERS,
};
pub use self::{
    end::{EndError, RunStanding},
    place::ClosingRun,
};
use super::{
    asking::ManipulatorModel,
    attached::Attachments,
    error::ProxyError,
    lock::locked,
    logprobs::LogprobRequests,
    run::Run,
    setup::{RunSetup, RunTemplate},
    stored::{background::Background, ids::StoredIds, objects::ObjectOwners},
    watched::LiveWatch,
};
use crate::{
    monitor::Monitor,
    recording::{RecordingError, Seal},
    trajectory::RunId,
};

/// A run that is sealed.
#[derive(Debug, Clone)]
pub struct EndedRun {
    /// Its id.
    pub id: RunId,
    /// Its directory.
    pub dir: PathBuf,
    /// How many steps it has.
    pub steps: u32,
    /// Whether it had a plan: without one it earns no label.
    pub planned: bool,
}

/// The runs of a server.
#[derive(Debug)]
pub struct Runs {
    template: RunTemplate,
    plans: RunPlans,
    asking: Option<Arc<ManipulatorModel>>,
    /// Who is told of calls and runs.
    monitor: OnceLock<Arc<Monitor>>,
    logprobs: Option<LogprobRequests>,
    watch: Option<Arc<LiveWatch>>,
    /// Read for each request, written where a run begins or ends. Neither lasts longer than a lookup or a look at each run: it is
    /// never held while anything waits for the disk.
    places: RwLock<HashMap<RunId, RunPlace>>,
    displaced: Mutex<ForgottenRuns>,
    /// Places among the displaced runs that are sealed at once.
    sealers: Semaphore,
    /// Sealed since somebody asked for what has ended.
    ended: Mutex<Vec<EndedRun>>,
    /// How many ids were made here.
    opened: AtomicU64,
    /// Whether recordings can be made, for whoever asks for that.
    pub(super) disk: DiskCheck,
    /// Replies that are made in the background, of all runs.
    pub(super) background: Background,
    /// The servers of tools that are attached, for all of these runs.
    pub(super) attachments: Arc<Attachments>,
    /// What a user's runs were given of what the upstream keeps; `None` where they are no user's.
    stored_ids: Option<Arc<StoredIds>>,
    /// Whose the objects of the upstream are, of all users.
    owners: OnceLock<Arc<ObjectOwners>>,
}

impl Runs {
    /// No run yet.
    pub fn new(template: RunTemplate) -> Self {
        Self {
            plans: RunPlans::new(template.plan.clone()),
            template,
            asking: None,
            monitor: OnceLock::new(),
            logprobs: None,
            watch: None,
            places: RwLock::default(),
            displaced: Mutex::default(),
            sealers: Semaphore::new(SEALED_AT_ONCE),
            ended: Mutex::default(),
            opened: AtomicU64::new(0),
            disk: DiskCheck::default(),
            background: Background::default(),
            attachments: Arc::default(),
            stored_ids: None,
            owners: OnceLock::new(),
        }
    }

    /// With a model that the manipulators of all runs may ask.
    #[must_use]
    pub fn asking(self, model: Arc<ManipulatorModel>) -> Self {
        Self { asking: Some(model), ..self }
    }

    /// Tells somebody of the calls of all runs that are opened from now on; only the first one hears of them.
    pub fn tell(&self, monitor: Arc<Monitor>) {
        let _ = self.monitor.set(monitor);
    }

    /// Who is told of calls and runs.
    pub fn monitor(&self) -> Option<&Arc<Monitor>> {
        self.monitor.get()
    }

    /// How many runs are under way.
    pub fn open_runs(&self) -> usize {
        self.read_places().values().filter(|place| place.run().is_some()).count()
    }

    /// With the upstream asked for the log-probabilities of its tokens, which the records keep and no client sees.
    #[must_use]
    pub fn asking_logprobs(self) -> Self {
        Self { logprobs: Some(LogprobRequests::default()), ..self }
    }

    /// How the upstream is asked for log-probabilities, where it is.
    pub(super) fn logprobs(&self) -> Option<&LogprobRequests> {
        self.logprobs.as_ref()
    }

    /// Has rules look at every run that is opened from now on.
    pub fn watch_all(&mut self, watch: Arc<LiveWatch>) {
        self.watch = Some(watch);
    }

    /// What every run is watched for, if it is.
    pub fn watch(&self) -> Option<&LiveWatch> {
        self.watch.as_deref()
    }

    /// The model that the manipulators of all runs may ask, if there is one.
    pub fn model(&self) -> Option<&ManipulatorModel> {
        self.asking.as_deref()
    }

    /// What runs start from.
    pub fn template(&self) -> &RunTemplate {
        &self.template
    }

    /// The run of that id, opened with what it has of its own if it is new. Opening waits for the disk, long where a log
    /// is read anew; who asks for another run does not wait for it, and who asks for the same one opens it only once.
    ///
    /// # Errors
    /// The run is sealed, or its recording cannot be made.
    pub async fn open(self: &Arc<Self>, id: &RunId, setup: RunSetup) -> Result<Arc<Run>, ProxyError> {
        let cell = loop {
            match self.place(id)? {
                FoundRun::Cell(cell) => break cell,
                FoundRun::Closing(mut closed) => drop(closed.changed().await),
            }
        };
        if let Some(run) = cell.get() {
            let may_go_on = run.recorder.is_stopped() && run.recorder.lacked_room() && run.is_served;
            return if may_go_on { self.go_on(&cell, run).await } else { Ok(Arc::clone(run)) };
        }
        // In a task of its own: whoever asked first may leave, and a second opening would find the directory locked.
        let (runs, id) = (Arc::clone(self), id.clone());
        let opening = tokio::spawn(async move {
            let opened = cell.get_or_try_init(|| runs.create(id.clone(), setup)).await.cloned();
            match &opened {
                // It was taken out meanwhile, and nobody would seal it.
                Ok(_) if !runs.is_place_of(&id, &cell) => return Err(ProxyError::Sealed(id)),
                Ok(_) => {}
                Err(_) => runs.give_back(&id, &cell),
            }
            opened
        });
        opening.await.unwrap_or(Err(ProxyError::Internal))
    }

    /// The place of a run, empty where it is not open yet.
    fn place(&self, id: &RunId) -> Result<FoundRun, ProxyError> {
        let sealed = || ProxyError::Sealed(id.clone());
        // Most requests are of a run that is open: those only read, beside each other.
        if let Some(place) = self.read_places().get(id).filter(|place| !place.is_vacant()) {
            return place.found_run().ok_or_else(sealed);
        }
        let mut places = self.write_places();
        let place = places.entry(id.clone()).or_insert_with(|| RunPlace::Open(Arc::default()));
        if place.is_vacant() {
            *place = RunPlace::Open(Arc::default());
        }
        place.found_run().ok_or_else(sealed)
    }

    async fn create(self: &Arc<Self>, id: RunId, mut setup: RunSetup) -> Result<Arc<Run>, ProxyError> {
        setup.asking = setup.asking.or_else(|| self.asking.clone());
        setup.watch = setup.watch.or_else(|| self.watch.clone());
        let runs = Arc::clone(self);
        let (tell, created) = oneshot::channel();
        spawn_blocking(move || {
            // Whoever asked may have left.
            let _ = tell.send(runs.create_here(id, setup));
            runs.seal_displaced();
        });
        created.await.unwrap_or(Err(ProxyError::Internal))
    }

    fn create_here(&self, id: RunId, setup: RunSetup) -> Result<Arc<Run>, ProxyError> {
        if self.template.recording.redactor.holds_secret(id.as_str()) {
            return Err(ProxyError::SecretName);
        }
        let created = Run::create(id.clone(), setup, &self.template, self.stored_ids.clone());
        created.map(|run| Arc::new(run.monitored(self.monitor().cloned()))).map_err(|error| match error {
            RecordingError::Sealed { .. } => ProxyError::Sealed(id),
            other => ProxyError::Recording(other),
        })
    }

    fn is_place_of(&self, id: &RunId, cell: &Arc<RunCell>) -> bool {
        self.read_places().get(id).is_some_and(|place| place.is(cell))
    }

    /// Forgets a place whose opening has failed, unless somebody waits to try again.
    fn give_back(&self, id: &RunId, cell: &Arc<RunCell>) {
        let mut places = self.write_places();
        // Two hold it: the map, and who calls this. A third could only get hold of it through the map, which is locked.
        let is_unused = |place: &RunPlace| place.is(cell) && cell.get().is_none() && Arc::strong_count(cell) == 2;
        if places.get(id).is_some_and(is_unused) {
            places.remove(id);
        }
    }

    /// An opaque id for a run that nobody named, and that a request with this body begins.
    pub fn fresh_id(&self, body: u128) -> RunId {
        self.made_id("r", body)
    }

    /// An opaque id with this prefix.
    pub(super) fn made_id(&self, prefix: &str, body: u128) -> RunId {
        let count = self.opened.fetch_add(1, Ordering::Relaxed);
        let clock = self.template.recording.clock;
        let of = format!("{body}-{count}-{}-{}", clock.wall(), std::process::id());
        RunId::hashed(prefix, of.as_bytes())
    }

    /// The run of that id, if it is under way.
    pub fn find(&self, id: &RunId) -> Option<Arc<Run>> {
        self.read_places().get(id)?.run().cloned()
    }

    /// The first run under way of which this holds.
    pub(super) fn find_by(&self, holds: impl Fn(&Run) -> bool) -> Option<Arc<Run>> {
        self.under_way().into_iter().find(|run| holds(run))
    }

    pub(super) fn under_way(&self) -> Vec<Arc<Run>> {
        self.read_places().values().filter_map(|place| place.run().cloned()).collect()
    }

    /// Takes out one run; it accepts nothing more. The caller seals it.
    pub fn retire_run(&self, id: &RunId) -> Option<Arc<Run>> {
        self.background.give_up(|awaited| awaited.run.id == *id);
        let place = self.write_places().insert(id.clone(), RunPlace::Retired);
        match place? {
            RunPlace::Open(cell) => cell.get().cloned(),
            RunPlace::Closing(_) | RunPlace::Retired => None,
        }
    }

    /// Takes out all runs; they accept nothing more. The caller seals them.
    pub fn retire(&self) -> Vec<Arc<Run>> {
        self.background.give_up(|_| true);
        self.retire_if(|_| true).into_iter().chain(self.take_displaced()).collect()
    }

    /// Takes out the runs without traffic for that long that no request has named: none can go on with them after that. Never
    /// `kept`, the run of requests that name none: those would have nowhere to go. The caller seals them.
    pub fn retire_idle(&self, idle: Duration, kept: Option<&RunId>) -> Vec<Arc<Run>> {
        // A run is quiet when nobody has fetched what it waits for, for so long, nor does so now.
        let counts = self.background.counts();
        self.background.give_up(|awaited| {
            let run = &awaited.run;
            let only_awaits = counts.get(&run.id) == Some(&run.in_flight());
            let is_fetched = Arc::strong_count(awaited) > 1;
            kept != Some(&run.id) && run.idle_for() >= idle && only_awaits && !is_fetched
        });
        let is_over = |run: &Arc<Run>| !run.is_named() && run.idle_for() >= idle && run.is_quiet();
        // Whoever has opened or found a run may not have named it yet.
        let is_unused = |run: &Arc<Run>| Arc::strong_count(run) == HOLDERS;
        let retired = self.retire_if(|run| kept != Some(&run.id) && is_over(run) && is_unused(run));
        retired.into_iter().chain(self.take_displaced()).collect()
    }

    /// Takes a run out if it is still in its place and this holds of it. No request can come in between: who asks for the
    /// run waits for the lock, and finds it retired.
    fn retire_where(&self, run: &Arc<Run>, holds: impl FnOnce(&Arc<Run>) -> bool) -> bool {
        let mut places = self.write_places();
        let Some(place) = places.get_mut(&run.id) else { return false };
        let retires = place.run().is_some_and(|own| Arc::ptr_eq(own, run)) && holds(run);
        if retires {
            *place = RunPlace::Retired;
        }
        retires
    }

    /// Seals a run that was taken out; one that cannot be sealed is still refused.
    ///
    /// # Errors
    /// The recording cannot be ended.
    pub fn seal(&self, run: &Run) -> Result<Seal, RecordingError> {
        let (seal, ended) = self.seal_one(run)?;
        locked(&self.ended).push(ended);
        Ok(seal)
    }

    fn seal_one(&self, run: &Run) -> Result<(Seal, EndedRun), RecordingError> {
        run.end_watch();
        let seal = run.recorder.seal()?;
        let (dir, steps, planned) = (run.dir().to_owned(), run.steps(), run.plan.is_some());
        let ended = EndedRun { id: run.id.clone(), dir, steps, planned };
        if let Some(monitor) = self.monitor() {
            let (began, outcome) = run.recorder.began_and_outcome();
            monitor.run_ended(&run.id, began, &outcome);
        }
        // Its directory says from now on that it is sealed.
        self.write_places().remove(&run.id);
        Ok((seal, ended))
    }

    /// The runs that were [sealed](Runs::seal) since this was last asked.
    pub fn take_ended(&self) -> Vec<EndedRun> {
        std::mem::take(&mut *locked(&self.ended))
    }

    fn read_places(&self) -> RwLockReadGuard<'_, HashMap<RunId, RunPlace>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_places(&self) -> RwLockWriteGuard<'_, HashMap<RunId, RunPlace>> {
        self.places.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn retire_if(&self, retires: impl Fn(&Arc<Run>) -> bool) -> Vec<Arc<Run>> {
        // Nearly all are not to be taken out: those are only looked at.
        let mut found = self.under_way();
        found.retain(|run| retires(run) && self.retire_where(run, &retires));
        found
    }
}

#[cfg(test)]
mod tests;
