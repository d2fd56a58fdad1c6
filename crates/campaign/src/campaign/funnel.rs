//! What came of a chain, as reports and datasets are made of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    aim::Aim,
    catch_run::CatchRun,
    ended::{Class, EndedCell},
    file::CallPosition,
    impossible::ImpossiblePlan,
    natural::NaturalRun,
    sitting::OlderControls,
};
use crate::budget::Cost;
use crate::equality::ToolResults;
use crate::trajectory::{Executed, Necessity, RunId, Standing, StepIndex};

/// What came of a chain.
#[derive(Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ConcludedChain {
    /// The system and its task; several only in tests of what is made of many.
    pub tasks: Vec<TaskState>,
    /// Each injected run, in the order of plans.
    pub attempts: Vec<InjectedRun>,
    /// What cannot be planted in its reference run; nothing of it was executed.
    #[serde(default)]
    pub impossible: Vec<ImpossiblePlan>,
    /// The decoys: they went through all that the attempts went through, and are none of them.
    #[serde(default)]
    pub decoys: Vec<InjectedRun>,
    /// Its clean runs that failed by themselves, where such are searched.
    #[serde(default)]
    pub naturals: Vec<NaturalRun>,
    /// Its failures with a proven label, where later agents that could have saved them are searched.
    #[serde(default)]
    pub catches: Vec<CatchRun>,
    /// Claims that were begun: runs that met the same treatment are one.
    pub claims: usize,
    /// Control executions.
    #[serde(rename = "nulls")]
    pub controls: ControlCounts,
    /// Those of them that are older than runs that they would stand against.
    #[serde(default)]
    pub older: OlderControls,
    /// Plans less one injection that were tried.
    pub without: usize,
    /// What its cells were charged, the finished ones.
    pub spent_by_cells: Cost,
    /// What records answered instead of an upstream.
    pub prefix: Cost,
    /// Calls that unfinished runs had paid for and finished ones did not pay again.
    pub salvaged: u64,
    /// Cells that were not finished.
    pub unfinished: usize,
    /// Its finished runs: all that is concluded rests on them.
    #[serde(skip)]
    pub runs: BTreeSet<RunId>,
    /// Whether any of them ended by a failure of the upstream: such a run is made anew when the campaign is gone on with.
    #[serde(skip)]
    pub failed_upstream: bool,
    /// Whether any claim stands because the system repeats itself: that holds only as long as nothing of the system was seen
    /// to differ.
    #[serde(skip)]
    pub repeats: bool,
    /// Whether it was seen to.
    #[serde(skip)]
    pub revokes: bool,
}

/// Control executions: the beginning of a run without its injection, and what it comes to then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ControlCounts {
    /// Those that solved the task.
    pub passed: usize,
    /// Those that did not.
    pub failed: usize,
    /// Those that say nothing.
    pub void: usize,
}

/// What came of the clean runs of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskState {
    /// The system.
    pub system: String,
    /// The task.
    pub task: String,
    /// The clean run that all others of the task begin like; `None` where the task is left out.
    pub reference: Option<RunId>,
    /// Clean runs that passed.
    pub passed: u32,
    /// Clean runs that were finished.
    pub runs: u32,
    /// Clean runs that ended in order and had made no model call.
    #[serde(default)]
    pub silent: u32,
    /// Why the task is left out.
    pub left_out: Option<LeftOut>,
    /// What the first clean run that did not pass came to, of a task that is left out.
    pub why: Option<String>,
    /// Whether its clean runs asked the same questions where they had got the same replies.
    pub repeatable: bool,
    /// Whether neutral changes alone turn its outcome too often: then none of its errors is shown.
    #[serde(default)]
    pub chaotic: bool,
    /// How far results of its tools may differ from run to run, as its runs show.
    #[serde(default, skip_serializing_if = "ToolResults::is_exact")]
    pub tool_results: ToolResults,
    /// What differs from run to run although nothing else does, as its runs show, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learned: Vec<String>,
}

/// Why a task is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// No clean run solves it.
    Unsolved,
    /// Some clean runs solve it, some do not.
    FlakyTask,
    /// A clean run ended by an error of the upstream.
    InfraError,
    /// A clean run ran out of time or of calls.
    Timeout,
    /// A clean run ended by an error of the program.
    Crashed,
    /// The check could not tell.
    Unchecked,
    /// Its clean runs ask different questions.
    Unrepeatable,
    /// Its clean runs are not all finished.
    Unfinished,
}

/// One injected run.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InjectedRun {
    /// The system.
    pub system: String,
    /// The task.
    pub task: String,
    /// The plan's name.
    pub plan: String,
    /// Whether a neutral change stands in the place of its edits.
    #[serde(default)]
    pub decoy: bool,
    /// Where a drawn plan aims; `None` for a plan as it stands.
    pub position: Option<CallPosition>,
    /// What the plan aims at: agents as written, mode, side and operator of each injection.
    pub aims: Vec<Aim>,
    /// The class; `None` where the cell was not finished.
    pub class: Option<Class>,
    /// Whether altered bytes were delivered.
    pub delivered: bool,
    /// Whether they were, and the outcome flipped.
    pub flipped: bool,
    /// The run; `None` where nothing was run.
    pub run: Option<RunId>,
    /// What came of it.
    pub ended: Option<EndedCell>,
    /// The claim that it is a run of, by index; runs that met the same treatment share one.
    pub claim: Option<usize>,
    /// The step of the run at which it left its reference, 0-based.
    pub fork_step: Option<StepIndex>,
    /// Where that stands; `None` where the outcome did not flip.
    pub standing: Option<Standing>,
    /// What was executed for it.
    pub executed: Option<Executed>,
    /// Of a plan with several injections: which the failure needs.
    pub necessity: Vec<Necessity>,
    /// Why nothing was run.
    pub why: Option<String>,
}

impl ConcludedChain {
    /// How many attempts turned the outcome, proven or not.
    pub fn flipped(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.flipped).count()
    }

    /// Sets the decoys apart, with the claims that are theirs alone.
    pub(super) fn set_decoys_apart(&mut self) {
        let (decoys, attempts) = std::mem::take(&mut self.attempts).into_iter().partition(|attempt| attempt.decoy);
        (self.decoys, self.attempts) = (decoys, attempts);
        let own = |of: &[InjectedRun]| of.iter().filter_map(|one| one.claim).collect::<BTreeSet<_>>();
        self.claims -= own(&self.decoys).difference(&own(&self.attempts)).count();
    }

    /// How many failures are shown: claims, each of which is one row of the dataset.
    pub fn verified(&self) -> usize {
        let verified = self.attempts.iter().filter(|attempt| attempt.class == Some(Class::Verified));
        verified.filter_map(|attempt| attempt.claim).collect::<BTreeSet<_>>().len()
    }

    /// How many claims stand because their system repeats itself.
    pub fn repeated(&self) -> usize {
        let repeated = |attempt: &&InjectedRun| attempt.executed.as_ref().is_some_and(|executed| executed.repeatable);
        self.attempts.iter().filter(repeated).filter_map(|attempt| attempt.claim).collect::<BTreeSet<_>>().len()
    }
}
