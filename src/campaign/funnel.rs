//! What came of a campaign, as reports and datasets are made of it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    cost::Cost,
    ended::{Class, EndedCell},
    file::CallPosition,
};
use crate::trajectory::{Executed, FailureMode, Necessity, RunId, Standing, StepIndex};

/// What came of a campaign.
#[derive(Debug, Default)]
pub struct Concluded {
    /// Each system and task, in the order of the file.
    pub tasks: Vec<TaskState>,
    /// Each injected run, in the order of systems, tasks and plans.
    pub attempts: Vec<InjectedRun>,
    /// Claims that were begun: runs that met the same treatment are one.
    pub claims: usize,
    /// Null executions.
    pub nulls: Nulls,
    /// Plans less one injection that were tried.
    pub without: usize,
    /// Systems that are declared to repeat themselves, and do not.
    pub revoked: Vec<String>,
    /// What was charged in all, unfinished cells and earlier starts of the campaign included.
    pub spent: Cost,
    /// What the cells of this campaign were charged, the finished ones.
    pub spent_by_cells: Cost,
    /// What records answered instead of an upstream.
    pub prefix: Cost,
    /// Calls that unfinished runs had paid for and finished ones did not pay again.
    pub salvaged: u64,
    /// Cells that were not finished.
    pub unfinished: usize,
    /// Chains that are missing or not made to their end, where a data set was made of shards all the same.
    pub missing_chains: usize,
    /// Whether the budget ended it.
    pub exhausted: bool,
    /// Whether somebody ended it.
    pub stopped: bool,
    /// The fewest cells at once that the upstream's refusals left room for.
    pub lowest_jobs: usize,
}

/// Null executions: the beginning of a run without its injection, and what it comes to then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nulls {
    /// Those that solved the task.
    pub passed: usize,
    /// Those that did not.
    pub failed: usize,
    /// Those that say nothing.
    pub void: usize,
}

/// What came of the clean runs of a task.
#[derive(Debug, Clone, PartialEq)]
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
    /// Why the task is left out.
    pub left_out: Option<LeftOut>,
    /// What the first clean run that did not pass came to, of a task that is left out.
    pub why: Option<String>,
    /// Whether its clean runs asked the same questions where they had got the same replies.
    pub repeatable: bool,
}

/// Why a task is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
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
#[derive(Debug, Clone)]
pub struct InjectedRun {
    /// The system.
    pub system: String,
    /// The task.
    pub task: String,
    /// The plan's name.
    pub plan: String,
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

/// What an injection aims at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Aim {
    /// The agents, as the plan writes them.
    pub agent: String,
    /// The failure mode; none for a fault.
    pub mode: Option<FailureMode>,
    /// The side; none for a fault.
    pub side: Option<&'static str>,
    /// The manipulator or fault.
    pub operator: String,
}

impl Concluded {
    /// Adds what came of a further chain. What holds of the whole campaign (what was spent, how it ended) is left as it is.
    pub(super) fn add(&mut self, chain: Concluded) {
        self.tasks.extend(chain.tasks);
        let before = self.claims;
        self.attempts.extend(
            chain
                .attempts
                .into_iter()
                .map(|attempt| InjectedRun { claim: attempt.claim.map(|claim| before + claim), ..attempt }),
        );
        self.claims += chain.claims;
        self.nulls.passed += chain.nulls.passed;
        self.nulls.failed += chain.nulls.failed;
        self.nulls.void += chain.nulls.void;
        self.without += chain.without;
        self.spent_by_cells.add(&chain.spent_by_cells);
        self.prefix.add(&chain.prefix);
        self.salvaged += chain.salvaged;
        self.unfinished += chain.unfinished;
    }

    /// How many attempts are of a class.
    pub fn count(&self, class: Class) -> usize {
        self.attempts.iter().filter(|attempt| attempt.class == Some(class)).count()
    }

    /// How many attempts were delivered.
    pub fn delivered(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.delivered).count()
    }

    /// How many attempts turned the outcome, proven or not.
    pub fn flipped(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.flipped).count()
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

    /// Whether the upstream's failures left no task to go on with.
    pub fn is_unreachable(&self) -> bool {
        !self.tasks.is_empty() && self.tasks.iter().all(|task| task.left_out == Some(LeftOut::InfraError))
    }

    /// The sums as data.
    pub fn data(&self) -> serde_json::Value {
        serde_json::json!({
            "tasks": self.tasks.len(),
            "kept_tasks": self.tasks.iter().filter(|task| task.reference.is_some()).count(),
            "attempts": self.attempts.len(),
            "delivered": self.delivered(),
            "flipped": self.flipped(),
            "verified": self.verified(),
            "spent": self.spent,
            "complete": self.is_complete(),
        })
    }

    /// Whether every cell is finished.
    pub fn is_complete(&self) -> bool {
        self.unfinished == 0 && !self.exhausted && !self.stopped
    }
}
