//! An index over a recording: which steps answer a request.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use xxhash_rust::xxh3::Xxh3;

use super::{Rules, canonical::Form};
use crate::{
    fault::Disturbance,
    plan::{self, Operator},
    recording::{self, ExchangeDetail, Recording, RecordingError},
    trajectory::{Attempt, Attribution, CloseCause, Source, Step, StepIndex},
};

/// A recording that answers requests. It holds no state of a replay: many runs may share one.
#[derive(Debug)]
pub struct Cassette {
    dir: PathBuf,
    recording: Recording,
    rules: Rules,
    /// Where the rest of an exchange stands, by step and attempt.
    details: HashMap<(StepIndex, u32), usize>,
    /// Attempts, by step, that a planned fault cut short in good order: their clients took them for whole.
    clean_cuts: HashSet<(StepIndex, u32)>,
    /// Positions of the steps that have these bytes.
    exact: HashMap<u128, Vec<usize>>,
    /// Positions of the steps that have this canonical form; made when bytes alone do not answer.
    canonical: OnceLock<HashMap<u128, Vec<usize>>>,
}

impl Cassette {
    /// Opens a recorded run, with the built-in rules.
    ///
    /// # Errors
    /// [`RecordingError`] when the directory holds no readable recording.
    pub fn open(run_dir: &Path) -> Result<Self, RecordingError> {
        let recording = recording::read(run_dir)?;
        let steps = &recording.trajectory.steps;
        let key = |step: &Step| key(&step.surface, &step.attribution, &step.request);
        let exact = positions(steps.iter().map(key));
        let exchanges = recording.exchanges.iter().enumerate();
        let details = exchanges.map(|(index, detail)| ((detail.step, detail.attempt), index)).collect();
        let clean_cuts = clean_cuts(&recording);
        let (dir, rules, canonical) = (run_dir.to_owned(), Rules::default(), OnceLock::new());
        Ok(Self { dir, recording, rules, details, clean_cuts, exact, canonical })
    }

    /// The same with other normalisation rules.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, canonical: OnceLock::new(), ..self }
    }

    /// The directory it was read from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was recorded.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// What may differ in a request without making it another one.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The body of a request in the form in which it is compared.
    pub fn canonical_form(&self, body: &[u8]) -> String {
        Form::of(body, &self.rules).text()
    }

    /// The recorded steps, by position.
    pub(super) fn steps(&self) -> &[Step] {
        &self.recording.trajectory.steps
    }

    /// What else is known of an attempt of a step.
    pub(super) fn detail(&self, step: &Step, attempt: &Attempt) -> Option<&ExchangeDetail> {
        let index = self.details.get(&(step.step, attempt.attempt))?;
        self.recording.exchanges.get(*index)
    }

    /// Whether an attempt was cut short in good order.
    pub(super) fn is_cut_clean(&self, step: &Step, attempt: &Attempt) -> bool {
        self.clean_cuts.contains(&(step.step, attempt.attempt))
    }

    /// Positions of the steps whose request has the same bytes, in recorded order.
    pub(super) fn same_bytes(&self, surface: &str, asker: &Attribution, body: &[u8]) -> &[usize] {
        self.exact.get(&key(surface, asker, body)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Positions of the steps whose request has the same canonical form, in recorded order.
    pub(super) fn same_form(&self, surface: &str, asker: &Attribution, body: &[u8]) -> &[usize] {
        let index = self.canonical.get_or_init(|| {
            positions(self.steps().iter().map(|step| self.form_key(&step.surface, &step.attribution, &step.request)))
        });
        index.get(&self.form_key(surface, asker, body)).map(Vec::as_slice).unwrap_or_default()
    }

    fn form_key(&self, surface: &str, asker: &Attribution, body: &[u8]) -> u128 {
        key(surface, asker, Form::of(body, &self.rules).text().as_bytes())
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
    let mut hasher = Xxh3::new();
    for part in [surface, if named { asker.agent.as_str() } else { "" }] {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(body);
    hasher.digest128()
}

fn positions(keys: impl Iterator<Item = u128>) -> HashMap<u128, Vec<usize>> {
    let mut positions: HashMap<u128, Vec<usize>> = HashMap::new();
    for (position, key) in keys.enumerate() {
        positions.entry(key).or_default().push(position);
    }
    positions
}
