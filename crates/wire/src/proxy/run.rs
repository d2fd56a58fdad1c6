//! A run under way: its recorder, its step numbers, what retries and manipulators need to remember.

mod idle;
mod own_rules;
mod resumed;

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use self::{own_rules::OwnRules, resumed::ResumedRun};
use super::{
    asking::ManipulatorModel,
    broken_streams::BrokenStreams,
    lock::locked,
    remembered::{AnotherTry, Numbers, Remembered},
    run_cards::RunCards,
    setup::{RunSetup, RunTemplate},
    spoken_steps::SpokenSteps,
    stored::{RetoldRun, ids::StoredIds},
    upstream::Upstream,
    watched::{WatchedExchange, WatchedRun},
};
use crate::{
    fault::{Level, Window},
    identity::{AttributedCall, CallRelation, EndedCall, Identity, LedgerNumber, LedgerRequest, Speakers},
    monitor::Monitor,
    plan::{Decision, Plan},
    recording::{Manifest, Recorder, RecordingError},
    surface::{Conversation, Outline, Reply, Served},
    trajectory::{AgentName, Attribution, Call, RecordedRelation, RunId, StepIndex, WatchSign},
};

/// Answers that a run remembers at least for manipulators that need an earlier one; at most a quarter more.
const REMEMBERED_ANSWERS: usize = 256;
/// Longest remembered answer, in bytes.
const REMEMBERED_ANSWER_MAX: usize = 64 << 10;

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
    pub asking: Option<Arc<ManipulatorModel>>,
    pub(super) watched: Option<WatchedRun>,
    task: OnceLock<String>,
    last_seen_us: AtomicU64,
    state: Mutex<RunState>,
    speakers: Mutex<Speakers>,
    own_rules: Option<OwnRules>,
    pub(super) retold: Mutex<RetoldRun>,
    pub(super) cards: RunCards,
    pub(super) broken_streams: Mutex<BrokenStreams>,
    opening: Mutex<()>,
    /// Held while its recording is opened again: only those that ask for this run wait for that.
    pub(super) resuming: tokio::sync::Mutex<()>,
    /// Whether it is a server's: nobody waits for its end, so that another recorder may go on with it.
    pub(super) is_served: bool,
    /// Whether a request has named it, so that another one can.
    is_named: AtomicBool,
    uninspected: AtomicU32,
    fetches: AtomicU32,
    pub(super) stored_ids: Option<Arc<StoredIds>>,
    /// Who is told of its calls.
    pub(super) monitor: Option<Arc<Monitor>>,
}

#[derive(Debug, Default)]
struct RunState {
    next_step: StepIndex,
    agents: HashMap<(AgentName, u32), AgentState>,
    /// Whether anything was delivered: no look at all agents for each request.
    has_planted: bool,
    requests: Remembered,
    /// Agents and what they answered, oldest first; shared with the edits under way.
    answers: Arc<Vec<(String, String)>>,
    /// Tools that its replies called.
    served: Served,
    /// Windows of requests, by injection and, where each agent has its own, by agent.
    windows: HashMap<(u32, Option<AgentName>), Level>,
    /// Agents that an injection was meant for and that are not known well enough to be hit.
    refused: HashSet<AgentName>,
    /// Where agents speak that the upstream names.
    spoken: SpokenSteps,
}

impl RunState {
    fn remember_answer(&mut self, agent: &AgentName, text: String) {
        if text.is_empty() || text.len() > REMEMBERED_ANSWER_MAX {
            return;
        }
        let answers = Arc::make_mut(&mut self.answers);
        answers.push((agent.to_string(), text));
        if answers.len() > REMEMBERED_ANSWERS + REMEMBERED_ANSWERS / 4 {
            answers.drain(..REMEMBERED_ANSWERS / 4);
        }
    }
}

#[derive(Debug, Default)]
struct AgentState {
    next_call: Call,
    in_flight: u32,
    delivered: HashMap<u32, u32>,
}

/// A request that has its numbers.
#[derive(Debug)]
pub struct ArrivedCall {
    /// The numbers.
    pub numbers: Numbers,
    /// What the record says of its place among the calls of its agent.
    pub relates: RecordedRelation,
    /// What was decided on an earlier attempt.
    pub decision: Option<Arc<Decision>>,
}

