//! Missed catches as a stage of a campaign: in each failure with a proven label, agents that spoke after the error are searched
//! for those that could have saved the run.

use std::collections::BTreeSet;

use super::{
    bench::CellBench,
    catch_run::CatchRun,
    cell::Cell,
    chain::Chain,
    ended::{Class, EndedCell},
    error::CampaignError,
    funnel::ConcludedChain,
    natural::{NaturalEnd, SearchGoal, TraceEnd},
};
use crate::{recording, trajectory::RunId};

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
            let failure = self.searched(chain, &ended.run, passed.as_ref(), SearchGoal::MissedCatch, search)?;
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
