//! What a step is corrected with: another reply, from a file, from a clean twin, from a model, or a fresh draw.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    equality::same_request,
    proof::TriedWords,
    replay::{AtFork, Cassette, Comparison, NoReply, as_answered_by, reworded, same_answer},
    trajectory::{FailureMode, Step, StepIndex, Trajectory},
};

/// Why a twin does not correct a step that it does not have.
const ABSENT: &str = "the twin has no such call";
/// Why a twin that said the same corrects nothing, and clears nothing either.
const OTHERWISE: &str = "the twin said the same, but was asked something else";
/// Why a step needs no correction.
const ALIKE: &str = "asked the same, the twin said the same";

/// A correction of one step.
#[derive(Debug, Clone)]
pub struct Correction {
    /// What its call gets instead.
    pub at: AtFork,
    /// Where it comes from.
    pub source: CorrectionOrigin,
    /// Why, in the words of whoever made it.
    pub reason: String,
    /// How likely the step is the decisive one, 0 to 1, as far as its source says so.
    pub suspicion: Option<f64>,
    /// The failure mode that its source takes the error for.
    pub mode: Option<FailureMode>,
}

impl Correction {
    /// A correction whose source says nothing else of the step.
    fn new(at: AtFork, source: CorrectionOrigin, reason: String) -> Self {
        Self { at, source, reason, suspicion: None, mode: None }
    }
}

/// Where a correction comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionOrigin {
    /// The user's file.
    File,
    /// A run of the same task that succeeded.
    Twin,
    /// An analyzer model.
    Analyzer,
    /// The live upstream, asked once more.
    Redraw,
}

impl CorrectionOrigin {
    /// Its name in labels.
    pub fn name(self) -> &'static str {
        match self {
            CorrectionOrigin::File => "file",
            CorrectionOrigin::Twin => "twin",
            CorrectionOrigin::Analyzer => "analyzer",
            CorrectionOrigin::Redraw => "redraw",
        }
    }

    /// Whose words they are.
    pub(super) fn by(self) -> TriedWords {
        match self {
            CorrectionOrigin::File | CorrectionOrigin::Twin => TriedWords::Given,
            CorrectionOrigin::Analyzer => TriedWords::Proposed,
            CorrectionOrigin::Redraw => TriedWords::Drawn,
        }
    }
}

/// Corrections by step, and why others have none.
#[derive(Debug, Clone, Default)]
pub struct Corrections {
    /// What there is to try.
    pub by_step: BTreeMap<StepIndex, Correction>,
    /// Steps that need none: asked the same, a run that succeeded said the same.
    pub alike: BTreeSet<StepIndex>,
    /// Steps that are left out, with the reason.
    pub left_out: BTreeMap<StepIndex, String>,
    /// Why nothing is known, where a model was asked and never answered.
    pub unanswered: Option<String>,
}

/// Why a file of corrections cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CorrectionError {
    /// It has another form.
    #[error("{file}:{line}: {error}: expected {{\"step\": N, \"reply\": \"…\", \"reason\": \"…\"}}, one a line")]
    Form {
        /// The file.
        file: String,
        /// The line, 1-based.
        line: usize,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// It names a step that is not in the run.
    #[error("{file}:{line}: step {step} is not in the run: expected 0 to {last}")]
    NoSuchStep {
        /// The file.
        file: String,
        /// The line, 1-based.
        line: usize,
        /// The step.
        step: StepIndex,
        /// The run's last step.
        last: StepIndex,
    },
    /// The step's reply cannot be replaced.
    #[error("{file}:{line}: {error}")]
    NoReply {
        /// The file.
        file: String,
        /// The line, 1-based.
        line: usize,
        /// Why.
        error: NoReply,
    },
}

/// A line of a file of corrections.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorrectionLine {
    step: StepIndex,
    reply: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    suspicion: Option<f64>,
    #[serde(default)]
    failure_mode: Option<FailureMode>,
}

