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

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::JoinHandle,
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
    recording::{RecordingError, Seal, Settings},
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

/// A run that is sealed.
#[derive(Debug, Clone)]
pub struct EndedRun {
    /// Its id.
    pub id: RunId,
    /// Its directory.
    pub dir: PathBuf,
    /// How many steps it has.
    pub steps: u32,
}

/// The runs of a server.
#[derive(Debug)]
pub struct Runs {
    template: RunTemplate,
    asking: Option<Arc<Asking>>,
    open: Mutex<HashMap<RunId, Arc<Run>>>,
    /// Taken out, and not sealed yet.
    retired: Mutex<HashSet<RunId>>,
    /// Taken out because lineage has forgotten them: to be sealed before more runs are opened.
    forgotten: Mutex<Vec<Arc<Run>>>,
    /// Sealed since somebody asked for what has ended.
    ended: Mutex<Vec<EndedRun>>,
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
            retired: Mutex::default(),
            forgotten: Mutex::default(),
            ended: Mutex::default(),
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
        if locked(&self.retired).contains(id) {
            return Err(ProxyError::Sealed(id.clone()));
        }
        if self.template.recording.redactor.holds_secret(id.as_str()) {
            return Err(ProxyError::SecretName);
        }
        setup.asking = setup.asking.or_else(|| self.asking.clone());
        let run = off_the_workers(|| Run::create(id.clone(), setup, &self.template));
        let run = Arc::new(run.map_err(|error| match error {
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
        let mut open = locked(&self.open);
        locked(&self.retired).insert(id.clone());
        open.remove(id)
    }

    /// Takes out all runs; they accept nothing more. The caller seals them.
    pub fn retire(&self) -> Vec<Arc<Run>> {
        self.background.give_up(NEVER_FETCHED, |_| true);
        self.retire_if(|_| true).into_iter().chain(self.take_forgotten()).collect()
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
        let retired = self.retire_if(|run| kept != Some(&run.id) && run.idle_for() >= idle && run.is_quiet());
        retired.into_iter().chain(self.take_forgotten()).collect()
    }

    /// Takes out a run that lineage has forgotten, so that no request can be placed there any more; while one is under
    /// way in it, it is left to [`Runs::retire_idle`].
    pub(super) fn forget(&self, id: &RunId) {
        let mut open = locked(&self.open);
        if !open.get(id).is_some_and(|run| run.is_quiet()) {
            return;
        }
        locked(&self.retired).insert(id.clone());
        locked(&self.forgotten).extend(open.remove(id));
    }

    /// Begins to seal what was [forgotten](Runs::forget), if anything was. Each run holds descriptors, so whoever
    /// displaced one waits for its end: runs are not opened faster than they end.
    pub(super) fn seal_forgotten(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        let forgotten = self.take_forgotten();
        if forgotten.is_empty() {
            return None;
        }
        let runs = Arc::clone(self);
        Some(tokio::task::spawn_blocking(move || {
            for run in forgotten {
                if let Err(error) = runs.seal(&run) {
                    tracing::error!(run = %run.id, %error, "cannot seal");
                }
            }
        }))
    }

    fn take_forgotten(&self) -> Vec<Arc<Run>> {
        std::mem::take(&mut *locked(&self.forgotten))
    }

    /// Seals a run that was taken out; one that cannot be sealed is still refused.
    ///
    /// # Errors
    /// The recording cannot be ended.
    pub fn seal(&self, run: &Run) -> Result<Seal, RecordingError> {
        let seal = run.recorder.seal()?;
        let ended = EndedRun { id: run.id.clone(), dir: run.dir().to_owned(), steps: run.steps() };
        locked(&self.ended).push(ended);
        // Its directory says from now on that it is sealed.
        locked(&self.retired).remove(&run.id);
        Ok(seal)
    }

    /// The runs that were [sealed](Runs::seal) since this was last asked.
    pub fn take_ended(&self) -> Vec<EndedRun> {
        std::mem::take(&mut *locked(&self.ended))
    }

    fn retire_if(&self, retires: impl Fn(&Run) -> bool) -> Vec<Arc<Run>> {
        // Held until they are known to be retired, so that no request opens one again in between.
        let mut open = locked(&self.open);
        let retired: Vec<_> = open.extract_if(|_, run| retires(run)).map(|(_, run)| run).collect();
        locked(&self.retired).extend(retired.iter().map(|run| run.id.clone()));
        retired
    }
}

/// Does what waits for the disk, long where a log is read anew, while another thread takes over this worker's tasks.
fn off_the_workers<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    if matches!(flavor, Ok(RuntimeFlavor::MultiThread)) { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::AgentName;

    #[test]
    fn a_run_remembers_its_latest_answers_and_no_more() {
        let logs = tempfile::tempdir().expect("a directory");
        let template = RunTemplate {
            log_dir: logs.path().to_owned(),
            recording: Settings::default(),
            plan: None,
            upstream: "none".to_owned(),
        };
        let run = Runs::new(template).get(&RunId::parse("r").expect("an id")).expect("it opens");
        let agent = AgentName::parse("solver").expect("a name");
        let before = run.answers();
        for number in 0..1000 {
            run.remember_answer(&agent, number.to_string());
            let answers = run.answers();
            assert!(answers.len() <= 320, "{}", answers.len());
            let latest = (0..=number).rev().take(256).map(|number| number.to_string());
            assert!(latest.zip(answers.iter().rev()).all(|(expected, (_, text))| expected == *text), "{number}");
            assert!(answers.len() >= 256.min(number + 1), "{number}");
        }
        assert!(before.is_empty(), "an edit under way goes on with what it began with");
    }
}
