//! An index over a recording: which steps answer a request.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use twox_hash::XxHash3_128;

use super::{
    Rules, ToolResults,
    finishing::FinishOrder,
    fitting::{fits_masked, holds_tool_results},
    no_such_step::NoSuchStep,
    recorded_calls::RecordedCalls,
    twins::RecordedTwins,
};
use crate::{
    equality::{Form, volatile_within},
    fault::Disturbance,
    identity::ReferenceCalls,
    plan::{self, Operator},
    recording::{self, ExchangeDetail, RecordedCard, Recording, RecordingError, Requests},
    surface::{self, UnreadCall},
    trajectory::{Attempt, Attribution, CloseCause, RunId, Source, Step, StepIndex},
};

/// A recording that answers requests. It holds no state of a replay: many runs may share one.
#[derive(Debug)]
pub struct Cassette {
    dir: PathBuf,
    /// What was recorded; the steps' requests are in `requests`, where those of growing conversations share their words.
    bare: Recording,
    requests: Requests,
    /// What was recorded, whole: made for those who ask for it.
    whole: OnceLock<Recording>,
    rules: Rules,
    /// The same as requests are matched by: where results of tools may be anything, a match that rests on that is told apart.
    request_rules: Rules,
    /// Where the rest of an exchange stands, by step and attempt.
    details: HashMap<(StepIndex, u32), usize>,
    /// Attempts, by step, that a planned fault cut short in good order: their clients took them for whole.
    clean_cuts: HashSet<(StepIndex, u32)>,
    /// Positions of the steps that have these bytes.
    exact: Positions,
    /// Positions of the steps that have this canonical form; made when bytes alone do not answer.
    canonical: OnceLock<Positions>,
    /// The same without what changes from call to call in the record itself; made when that does not answer either.
    renewed: OnceLock<(Rules, Positions)>,
    /// The same without what tools gave; made when that does not answer either, and may.
    resultless: OnceLock<Positions>,
    /// Equal questions at once; made when the first question comes.
    twins: OnceLock<RecordedTwins>,
    /// Answers that come after others; made when the first answer is given.
    finish_order: OnceLock<FinishOrder>,
    /// How often what was asked; made when a run is opened that it answers.
    reference_calls: OnceLock<Arc<ReferenceCalls>>,
}

/// Positions of steps, by what they were asked.
type Positions = HashMap<u128, Vec<usize>>;

/// Steps that were asked the same: the key of that, and their positions in recorded order.
pub(super) type EqualSteps<'a> = (u128, &'a [usize]);

impl Cassette {
    /// Opens a recorded run, with the rules that it was recorded under.
    ///
    /// # Errors
    /// [`RecordingError`] when the directory holds no readable recording.
    pub fn open(run_dir: &Path) -> Result<Self, RecordingError> {
        let (bare, requests) = recording::read_apart(run_dir)?;
        if let Some(imported) = &bare.manifest.imported {
            let (path, format) = (run_dir.to_owned(), imported.format.clone());
            return Err(RecordingError::Imported { path, format });
        }
        let steps = bare.trajectory.steps.iter().enumerate();
        let exact = positions(steps.map(|(at, step)| key(&request_key(step), &step.attribution, &requests.get(at))));
        let exchanges = bare.exchanges.iter().enumerate();
        let details = exchanges.map(|(index, detail)| ((detail.step, detail.attempt), index)).collect();
        let clean_cuts = clean_cuts(&bare);
        let rules = bare.manifest.rules()?;
        let cassette = Self {
            dir: run_dir.to_owned(),
            bare,
            requests,
            whole: OnceLock::new(),
            rules: Rules::default(),
            request_rules: Rules::default(),
            details,
            clean_cuts,
            exact,
            canonical: OnceLock::new(),
            renewed: OnceLock::new(),
            resultless: OnceLock::new(),
            twins: OnceLock::new(),
            finish_order: OnceLock::new(),
            reference_calls: OnceLock::new(),
        };
        Ok(cassette.with_rules(rules))
    }

