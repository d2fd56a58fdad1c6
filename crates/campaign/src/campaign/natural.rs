//! Failures that nobody planted: a clean run that fails its task is searched for the step that decides it (`AgenTracer`,
//! arXiv 2509.03312, section 3.2), by the checkers of the task and within the budget of the campaign.

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    definition::{CampaignSystem, FailureSearch},
    ended::EndedCell,
};
use crate::{
    dataset,
    execution::Meter,
    recording::{self, RecordingError, RunFile},
    ruling::Ruling,
    trajectory::{AgentName, Evidence, LabelStatus, RunId, StepIndex},
};

/// What a failure is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchGoal {
    /// The step that decides it.
    DecisiveStep,
    /// Later agents that could have saved the run from its proven error.
    MissedCatch,
}

/// That a failure cannot be searched, kept beside its run for whoever concludes over it without executing anything.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SearchRefusal {
    /// What it was to be searched for.
    pub goal: SearchGoal,
    /// Why it cannot be.
    pub why: String,
}

impl SearchRefusal {
    const FILE: &str = "search-refused.json";

    /// Keeps the refusal beside a run.
    pub(super) fn write(&self, dir: &Path) -> Result<(), RecordingError> {
        recording::write_beside(&dir.join(Self::FILE), self)
    }

    /// Why the run in a directory cannot be searched, as it was found before.
    pub(super) fn read(dir: &Path, goal: SearchGoal) -> Option<String> {
        let refusal: Self = serde_json::from_slice(&RunFile::bytes(&dir.join(Self::FILE)).ok()?).ok()?;
        (refusal.goal == goal).then_some(refusal.why)
    }
}

/// A run that failed, with all that a search of it is given.
#[derive(Debug)]
pub struct SearchedFailure {
    /// Its directory.
    pub dir: PathBuf,
    /// A clean run of the same task that passed.
    pub twin: Option<PathBuf>,
    /// The right answer; empty where the task has none.
    pub answer: String,
    /// The system that ran it.
    pub system: CampaignSystem,
    /// What it is searched for.
    pub goal: SearchGoal,
    /// How it is searched.
    pub search: FailureSearch,
}

/// Searches runs that failed.
pub trait FailureTracer: Debug + Send + Sync {
    /// Searches a run, and leaves what it finds beside it. Blocks until it has; model calls are paid for from `meter`.
    ///
    /// # Errors
    /// Why the run cannot be searched, for people.
    fn trace(&self, failure: &SearchedFailure, meter: &Arc<Meter>) -> Result<(), String>;
}

/// A clean run that failed, and what a search of it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NaturalRun {
    /// The system.
    pub system: String,
    /// The task.
    pub task: String,
    /// The run.
    pub run: RunId,
    /// What the search came to.
    pub end: NaturalEnd,
    /// The agents that the label names, each with its step.
    pub errors: Vec<NaturalError>,
    /// Whether a label that stands for more than chance was begun: it counts among the claims of the data set.
    pub claimed: bool,
    /// Why there is no label.
    pub why: Option<String>,
}

/// An error that a label names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NaturalError {
    /// Whose it is.
    pub agent: AgentName,
    /// The step of the run, 0-based.
    pub step: StepIndex,
}

/// What a search of a failure came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NaturalEnd {
    /// A label is proven: the run is a row of the data set.
    Labelled,
    /// No step is shown to decide it.
    NotFound,
    /// It cannot be searched.
    Refused,
    /// The budget ended before the search did.
    Unfinished,
}

/// What came of all failures of clean runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct NaturalFunnel {
    /// Clean runs that failed by themselves.
    pub failures: usize,
    /// Those that were searched to the end.
    pub traced: usize,
    /// Those with a proven label.
    pub labelled: usize,
    /// Those that cannot be searched.
    pub refused: usize,
    /// Those whose search the budget ended.
    pub unfinished: usize,
    /// Searches that count among the claims of the data set.
    #[serde(skip)]
    pub(super) claims: usize,
}

/// What this module reads of a trace.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TraceEnd {
    #[serde(default)]
    out_of_budget: bool,
    #[serde(default)]
    spent: TraceSpent,
    #[serde(default)]
    not_found: Option<String>,
    #[serde(default)]
    doubts: Vec<TraceDoubt>,
}