impl Corrections {
    /// Reads a file of JSON lines. `file` is only named in errors.
    ///
    /// # Errors
    /// [`CorrectionError`] with the line.
    pub fn from_lines(text: &str, file: &str, run: &Trajectory) -> Result<Self, CorrectionError> {
        let mut corrections = Self::default();
        for (index, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let (file, line) = (file.to_owned(), index + 1);
            let read: CorrectionLine = match serde_json::from_str(text) {
                Ok(read) => read,
                Err(error) => return Err(CorrectionError::Form { file, line, error }),
            };
            let Some(step) = run.steps.iter().find(|step| step.step == read.step) else {
                let last = run.steps.last().map(|step| step.step).unwrap_or_default();
                return Err(CorrectionError::NoSuchStep { file, line, step: read.step, last });
            };
            let body = reworded(step, &read.reply).map_err(|error| CorrectionError::NoReply { file, line, error })?;
            let CorrectionLine { reason, suspicion, failure_mode: mode, .. } = read;
            let at = AtFork::Instead(body);
            corrections.add(step, Correction { at, source: CorrectionOrigin::File, reason, suspicion, mode });
        }
        corrections.leave_out_the_rest(run, "the file has no correction for it");
        Ok(corrections)
    }

    /// The replies of a clean twin, by agent and call.
    pub fn from_twin(cassette: &Cassette, twin: &Trajectory) -> Self {
        let run = &cassette.recording().trajectory;
        let comparison = Comparison::compare(run, twin, cassette.rules());
        let mut corrections = Self::default();
        for step in &run.steps {
            let theirs = comparison.twin_of(step.step);
            let theirs = theirs.and_then(|place| twin.steps.iter().find(|step| step.step == place.step));
            let Some(theirs) = theirs else {
                corrections.left_out.insert(step.step, ABSENT.to_owned());
                continue;
            };
            match as_answered_by(step, theirs) {
                Ok(body) => {
                    let reason = format!("the twin's step {}", theirs.step);
                    if same_answer(step, theirs, cassette.rules()) {
                        corrections.agree(step, same_request(step, theirs, cassette.rules()));
                    } else {
                        corrections.add(step, Correction::new(AtFork::Instead(body), CorrectionOrigin::Twin, reason));
                    }
                }
                Err(error) => {
                    corrections.left_out.insert(step.step, error.to_string());
                }
            }
        }
        corrections
    }

    /// Each step asked once more, of the live upstream.
    pub fn redrawn(run: &Trajectory) -> Self {
        let mut corrections = Self::default();
        for step in &run.steps {
            corrections.add(step, Correction::new(AtFork::Live, CorrectionOrigin::Redraw, String::new()));
        }
        corrections
    }

    /// The same, where the steps of which a twin says nothing are asked once more: it has no such call, or said the same
    /// to another question.
    #[must_use]
    pub fn or_redrawn(mut self, run: &Trajectory) -> Self {
        for step in &run.steps {
            if let Some(why) = self.left_out.get(&step.step).filter(|why| *why == ABSENT || *why == OTHERWISE).cloned()
            {
                self.left_out.remove(&step.step);
                self.by_step.insert(step.step, Correction::new(AtFork::Live, CorrectionOrigin::Redraw, why));
            }
        }
        self
    }

    /// What a model proposed, held against a run that succeeded: a step that said the same there, asked the same, is no
    /// error, whatever was proposed for it.
    #[must_use]
    pub fn checked_by(mut self, twin: Self) -> Self {
        for step in twin.alike {
            self.by_step.remove(&step);
            self.left_out.insert(step, ALIKE.to_owned());
            self.alike.insert(step);
        }
        self
    }

    /// A step at which the twin said the same. Its words clear the step only where it was asked the same.
    fn agree(&mut self, step: &Step, asked_the_same: bool) {
        if asked_the_same {
            self.alike.insert(step.step);
        }
        let why = if asked_the_same { ALIKE } else { OTHERWISE };
        self.left_out.insert(step.step, why.to_owned());
    }

    /// Takes a correction in. One that says what the step said anyway is no correction.
    pub(super) fn add(&mut self, step: &Step, correction: Correction) {
        let delivered = step.last_attempt().map(crate::trajectory::Attempt::delivered);
        if let (AtFork::Instead(body), Some(delivered)) = (&correction.at, delivered)
            && body == delivered
        {
            self.left_out.insert(step.step, "the correction changes nothing".to_owned());
            return;
        }
        self.by_step.insert(step.step, correction);
    }

    fn leave_out_the_rest(&mut self, run: &Trajectory, why: &str) {
        for step in &run.steps {
            if !self.by_step.contains_key(&step.step) {
                self.left_out.entry(step.step).or_insert_with(|| why.to_owned());
            }
        }
    }
}
