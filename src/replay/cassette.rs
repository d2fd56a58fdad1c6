//! An index over a recording: which steps answer a request.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use xxhash_rust::xxh3::Xxh3;

use super::{Rules, canonical::Form};
use crate::{
    recording::{self, ExchangeDetail, Recording, RecordingError},
    trajectory::{Attempt, Attribution, Source, Step, StepIndex},
};

/// A recording that answers requests. It holds no state of a replay: many runs may share one.
#[derive(Debug)]
pub struct Cassette {
    dir: PathBuf,
    recording: Recording,
    rules: Rules,
    /// Where the rest of an exchange stands, by step and attempt.
    details: HashMap<(StepIndex, u32), usize>,
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
        let rules = Rules::default();
        Ok(Self { dir: run_dir.to_owned(), recording, rules, details, exact, canonical: OnceLock::new() })
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
    pub(super) fn span(&self, step: &Step) -> (u64, u64) {
        let detail = |attempt: Option<&Attempt>| self.detail(step, attempt?);
        let opened = detail(step.attempts.first()).map(|detail| detail.opened).unwrap_or_default();
        let last = detail(step.last_attempt());
        (opened, last.map(|detail| detail.closed.unwrap_or(detail.opened)).unwrap_or_default())
    }
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