    /// The same with other normalisation rules.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        let told_apart =
            if rules.tool_results() == ToolResults::Any { ToolResults::Exact } else { rules.tool_results() };
        let request_rules = rules.clone().with_tool_results(told_apart);
        let (canonical, renewed, resultless) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let reference_calls = OnceLock::new();
        Self { rules, request_rules, canonical, renewed, resultless, reference_calls, ..self }
    }

    /// Whether the record would hold a call of this kind, had the run made one: those of earlier versions hold a few kinds only.
    pub(super) fn records(&self, row: &UnreadCall) -> bool {
        let is_there = || self.bare_steps().iter().any(|step| step.surface == row.name);
        self.bare.manifest.versions.calls > 0 || row.counts_as_agents || is_there()
    }

    /// The cards of peers that its program asked for; none where they cannot be read.
    pub fn cards(&self) -> Vec<RecordedCard> {
        recording::read_cards(&self.dir).unwrap_or_default()
    }

    /// How often its program asked what, each call once however often it was tried.
    pub fn reference_calls(&self) -> Arc<ReferenceCalls> {
        let made = self.reference_calls.get_or_init(|| {
            let steps = self.bare_steps().iter().enumerate();
            let calls = steps.map(|(position, step)| (step, self.requests.get(position)));
            Arc::new(ReferenceCalls::from_steps(calls, self.rules.clone()))
        });
        Arc::clone(made)
    }

    /// The directory it was read from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was recorded, every request whole: put together at the first call, and held from then on. A replay does
    /// without.
    pub fn recording(&self) -> &Recording {
        self.whole.get_or_init(|| {
            let mut whole = self.bare.clone();
            for (position, step) in whole.trajectory.steps.iter_mut().enumerate() {
                step.request = self.requests.get(position);
            }
            whole
        })
    }

    /// The run that was recorded.
    pub fn run(&self) -> &RunId {
        &self.bare.manifest.run
    }

    /// What may differ in a request without making it another one.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The body of a request of an API shape in the form in which it is compared.
    pub fn canonical_form(&self, surface: &str, body: &[u8]) -> String {
        Form::from_body(surface, body, &self.request_rules).text()
    }

    /// What was recorded, without the requests of its steps.
    pub fn bare_recording(&self) -> &Recording {
        &self.bare
    }

    /// The recorded steps, by position, without their requests.
    pub fn bare_steps(&self) -> &[Step] {
        &self.bare.trajectory.steps
    }

    /// The recorded calls, with their positions, that answer a run which leaves the record at a step: those that were opened
    /// before that step had closed, itself included.
    ///
    /// # Errors
    /// [`NoSuchStep`] when the record has no such step.
    pub fn recorded_until(&self, fork: StepIndex) -> Result<impl Iterator<Item = (usize, &Step)>, NoSuchStep> {
        let steps = self.bare_steps();
        let no_such_step = NoSuchStep { step: fork, last: steps.last().map(|step| step.step) };
        let at = steps.iter().find(|step| step.step == fork).ok_or(no_such_step)?;
        let (_, closed) = self.span(at);
        let is_before = move |(_, step): &(usize, &Step)| step.step <= fork || self.span(step).0 < closed;
        Ok(steps.iter().enumerate().filter(is_before))
    }

    /// The request of the step at a position.
    pub(super) fn request(&self, position: usize) -> Bytes {
        self.requests.get(position)
    }

    /// What else is known of an attempt of a step.
    pub(super) fn detail(&self, step: &Step, attempt: &Attempt) -> Option<&ExchangeDetail> {
        let index = self.details.get(&(step.step, attempt.attempt))?;
        self.bare.exchanges.get(*index)
    }

    /// Whether an attempt was cut short in good order.
    pub(super) fn is_cut_clean(&self, step: &Step, attempt: &Attempt) -> bool {
        self.clean_cuts.contains(&(step.step, attempt.attempt))
    }

    /// Equal questions that were asked at the same time.
    pub(super) fn twins(&self) -> &RecordedTwins {
        self.twins.get_or_init(|| RecordedTwins::find(self, self.exact.values().map(Vec::as_slice)))
    }

    /// The order in which branches finished that are joined so.
    pub(super) fn finish_order(&self) -> &FinishOrder {
        self.finish_order.get_or_init(|| FinishOrder::from_calls(self))
    }

    /// The steps whose request has the same bytes.
    pub(super) fn same_bytes(&self, surface: &str, asker: &Attribution, body: &[u8]) -> EqualSteps<'_> {
        find_same(&self.exact, key(surface, asker, body))
    }

    /// The steps whose request has the same canonical form.
    pub(super) fn same_form(&self, surface: &str, asker: &Attribution, body: &[u8]) -> EqualSteps<'_> {
        let form = |surface: &str, asker: &Attribution, body: &[u8]| {
            key(surface, asker, Form::from_body(surface, body, &self.request_rules).text().as_bytes())
        };
        let index = self.canonical.get_or_init(|| {
            let steps = self.bare_steps().iter().enumerate();
            positions(steps.map(|(at, step)| form(&request_key(step), &step.attribution, &self.request(at))))
        });
        find_same(index, form(surface, asker, body))
    }

    /// The steps whose request has the same canonical form but for values that change from call to call in the record.
    pub(super) fn same_but_volatile(&self, surface: &str, asker: &Attribution, body: &[u8]) -> EqualSteps<'_> {
        let (rules, index) = self.renewed();
        if rules.volatile().is_empty() {
            return (0, &[]);
        }
        find_same(index, key(surface, asker, Form::from_body(surface, body, rules).text().as_bytes()))
    }

    /// What may differ in a request, values that change from call to call in the record among it.
    pub(super) fn volatile_rules(&self) -> &Rules {
        &self.renewed().0
    }

    fn renewed(&self) -> &(Rules, Positions) {
        self.renewed.get_or_init(|| {
            let steps = self.bare_steps().iter().enumerate().map(|(at, step)| (step, self.request(at)));
            let learned = volatile_within(steps, &self.request_rules);
            if learned.is_empty() {
                return (self.request_rules.clone().with_volatile(Vec::new()), Positions::new());
            }
            let rules = self.request_rules.clone().with_volatile(learned);
            let steps = self.bare_steps().iter().enumerate();
            let form = |step: &Step, body: &[u8]| Form::from_body(&step.surface, body, &rules).text();
            let keys = steps
                .map(|(at, step)| key(&request_key(step), &step.attribution, form(step, &self.request(at)).as_bytes()));
            let index = positions(keys);
            (rules, index)
        })
    }

    /// Positions of the steps that have the same bytes but for secrets that the record masks.
    pub(super) fn same_but_secrets(&self, surface: &str, body: &[u8]) -> Vec<usize> {
        let masked = |step: &Step| request_key(step) == surface && step.attempts.iter().any(|attempt| !attempt.exact);
        let steps = self.bare_steps().iter().enumerate().filter(|(_, step)| masked(step));
        steps.map(|(at, _)| at).filter(|at| fits_masked(&self.request(*at), body)).collect()
    }

    /// The steps that were asked the same but for what tools gave; none where the request holds no such thing.
    pub(super) fn same_but_results(&self, surface: &str, asker: &Attribution, body: &[u8]) -> EqualSteps<'_> {
        let rules = self.rules.clone().with_tool_results(ToolResults::Any);
        let asked = |surface: &str, asker: &Attribution, body: &[u8]| {
            let form = || Form::from_body(surface, body, &rules).text();
            holds_tool_results(surface, body).then(|| key(surface, asker, form().as_bytes()))
        };
        let Some(key) = asked(surface, asker, body) else { return (0, &[]) };
        let index = self.resultless.get_or_init(|| {
            let steps = self.bare_steps().iter().enumerate();
            let mut index = Positions::new();
            for (at, key) in
                steps.filter_map(|(at, step)| Some((at, asked(&step.surface, &step.attribution, &self.request(at))?)))
            {
                index.entry(key).or_default().push(at);
            }
            index
        });
        find_same(index, key)
    }

    /// The same where results of tools may be anything; else none.
    pub(super) fn same_with_any_results(&self, surface: &str, asker: &Attribution, body: &[u8]) -> EqualSteps<'_> {
        if self.rules.tool_results() == ToolResults::Any {
            return self.same_but_results(surface, asker, body);
        }
        (0, &[])
    }

    /// Where in the log a step was opened and where its last attempt ended; a step that never ended ends where it
    /// began, so that nothing after it counts as opened before its end.
    pub fn span(&self, step: &Step) -> (u64, u64) {
        let detail = |attempt: Option<&Attempt>| self.detail(step, attempt?);
        let opened = detail(step.attempts.first()).map(|detail| detail.opened).unwrap_or_default();
        let last = detail(step.last_attempt());
        (opened, last.map(|detail| detail.closed.unwrap_or(detail.opened)).unwrap_or_default())
    }
}

