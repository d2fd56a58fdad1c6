//! What came of the search for missed catches, in each failure and in all.

use serde::{Deserialize, Serialize};

use super::natural::NaturalEnd;
use crate::{
    dataset,
    trajectory::{CatchState, MissedCatch, RunId},
};

/// A failure with a proven label, and what the search for missed catches came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CatchRun {
    /// The system.
    pub system: String,
    /// The task.
    pub task: String,
    /// The run.
    pub run: RunId,
    /// Whether nothing more is executed for it.
    pub finished: bool,
    /// What is shown of each later agent.
    pub missed_catch: Vec<MissedCatch>,
    /// Why it cannot be searched.
    pub refused: Option<String>,
}

/// What is shown of the agents that spoke after the errors of all failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CatchFunnel {
    /// Failures with a proven label.
    pub failures: usize,
    /// Those that were searched to the end.
    pub searched: usize,
    /// Those that cannot be searched.
    pub refused: usize,
    /// Those whose search the budget ended.
    pub unfinished: usize,
    /// Later agents of which something was executed.
    pub agents: usize,
    /// Those that could have saved their run.
    pub missed: usize,
    /// Those that could not.
    pub impossible: usize,
    /// Those of which neither is shown.
    pub unknown: usize,
}

impl CatchFunnel {
    /// Counts a failure.
    pub(super) fn add(&mut self, run: &CatchRun) {
        self.failures += 1;
        match (run.finished, &run.refused) {
            (true, _) => self.searched += 1,
            (false, Some(_)) => self.refused += 1,
            (false, None) => self.unfinished += 1,
        }
        self.agents += run.missed_catch.len();
        for one in &run.missed_catch {
            match one.state {
                CatchState::Missed => self.missed += 1,
                CatchState::Impossible => self.impossible += 1,
                CatchState::Unknown => self.unknown += 1,
            }
        }
    }

    /// One line.
    pub(super) fn in_words(self) -> String {
        let Self { failures, searched, refused, unfinished, agents, missed, impossible, unknown } = self;
        let mut line = format!(
            "{} searched of {}   later agents {agents}: {missed} could have saved the run, {impossible} could not, {unknown} not known",
            searched,
            dataset::failures(failures as u64)
        );
        for (count, how) in [(refused, NaturalEnd::Refused), (unfinished, NaturalEnd::Unfinished)] {
            if count > 0 {
                line.extend(["   ", how.words(), " ", &count.to_string()]);
            }
        }
        line
    }
}

impl CatchRun {
    /// What is shown of each later agent, or why nothing is.
    pub(super) fn in_words(&self) -> String {
        let shown: Vec<String> = self
            .missed_catch
            .iter()
            .map(|one| format!("{} at step {} {}", one.agent, one.step, one.state.words()))
            .collect();
        match (&self.refused, shown.is_empty()) {
            (Some(why), true) => why.clone(),
            (None, true) if self.finished => "no agent spoke later in other words than its correction".to_owned(),
            (None, true) => NaturalEnd::Unfinished.words().to_owned(),
            (_, false) => shown.join(", "),
        }
    }
}
