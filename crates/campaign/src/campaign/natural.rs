//! Failures that nobody planted: a clean run that fails its task is searched for the step that decides it (`AgenTracer`,
//! arXiv 2509.03312, section 3.2), by the checkers of the task and within the budget of the campaign.

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    bench::CellBench,
    cell::Cell,
    chain::Chain,
    definition::{CampaignSystem, NaturalSearch},
    ended::EndedCell,
    error::CampaignError,
    file::CorrectionSource,
    funnel::{ConcludedChain, LeftOut},
};
use crate::{
    dataset::{self, Sample, SampleKind},
    execution::Meter,
    recording::{self, RunFile},
    ruling::Ruling,
    trajectory::{AgentName, Evidence, LabelStatus, RunId, StepIndex, Verdict},
};

/// The file that a trace leaves beside a run.
const TRACE: &str = "trace.json";

/// A clean run that failed, with all that a search for its decisive step is told.
#[derive(Debug)]
pub struct NaturalFailure {
    /// Its directory.
    pub dir: PathBuf,
    /// A clean run of the same task that passed.
    pub twin: Option<PathBuf>,
    /// The right answer; empty where the task has none.
    pub answer: String,
    /// The system that ran it.
    pub system: CampaignSystem,
    /// How it is searched.
    pub search: NaturalSearch,
}

/// Searches runs for the step that decides them.
pub trait FailureTracer: Debug + Send + Sync {
    /// Searches a run, and leaves trace and label beside it. Blocks until it has; model calls are paid for from `meter`.
    ///
    /// # Errors
    /// Why the run cannot be searched, for people.
    fn trace(&self, failure: &NaturalFailure, meter: &Arc<Meter>) -> Result<(), String>;
}

/// A clean run that failed, and what a search of it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NaturalError {
    /// Whose it is.
    pub agent: AgentName,
    /// The step of the run, 0-based.
    pub step: StepIndex,
}

/// What a search of a failure came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
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
struct TraceEnd {
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

impl CellBench {
    /// Searches the clean runs of a chain that failed by themselves, one after another.
    pub(super) async fn trace_failures(
        &self,
        chain: Chain,
        concluded: &mut ConcludedChain,
    ) -> Result<(), CampaignError> {
        let campaign = &self.context.campaign;
        let Some(search) = &campaign.natural else { return Ok(()) };
        let by_itself = |why: &LeftOut| matches!(why, LeftOut::Unsolved | LeftOut::FlakyTask);
        if !concluded.tasks.iter().any(|task| task.left_out.as_ref().is_some_and(by_itself)) {
            return Ok(());
        }
        let cells = (0..campaign.clean).map(|repeat| Cell::clean(campaign, chain.system, chain.task, repeat));
        let ended = cells.map(|cell| self.finished(&cell.run)).collect::<Result<Vec<_>, _>>()?;
        let ended: Vec<EndedCell> = ended.into_iter().flatten().collect();
        let twin = ended.iter().find(|ended| ended.passed()).map(|ended| self.state.run_dir(&ended.run));
        let failed = ended.iter().filter(|ended| ended.defect().is_none() && ended.steps > 0);
        for failed in failed.filter(|ended| ended.outcome.verdict == Verdict::Failure) {
            let Some(system) = campaign.systems.get(chain.system) else { return Err(CampaignError::Lost) };
            let failure = NaturalFailure {
                dir: self.state.run_dir(&failed.run),
                twin: twin.clone(),
                answer: campaign.tasks.get(chain.task).map(|task| task.answer.clone()).unwrap_or_default(),
                system: system.clone(),
                search: search.clone(),
            };
            let refused = self.trace_failure(failure).await?;
            let run = NaturalRun::read(failed, &self.state.run_dir(&failed.run), search, refused);
            concluded.unfinished += usize::from(run.end == NaturalEnd::Unfinished);
            concluded.naturals.push(run);
        }
        Ok(())
    }

    /// Searches a run unless that was done; why it cannot be.
    async fn trace_failure(&self, failure: NaturalFailure) -> Result<Option<String>, CampaignError> {
        if failure.search.corrections == CorrectionSource::Twin && failure.twin.is_none() {
            return Ok(Some("no clean run of the task passed, whose replies would correct it".to_owned()));
        }
        if TraceEnd::read(&failure.dir).is_some_and(|trace| trace.is_finished(&failure.search)) || self.is_over() {
            return Ok(None);
        }
        let Some(tracer) = self.tracer.clone() else { return Ok(None) };
        let place = self.context.gate.enter().await;
        let meter = Arc::clone(&self.context.meter);
        // A search runs programs and waits for them on a runtime of its own.
        let traced = tokio::task::spawn_blocking(move || tracer.trace(&failure, &meter)).await;
        drop(place);
        Ok(traced.map_err(|_| CampaignError::Lost)?.err())
    }

    /// The samples of the failures of a chain that have a proven label; where one of its clean runs passed, that is their twin
    /// and comes first.
    pub(super) fn natural_samples(
        &self,
        chain: Chain,
        concluded: &ConcludedChain,
    ) -> Result<Vec<Sample>, CampaignError> {
        let mut samples: Vec<Sample> = Vec::new();
        let labelled = concluded.naturals.iter().filter(|run| run.end == NaturalEnd::Labelled);
        let labelled: Vec<&NaturalRun> = labelled.collect();
        if labelled.is_empty() {
            return Ok(samples);
        }
        let campaign = &self.context.campaign;
        let cells = (0..campaign.clean).map(|repeat| Cell::clean(campaign, chain.system, chain.task, repeat));
        let ended = cells.map(|cell| self.finished(&cell.run)).collect::<Result<Vec<_>, _>>()?;
        let twin = ended.into_iter().flatten().find(EndedCell::passed);
        if let Some(twin) = &twin {
            samples.push(self.sample(chain, twin, SampleKind::Clean, None)?);
        }
        for run in labelled {
            let Some(ended) = self.finished(&run.run)? else { continue };
            let twin = twin.as_ref().map(|twin| twin.run.to_string());
            let sample = self.sample(chain, &ended, SampleKind::Failure, twin)?;
            // Clean runs that hold the same are one row.
            if !samples.iter().any(|known| known.is_same_run(&sample)) {
                samples.push(sample);
            }
        }
        Ok(samples)
    }
}

impl NaturalRun {
    /// What lies beside a run that was searched, or could not be.
    fn read(ended: &EndedCell, dir: &Path, search: &NaturalSearch, refused: Option<String>) -> Self {
        let trace = TraceEnd::read(dir);
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
    fn read(dir: &Path) -> Option<Self> {
        serde_json::from_slice(&RunFile::bytes(&dir.join(TRACE)).ok()?).ok()
    }

    /// Whether nothing more is executed: it came to an end, or has made all executions that a failure gets.
    fn is_finished(&self, search: &NaturalSearch) -> bool {
        !self.out_of_budget || self.spent.runs >= u64::from(search.runs)
    }

    fn why(self) -> Option<String> {
        self.not_found.or_else(|| self.doubts.into_iter().next().map(|doubt| doubt.why))
    }
}