impl RecordedCalls for Cassette {
    fn steps(&self) -> &[Step] {
        self.bare_steps()
    }

    fn request(&self, position: usize) -> Bytes {
        self.request(position)
    }

    fn exchanges(&self) -> &[ExchangeDetail] {
        &self.bare.exchanges
    }

    fn span(&self, step: &Step) -> (u64, u64) {
        self.span(step)
    }
}

/// What a recorded step asks for (see [`surface::asked_of`]).
pub(super) fn request_key(step: &Step) -> Cow<'_, str> {
    surface::request_key(&step.surface, &step.method, &step.path)
}

/// The attempts that the recorded plan's faults cut short in good order.
fn clean_cuts(recording: &Recording) -> HashSet<(StepIndex, u32)> {
    let plan = recording.manifest.plan.as_deref().and_then(|text| plan::parse(text, "the recorded plan").ok());
    let Some(plan) = plan else { return HashSet::new() };
    let cut = |step: &Step, attempt: u32| {
        step.injected.iter().any(|error| {
            let injection = usize::try_from(error.injection).ok().and_then(|index| plan.injections.get(index));
            let Some(Operator::Fault(fault)) = injection.map(|injection| &injection.operator) else { return false };
            matches!(fault.disturb(0, attempt), Some(Disturbance::Cut { clean: true, .. }))
        })
    };
    let attempts = recording.trajectory.steps.iter().flat_map(|step| step.attempts.iter().map(move |a| (step, a)));
    let injected = attempts.filter(|(_, attempt)| attempt.cause == Some(CloseCause::Injected));
    injected.filter(|(step, a)| cut(step, a.attempt)).map(|(step, a)| (step.step, a.attempt)).collect()
}

/// What makes a request this request: surface, the agent if the client named it, the body.
fn key(surface: &str, asker: &Attribution, body: &[u8]) -> u128 {
    let named = matches!(asker.source, Source::Path | Source::Header | Source::Key);
    let mut hasher = XxHash3_128::new();
    for part in [surface, if named { asker.agent.as_str() } else { "" }] {
        hasher.write(&part.len().to_le_bytes());
        hasher.write(part.as_bytes());
    }
    hasher.write(body);
    hasher.finish_128()
}

fn find_same(index: &Positions, key: u128) -> EqualSteps<'_> {
    (key, index.get(&key).map(Vec::as_slice).unwrap_or_default())
}

fn positions(keys: impl Iterator<Item = u128>) -> Positions {
    let mut positions = Positions::new();
    for (position, key) in keys.enumerate() {
        positions.entry(key).or_default().push(position);
    }
    positions
}
