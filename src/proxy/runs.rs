//! The runs under way: their recorders, their step numbers, what retries and manipulators need to remember.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{ask::Asking, error::ProxyError, upstream::Upstream};
use crate::{
    fault::{Level, Window},
    identity::{Identity, Speakers},
    plan::{Decision, Plan},
    recording::{self, Manifest, Recorder, RecordingError, Settings},
    surface::{self, Outline, Reply},
    trajectory::{AgentName, Attribution, Call, RunId, StepIndex},
};

/// Requests that a run remembers in order to know their retries.
const REMEMBERED_REQUESTS: usize = 1024;
/// Answers that a run remembers for manipulators that need an earlier one.
const REMEMBERED_ANSWERS: usize = 256;
/// Longest remembered answer, in bytes.
const REMEMBERED_ANSWER_MAX: usize = 64 << 10;

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
}

/// A run under way.
#[derive(Debug)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Its recording.
    pub recorder: Recorder,
    /// Its plan, immutable for its life.
    pub plan: Option<Arc<Plan>>,
    /// Its upstream, if it has one of its own.
    pub upstream: Option<Arc<dyn Upstream>>,
    /// The model that its manipulators may ask.
    pub asking: Option<Arc<Asking>>,
    task: OnceLock<String>,
    last_seen_us: AtomicU64,
    state: Mutex<State>,
    speakers: Mutex<Speakers>,
    opening: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    next_step: StepIndex,
    agents: HashMap<(AgentName, u32), AgentState>,
    requests: HashMap<Asked, Remembered>,
    request_order: VecDeque<Asked>,
    answers: VecDeque<(String, String)>,
    /// Replies, and conversations that the upstream keeps, of which the program got another version than the upstream.
    diverged: HashSet<String>,
    /// Windows of requests, by injection and, where each agent has its own, by agent.
    windows: HashMap<(u32, Option<AgentName>), Level>,
    /// Agents that an injection was meant for and that are not known well enough to be hit.
    refused: HashSet<AgentName>,
}

/// Who asked what: agent, instance, hash of the body. Different agents may say the same words.
type Asked = (AgentName, u32, u128);

#[derive(Debug, Default)]
struct AgentState {
    next_call: Call,
    in_flight: u32,
    delivered: HashMap<u32, u32>,
}

/// What is known of a request by its body.
#[derive(Debug, Clone)]
struct Remembered {
    numbers: Numbers,
    decision: Option<Arc<Decision>>,
    /// Whether its last attempt ended in a way that clients retry.
    failed: bool,
}

/// The numbers of an exchange, fixed on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Step of the run.
    pub step: StepIndex,
    /// Call of the agent instance.
    pub call: Call,
    /// Attempt of the step; 0 is the first.
    pub attempt: u32,
    /// Whether another call of the same agent instance was in flight.
    pub overlapping: bool,
}

impl Runs {
    /// No run yet.
    pub fn new(template: RunTemplate) -> Self {
        Self { template, asking: None, open: Mutex::default(), sealed: Mutex::default(), opened: AtomicU64::new(0) }
    }

    /// With a model that the manipulators of all runs may ask.
    #[must_use]
    pub fn asking(self, model: Arc<Asking>) -> Self {
        Self { asking: Some(model), ..self }
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
        self.open(id, RunSetup { plan: self.template.plan.clone(), upstream: None })
    }