impl Run {
    pub(super) fn create(
        id: RunId,
        setup: RunSetup,
        template: &RunTemplate,
        stored_ids: Option<Arc<StoredIds>>,
    ) -> Result<Self, RecordingError> {
        let RunSetup { plan, task, roster, upstream, asking, watch, .. } = setup;
        let RunSetup { origin, launched, repeat_of, reference, equality, cards, .. } = setup;
        let is_served = launched.is_none() && origin.is_none() && repeat_of.is_none();
        let started = template.recording.clock.wall();
        let equality = equality.unwrap_or_else(|| template.equality.clone());
        let name = upstream.as_ref().map_or(template.upstream.as_str(), |upstream| upstream.name());
        let mut manifest = Manifest {
            task,
            roster,
            launched,
            repeat_of,
            origin,
            equality,
            ..Manifest::new(id.clone(), name, started)
        };
        // One without a text plants nothing: it makes neutral changes.
        if let Some(plan) = plan.as_ref().filter(|plan| !plan.text.is_empty()) {
            manifest = manifest.with_plan(&plan.text, plan.seed);
        }
        let recorder = Recorder::create(&template.log_dir, manifest, &template.recording)?;
        let own_rules = OwnRules::new(recorder.roster())?;
        let resumed = recorder.has_records().then(|| ResumedRun::read(recorder.dir(), stored_ids.as_deref()));
        let ResumedRun { state, told, mut speakers, task, stopped } = resumed.transpose()?.unwrap_or_default();
        let reference = reference.or_else(|| upstream.as_ref()?.reference_calls());
        // A run that leaves a record may give another reply than the upstream keeps.
        let remembers = reference.is_some() || plan.as_ref().is_some_and(|plan| plan.retells());
        speakers.count_by(recorder.rules()?, reference);
        Ok(Self {
            id,
            cards: RunCards::new(recorder.dir(), cards),
            recorder,
            plan,
            upstream,
            asking,
            watched: watch.map(|watch| WatchedRun::new(watch, stopped)),
            task: task.map(OnceLock::from).unwrap_or_default(),
            last_seen_us: AtomicU64::new(template.recording.clock.micros()),
            state: Mutex::new(state),
            speakers: Mutex::new(speakers),
            own_rules,
            retold: Mutex::new(told.remembering(remembers)),
            broken_streams: Mutex::default(),
            opening: Mutex::default(),
            resuming: tokio::sync::Mutex::default(),
            is_served,
            is_named: AtomicBool::new(false),
            uninspected: AtomicU32::new(0),
            fetches: AtomicU32::new(0),
            stored_ids,
            monitor: None,
        })
    }

    /// With somebody who is told of its calls.
    pub(super) fn monitored(self, monitor: Option<Arc<Monitor>>) -> Self {
        Self { monitor, ..self }
    }

    /// The sign that stopped the run, where it is watched and one did.
    pub fn stopped(&self) -> Option<&WatchSign> {
        self.watched.as_ref()?.stopped()
    }

    /// The rules that watch the run look once more, at its end; to be called before it is sealed.
    pub fn end_watch(&self) {
        if let Some(watched) = &self.watched {
            watched.end(&self.id, &self.recorder);
        }
    }

    /// The record of an exchange is written: the rules that watch the run look at it.
    pub(super) fn watch(&self, step: StepIndex, who: &Attribution, heard: &WatchedExchange) {
        if let Some(watched) = &self.watched {
            watched.observe(&self.id, &self.recorder, step, who, heard);
        }
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
    /// numbers: a step's record has its place in the log before the next one has a number.
    pub fn opening(&self) -> MutexGuard<'_, ()> {
        locked(&self.opening)
    }

    /// Who makes a request (see [`Speakers::attribute`]).
    pub fn attribute(
        &self,
        rules: &Identity,
        outline: Option<&Outline<'_>>,
        declared: Option<Attribution>,
        request: &LedgerRequest<'_>,
    ) -> AttributedCall {
        locked(&self.speakers).attribute(rules, outline, declared, request)
    }

    /// What an exchange said, for who may quote it or go on from it.
    pub fn note_reply(&self, attribution: &Attribution, number: LedgerNumber, reply: Option<&Reply>, failed: bool) {
        let ended = EndedCall { number, reply, failed, at_us: self.elapsed_us() };
        locked(&self.speakers).ended(attribution, &ended);
    }

