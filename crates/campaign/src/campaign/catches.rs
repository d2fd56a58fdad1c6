//! Missed catches as a stage of a campaign: in each failure with a proven label, agents that spoke after the error are searched
//! for those that could have saved the run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    bench::CellBench,
    cell::Cell,
    chain::Chain,
    ended::{Class, EndedCell},
    error::CampaignError,
    funnel::ConcludedChain,
    natural::{NaturalEnd, SearchGoal, TraceEnd},
};
use crate::{
    dataset, recording,
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

impl CellBench {
    /// Searches the failures of a chain that have a proven label, one after another; their labels lie beside them.
    pub(super) async fn search_catches(
        &self,
        chain: Chain,
        concluded: &mut ConcludedChain,
    ) -> Result<(), CampaignError> {
        let campaign = &self.context.campaign;
        let Some(search) = &campaign.missed_catch else { return Ok(()) };
        let (failures, passed) = (self.proven_failures(concluded)?, self.passed_clean_run(chain)?);
        for ended in failures {
            let dir = self.state.run_dir(&ended.run);
            let failure = self.searched(chain, &ended.run, passed.as_ref(), (SearchGoal::MissedCatch, search))?;
            let refused = self.trace_failure(failure).await?;
            let search_end = TraceEnd::read(&dir, SearchGoal::MissedCatch);
            let finished = search_end.is_some_and(|end| end.is_finished(search));
            concluded.unfinished += usize::from(!finished && refused.is_none());
            concluded.catches.push(CatchRun {
                system: ended.system,
                task: ended.task,
                run: ended.run,
                finished,
                missed_catch: recording::read_label(&dir)?.map(|label| label.missed_catch.clone()).unwrap_or_default(),
                refused,
            });
        }
        Ok(())
    }

    /// The runs of a chain that become rows with a proven label: of each claim the first, and clean runs whose error was found.
    fn proven_failures(&self, concluded: &ConcludedChain) -> Result<Vec<EndedCell>, CampaignError> {
        let mut claims = BTreeSet::new();
        let verified = concluded.attempts.iter().filter(|attempt| attempt.class == Some(Class::Verified));
        let first = verified.filter(|attempt| claims.insert(attempt.claim));
        let mut failures: Vec<EndedCell> = first.filter_map(|attempt| attempt.ended.clone()).collect();
        for run in concluded.naturals.iter().filter(|run| run.end == NaturalEnd::Labelled) {
            failures.extend(self.finished(&run.run)?);
        }
        Ok(failures)
    }

    /// The first clean run of a chain that passed.
    pub(super) fn passed_clean_run(&self, chain: Chain) -> Result<Option<RunId>, CampaignError> {
        let campaign = &self.context.campaign;
        for repeat in 0..campaign.clean {
            let run = Cell::clean(campaign, chain.system, chain.task, repeat).run;
            if self.finished(&run)?.is_some_and(|ended| ended.passed()) {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }
}