#[derive(Debug, Default, Deserialize)]
struct TraceSpent {
    #[serde(default)]
    runs: u64,
}

#[derive(Debug, Deserialize)]
struct TraceDoubt {
    why: String,
}

impl NaturalEnd {
    /// Its name in reports.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Labelled => "labelled",
            Self::NotFound => "not found",
            Self::Refused => "cannot be traced",
            Self::Unfinished => "unfinished",
        }
    }
}

impl NaturalFunnel {
    /// Counts a failure.
    pub(super) fn add(&mut self, run: &NaturalRun) {
        self.failures += 1;
        self.claims += usize::from(run.claimed);
        match run.end {
            NaturalEnd::Labelled => self.labelled += 1,
            NaturalEnd::NotFound => {}
            NaturalEnd::Refused => self.refused += 1,
            NaturalEnd::Unfinished => self.unfinished += 1,
        }
        self.traced += usize::from(matches!(run.end, NaturalEnd::Labelled | NaturalEnd::NotFound));
    }

    /// One line.
    pub(super) fn in_words(self) -> String {
        let Self { failures, traced, labelled, refused, unfinished, .. } = self;
        let mut line =
            format!("{} of clean runs   traced {traced}   labelled {labelled}", dataset::failures(failures as u64));
        for (count, how) in [(refused, "cannot be traced"), (unfinished, "unfinished")] {
            if count > 0 {
                line.extend(["   ", how, " ", &count.to_string()]);
            }
        }
        line
    }
}

impl SearchGoal {
    /// The file that such a search leaves beside a run.
    fn file(self) -> &'static str {
        match self {
            Self::DecisiveStep => "trace.json",
            Self::MissedCatch => "missed-catch.json",
        }
    }
}

/// Whether nothing more is executed for a failure.
pub(super) fn is_finished(failure: &SearchedFailure) -> bool {
    TraceEnd::read(&failure.dir, failure.goal).is_some_and(|trace| trace.is_finished(&failure.search))
}

impl NaturalRun {
    /// What lies beside a run that was searched, or could not be.
    pub(super) fn read(ended: &EndedCell, dir: &Path, search: &FailureSearch, refused: Option<String>) -> Self {
        let trace = TraceEnd::read(dir, SearchGoal::DecisiveStep);
        let recording = recording::read(dir).ok();
        let label = recording.as_ref().and_then(|recording| {
            let label = recording.label.as_ref().filter(|label| label.status == LabelStatus::Verified)?;
            Ruling::new(recording).objects_to(label).is_none().then_some(label)
        });
        let end = match (&label, &trace, &refused) {
            (Some(_), ..) => NaturalEnd::Labelled,
            (None, _, Some(_)) => NaturalEnd::Refused,
            (None, Some(trace), None) if trace.is_finished(search) => NaturalEnd::NotFound,
            (None, ..) => NaturalEnd::Unfinished,
        };
        let errors = label.iter().flat_map(|label| &label.errors).map(|entry| &entry.error);
        let is_repeatable = label.and_then(|label| label.evidence.as_ref()).is_some_and(Evidence::is_repeatable);
        Self {
            system: ended.system.clone(),
            task: ended.task.clone(),
            run: ended.run.clone(),
            end,
            errors: errors.map(|at| NaturalError { agent: at.agent.clone(), step: at.step }).collect(),
            claimed: trace.is_some() && !is_repeatable,
            why: refused.or_else(|| trace.filter(|_| end == NaturalEnd::NotFound).and_then(TraceEnd::why)),
        }
    }
}

impl TraceEnd {
    pub(super) fn read(dir: &Path, goal: SearchGoal) -> Option<Self> {
        serde_json::from_slice(&RunFile::bytes(&dir.join(goal.file())).ok()?).ok()
    }

    /// Whether nothing more is executed: it came to an end, or has made all executions that a failure gets.
    pub(super) fn is_finished(&self, search: &FailureSearch) -> bool {
        !self.out_of_budget || self.spent.runs >= u64::from(search.runs)
    }

    fn why(self) -> Option<String> {
        self.not_found.or_else(|| self.doubts.into_iter().next().map(|doubt| doubt.why))
    }
}