    /// Fixes the numbers of a request on arrival. `credential`: a hash of the one that it comes with.
    pub fn arrive(&self, asked: &AttributedCall, credential: Option<u64>) -> ArrivedCall {
        let mut state = locked(&self.state);
        let state = &mut *state;
        let AttributedCall { attribution, relation, number } = asked;
        let agent = state.agents.entry((attribution.agent.clone(), attribution.instance)).or_default();
        agent.in_flight += 1;
        let mut relates = RecordedRelation::default();
        match *relation {
            CallRelation::Retry { of, attempt, evidence } => {
                if let Some(again) = state.requests.another_try(of, attempt, credential) {
                    let AnotherTry { numbers, decision, other_key } = again;
                    relates = RecordedRelation { retry: Some(evidence), other_key, ..relates };
                    return ArrivedCall { numbers, relates, decision };
                }
            }
            CallRelation::Undecided { of } => relates.may_repeat = state.requests.step(of),
            CallRelation::First | CallRelation::Again => {}
        }
        let numbers =
            Numbers { step: state.next_step, call: agent.next_call, attempt: 0, overlapping: agent.in_flight > 1 };
        state.next_step += 1;
        agent.next_call += 1;
        state.requests.ask(*number, numbers, credential);
        ArrivedCall { numbers, relates, decision: None }
    }

    /// Keeps what was decided on a call, so that a retry meets the same decision.
    pub fn decided(&self, number: LedgerNumber, decision: &Arc<Decision>) {
        locked(&self.state).requests.decided(number, decision);
    }

    /// An exchange is over.
    pub fn depart(&self, attribution: &Attribution) {
        self.touch();
        let mut state = locked(&self.state);
        if let Some(agent) = state.agents.get_mut(&(attribution.agent.clone(), attribution.instance)) {
            agent.in_flight = agent.in_flight.saturating_sub(1);
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

    /// An agent that the upstream names speaks in the reply of a step: its number among such replies, 0-based.
    pub(super) fn spoken(&self, asker: &Attribution, speaker: &AgentName, step: StepIndex) -> Call {
        locked(&self.state).spoken.number(asker, speaker, step)
    }

    /// Counts a delivered injection.
    pub fn count_delivered(&self, attribution: &Attribution, injection: u32) {
        let mut state = locked(&self.state);
        state.has_planted = true;
        let agent = state.agents.entry((attribution.agent.clone(), attribution.instance)).or_default();
        *agent.delivered.entry(injection).or_default() += 1;
    }

    /// Whether any injection was delivered so far.
    pub fn has_planted(&self) -> bool {
        locked(&self.state).has_planted
    }

    /// Whether the upstream may keep anything otherwise than the program got it, or would but for what is told again.
    pub fn has_stored_edits(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.retells()) || locked(&self.retold).may_have_diverged()
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

    /// Remembers the tools that a reply calls.
    pub fn remember_calls(&self, reply: &Reply) {
        locked(&self.state).served.learn(reply);
    }

    /// Names the tools of results that a request brings without their calls.
    pub fn name_results(&self, asked: &mut Conversation) {
        locked(&self.state).served.name_results(asked);
    }

    /// Remembers an answer for manipulators that need an earlier one.
    pub fn remember_answer(&self, agent: &AgentName, text: String) {
        locked(&self.state).remember_answer(agent, text);
    }

    /// The remembered answers, oldest first.
    pub fn answers(&self) -> Arc<Vec<(String, String)>> {
        Arc::clone(&locked(&self.state).answers)
    }

    /// Microseconds on the recorder's monotonic clock.
    pub fn elapsed_us(&self) -> u64 {
        self.recorder.clock().micros()
    }

    /// How many of its steps became tunnels, which pass uninspected.
    pub fn uninspected(&self) -> u32 {
        self.uninspected.load(Ordering::Relaxed)
    }

    pub(super) fn count_uninspected(&self) {
        self.uninspected.fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests looked at what a provider keeps, or took it away: they are no steps.
    pub fn fetches(&self) -> u32 {
        self.fetches.load(Ordering::Relaxed)
    }

    pub(super) fn count_fetch(&self) {
        self.fetches.fetch_add(1, Ordering::Relaxed);
    }

    /// How many steps were opened.
    pub fn steps(&self) -> u32 {
        locked(&self.state).next_step
    }
}