    /// The run of that id, opened with what it has of its own if it is new.
    ///
    /// # Errors
    /// The run is sealed, or its recording cannot be made.
    pub fn open(&self, id: &RunId, setup: RunSetup) -> Result<Arc<Run>, ProxyError> {
        let mut open = locked(&self.open);
        if let Some(run) = open.get(id) {
            return Ok(Arc::clone(run));
        }
        if locked(&self.sealed).contains(id) {
            return Err(ProxyError::Sealed(id.clone()));
        }
        let run = Arc::new(Run::create(id.clone(), setup, self).map_err(|error| match error {
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

    /// Takes out one run; it accepts nothing more. The caller seals it.
    pub fn retire_run(&self, id: &RunId) -> Option<Arc<Run>> {
        let retired = locked(&self.open).remove(id);
        locked(&self.sealed).insert(id.clone());
        retired
    }

    /// Takes out all runs; they accept nothing more. The caller seals them.
    pub fn retire(&self) -> Vec<Arc<Run>> {
        self.retire_if(|_| true)
    }

    /// Takes out the runs without traffic for that long, but never `kept`, the run of requests that name none: those
    /// would have nowhere to go. The caller seals them.
    pub fn retire_idle(&self, idle: Duration, kept: Option<&RunId>) -> Vec<Arc<Run>> {
        self.retire_if(|run| kept != Some(&run.id) && run.idle_for() >= idle && run.is_quiet())
    }

    fn retire_if(&self, retires: impl Fn(&Run) -> bool) -> Vec<Arc<Run>> {
        let retired: Vec<_> = locked(&self.open).extract_if(|_, run| retires(run)).map(|(_, run)| run).collect();
        locked(&self.sealed).extend(retired.iter().map(|run| run.id.clone()));
        retired
    }
}

impl Run {
    fn create(id: RunId, setup: RunSetup, runs: &Runs) -> Result<Self, RecordingError> {
        let template = &runs.template;
        let RunSetup { plan, upstream } = setup;
        let started = template.recording.clock.wall();
        let name = upstream.as_ref().map_or(template.upstream.as_str(), |upstream| upstream.name());
        let mut manifest = Manifest::new(id.clone(), name, started);
        if let Some(plan) = &plan {
            manifest = manifest.with_plan(&plan.text, plan.seed);
        }
        let recorder = Recorder::create(&template.log_dir, manifest, &template.recording)?;
        let (state, speakers) = if recorder.has_records() { resumed(recorder.dir())? } else { Default::default() };
        Ok(Self {
            id,
            recorder,
            plan,
            upstream,
            asking: runs.asking.clone(),
            task: OnceLock::new(),
            last_seen_us: AtomicU64::new(template.recording.clock.micros()),
            state: Mutex::new(state),
            speakers: Mutex::new(speakers),
            opening: Mutex::default(),
        })
    }

    /// The run's directory.
    pub fn dir(&self) -> &Path {
        self.recorder.dir()
    }

    /// The run's task as far as it is known: what its first call was about.
    pub fn task(&self) -> Option<&str> {
        self.task.get().map(String::as_str)
    }

    /// Keeps the run's task; only the first one counts.
    pub fn learn_task(&self, task: impl FnOnce() -> Option<String>) {
        if self.task.get().is_none()
            && let Some(task) = task()
        {
            let _ = self.task.set(task);
        }
    }

    /// Held from the fixing of a step's numbers to its opening record, so that a killed proxy leaves no hole in the
    /// numbers: a step is on disk before the next one has a number.
    pub fn opening(&self) -> MutexGuard<'_, ()> {
        locked(&self.opening)
    }

    /// Who makes a request (see [`Speakers::attribute`]).
    pub fn attribute(
        &self,
        rules: &Identity,
        outline: Option<&Outline<'_>>,
        declared: Option<Attribution>,
        body: u128,
        retry: bool,
    ) -> Attribution {
        locked(&self.speakers).attribute(rules, outline, declared, body, retry)
    }

    /// What an exchange said, for who may quote it or go on from it.
    pub fn heard(&self, attribution: &Attribution, body: u128, reply: Option<&Reply>, failed: bool) {
        locked(&self.speakers).ended(attribution, body, reply, failed);
    }

    /// Fixes the numbers of a request on arrival. A request whose body failed before is another attempt of the same
    /// step (`retry`: the client says so itself).
    pub fn arrive(&self, attribution: &Attribution, body: u128, retry: bool) -> (Numbers, Option<Arc<Decision>>) {
        self.last_seen_us.store(self.elapsed_us(), Ordering::Relaxed);
        let mut state = locked(&self.state);
        let state = &mut *state;
        let agent = state.agents.entry((attribution.agent.clone(), attribution.instance)).or_default();
        agent.in_flight += 1;
        let asked = asked(attribution, body);
        if let Some(known) = state.requests.get_mut(&asked).filter(|known| known.failed || retry) {
            known.numbers.attempt += 1;
            known.failed = false;
            return (known.numbers, known.decision.clone());
        }
        let numbers =
            Numbers { step: state.next_step, call: agent.next_call, attempt: 0, overlapping: agent.in_flight > 1 };
        state.next_step += 1;
        agent.next_call += 1;
        state.requests.insert(asked.clone(), Remembered { numbers, decision: None, failed: false });
        state.request_order.push_back(asked);
        if state.request_order.len() > REMEMBERED_REQUESTS
            && let Some(oldest) = state.request_order.pop_front()
        {
            state.requests.remove(&oldest);
        }
        (numbers, None)
    }

    /// Keeps what was decided, so that a retry meets the same decision.
    pub fn decided(&self, attribution: &Attribution, body: u128, decision: &Arc<Decision>) {
        if let Some(known) = locked(&self.state).requests.get_mut(&asked(attribution, body)) {
            known.decision = Some(Arc::clone(decision));
        }
    }

    /// An exchange is over.
    pub fn depart(&self, attribution: &Attribution, body: u128, failed: bool) {
        self.last_seen_us.store(self.elapsed_us(), Ordering::Relaxed);
        let mut state = locked(&self.state);
        if let Some(agent) = state.agents.get_mut(&(attribution.agent.clone(), attribution.instance)) {
            agent.in_flight = agent.in_flight.saturating_sub(1);
        }
        if let Some(known) = state.requests.get_mut(&asked(attribution, body)) {
            known.failed = failed;
        }
    }

    /// How often an injection was delivered to an agent instance.
    pub fn delivered(&self, attribution: &Attribution, injection: u32) -> u32 {
        let state = locked(&self.state);
        let agent = state.agents.get(&(attribution.agent.clone(), attribution.instance));
        agent.and_then(|agent| agent.delivered.get(&injection)).copied().unwrap_or_default()
    }

    /// An injection was meant for this agent, but who it is is only believed: said once an agent in the record.
    pub fn refuse(&self, attribution: &Attribution) {
        if !locked(&self.state).refused.insert(attribution.agent.clone()) {
            return;
        }
        let Attribution { agent, evidence, .. } = attribution;
        let hint = "declare it by an [[agent]] rule, a path /a/<agent>/ or a header";
        self.recorder.note(&format!("not injected: that `{agent}` calls is only believed ({evidence}); {hint}"));
    }

    /// Counts a delivered injection.
    pub fn count_delivered(&self, attribution: &Attribution, injection: u32) {
        let mut state = locked(&self.state);
        let agent = state.agents.entry((attribution.agent.clone(), attribution.instance)).or_default();
        *agent.delivered.entry(injection).or_default() += 1;
    }

    /// Remembers what the upstream keeps otherwise than the program got it: the ids of replies and conversations.
    pub fn diverge(&self, ids: impl Iterator<Item = String>) {
        locked(&self.state).diverged.extend(ids.filter(|id| !id.is_empty()));
    }

    /// Whether the upstream keeps the reply or conversation of this id otherwise than the program got it.
    pub fn has_diverged(&self, id: &str) -> bool {
        locked(&self.state).diverged.contains(id)
    }

    /// Takes a request out of an injection's window; says how many are left.
    ///
    /// # Errors
    /// The window is used up: how long to wait for the next request.
    pub fn admit(&self, injection: u32, window: &Window, agent: &AgentName) -> Result<u32, Duration> {
        let now = self.elapsed_us();
        let whose = window.per_agent.then(|| agent.clone());
        let mut state = locked(&self.state);
        state.windows.entry((injection, whose)).or_insert_with(|| Level::full(window, now)).take(window, now)
    }

    /// Remembers an answer for manipulators that need an earlier one.
    pub fn remember_answer(&self, agent: &AgentName, text: String) {
        if text.is_empty() || text.len() > REMEMBERED_ANSWER_MAX {
            return;
        }
        let mut state = locked(&self.state);
        state.answers.push_back((agent.to_string(), text));
        if state.answers.len() > REMEMBERED_ANSWERS {
            state.answers.pop_front();
        }
    }

    /// The remembered answers, oldest first.
    pub fn answers(&self) -> Vec<(String, String)> {
        locked(&self.state).answers.iter().cloned().collect()
    }

    /// Microseconds on the recorder's monotonic clock.
    pub fn elapsed_us(&self) -> u64 {
        self.recorder.clock().micros()
    }

    /// How many steps were opened.
    pub fn steps(&self) -> u32 {
        locked(&self.state).next_step
    }

    fn idle_for(&self) -> Duration {
        Duration::from_micros(self.elapsed_us().saturating_sub(self.last_seen_us.load(Ordering::Relaxed)))
    }

    fn is_quiet(&self) -> bool {
        locked(&self.state).agents.values().all(|agent| agent.in_flight == 0)
    }
}

/// What is known of a run whose recording goes on after the program was killed: numbers and agents go on too.
fn resumed(dir: &Path) -> Result<(State, Speakers), RecordingError> {
    let (mut state, mut speakers) = (State::default(), Speakers::default());
    for step in recording::read(dir)?.trajectory.steps {
        let Attribution { agent, instance, .. } = &step.attribution;
        let known = state.agents.entry((agent.clone(), *instance)).or_default();
        known.next_call = known.next_call.max(step.call + 1);
        for error in step.injected.iter().filter(|error| error.delivered) {
            *known.delivered.entry(error.injection).or_default() += 1;
        }
        state.next_step = state.next_step.max(step.step + 1);
        let path = step.path.split('?').next().unwrap_or_default();
        let Some(surface) = surface::for_path(&step.method, path) else { continue };
        let reply = step.last_attempt().and_then(|attempt| {
            let body = attempt.delivered();
            if attempt.streamed { surface.read_stream(body).ok() } else { surface.read_reply(body).ok() }
        });
        if let Ok(outline) = surface.outline(&step.request) {
            speakers.recall(&outline, &step.attribution, reply.as_ref());
        }
    }
    Ok((state, speakers))
}

fn asked(attribution: &Attribution, body: u128) -> Asked {
    (attribution.agent.clone(), attribution.instance, body)
}

/// A panic while a lock was held leaves counters that are at worst one off; refusing all traffic would be worse.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
