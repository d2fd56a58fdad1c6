//! The making of natural failures: clean runs of a chain that failed by themselves are searched, one after another.

use std::sync::Arc;

use super::{
    bench::CellBench,
    cell::Cell,
    chain::Chain,
    definition::FailureSearch,
    ended::EndedCell,
    error::CampaignError,
    file::CorrectionSource,
    funnel::{ConcludedChain, LeftOut},
    natural::{NaturalEnd, NaturalRun, SearchGoal, SearchRefusal, SearchedFailure, is_finished},
};
use crate::{
    dataset::{Sample, SampleKind},
    trajectory::{RunId, Verdict},
};

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
        let twin = ended.iter().find(|ended| ended.passed()).map(|ended| &ended.run);
        let failed = ended.iter().filter(|ended| ended.defect().is_none() && ended.steps > 0);
        for failed in failed.filter(|ended| ended.outcome.verdict == Verdict::Failure) {
            let failure = self.searched(chain, &failed.run, twin, SearchGoal::DecisiveStep, search)?;
            let refused = self.trace_failure(failure).await?;
            let run = NaturalRun::read(failed, &self.state.run_dir(&failed.run), search, refused);
            concluded.unfinished += usize::from(run.end == NaturalEnd::Unfinished);
            concluded.naturals.push(run);
        }
        Ok(())
    }

    /// A run of a chain that failed, as it is searched. `twin`: a clean run of the same task that passed.
    pub(super) fn searched(
        &self,
        chain: Chain,
        run: &RunId,
        twin: Option<&RunId>,
        goal: SearchGoal,
        search: &FailureSearch,
    ) -> Result<SearchedFailure, CampaignError> {
        let campaign = &self.context.campaign;
        let Some(system) = campaign.systems.get(chain.system) else { return Err(CampaignError::Lost) };
        Ok(SearchedFailure {
            dir: self.state.run_dir(run),
            twin: twin.map(|twin| self.state.run_dir(twin)),
            answer: campaign.tasks.get(chain.task).map(|task| task.answer.clone()).unwrap_or_default(),
            system: system.clone(),
            goal,
            search: search.clone(),
        })
    }

    /// Searches a run unless that was done; why it cannot be.
    pub(super) async fn trace_failure(&self, failure: SearchedFailure) -> Result<Option<String>, CampaignError> {
        if failure.search.corrections == CorrectionSource::Twin && failure.twin.is_none() {
            return Ok(Some("no clean run of the task passed, whose replies would correct this one".to_owned()));
        }
        if is_finished(&failure) {
            return Ok(None);
        }
        let (goal, dir) = (failure.goal, failure.dir.clone());
        let Some(tracer) = self.tracer.clone().filter(|_| !self.is_over()) else {
            return Ok(SearchRefusal::read(&dir, goal));
        };
        let place = self.context.gate.enter().await;
        let meter = Arc::clone(&self.context.meter);
        // A search runs programs and waits for them on a runtime of its own.
        let traced = tokio::task::spawn_blocking(move || tracer.trace(&failure, &meter)).await;
        drop(place);
        let refused = traced.map_err(|_| CampaignError::Lost)?.err();
        if let Some(why) = refused.clone() {
            SearchRefusal { goal, why }.write(&dir)?;
        }
        Ok(refused)
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
