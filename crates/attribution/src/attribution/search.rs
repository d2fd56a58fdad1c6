//! A search under way: it executes what [`crate::proof::Search`] asks for, and tells it what that came to.

use std::sync::Arc;

use futures_util::future::join_all;

use super::{
    Corrections, EndedExecution, SearchSpent, TraceJournal, TraceSettings, Watch,
    arms::{Arms, ForkArm},
    trace_journal::{EndedTrial, TrialKey},
};
use crate::{
    execution::{
        ExecutedRun, ExecutionArm, ExecutionError, ForkedReplies, Meter, ReplySource, SystemUnderTest, unrunnable,
    },
    proof::{self, Offer, Search, Stands, TriedWords},
    replay::{AtFork, Cassette, Fit, ForkPoint},
    trajectory::{AgentName, RunId, StepIndex, Void},
};

/// A failed run that is searched.
pub(super) struct SearchSubject {
    pub(super) system: Arc<SystemUnderTest>,
    pub(super) cassette: Arc<Cassette>,
    pub(super) corrections: Corrections,
    pub(super) settings: TraceSettings,
    pub(super) meter: Arc<Meter>,
    pub(super) journal: TraceJournal,
}

/// What the executions of a search cost, and what was seen on the way.
pub(super) struct SearchExecutions<'a> {
    pub(super) subject: &'a SearchSubject,
    watch: &'a dyn Watch,
    pub(super) other_tool_results: u64,
    pub(super) spent: SearchSpent,
    pub(super) out_of_budget: bool,
    /// What a check said that could not be run.
    pub(super) unrunnable: Option<String>,
}

/// One execution to be made.
pub(super) struct Trial {
    pub(super) fork: ForkPoint,
    /// An agent whose calls are set, by step of the record.
    pub(super) says: Option<(AgentName, Vec<(StepIndex, AtFork)>)>,
    pub(super) words: &'static str,
    /// The name of its arm, and its number there: its run's id and its neutral changes are made from them.
    pub(super) arm: String,
    pub(super) number: usize,
    /// Whether it is executed without neutral changes.
    pub(super) plain: bool,
}

/// What a trial came to.
pub(super) struct TrialOutcome {
    pub(super) run: RunId,
    pub(super) sample: proof::ProofSample,
}

/// The arms of a search with the runs of each, in order.
pub(super) struct SearchedArms {
    pub(super) arms: Arms,
    pub(super) search: Search,
    pub(super) runs: Vec<Vec<RunId>>,
}

impl SearchSubject {
    /// What a trial comes to: as an earlier start of the trace saw it, or executed now and written down.
    async fn make(&self, trial: &Trial) -> Result<MadeTrial, ExecutionError> {
        if let Some(ended) = self.journal.ended(&trial.key()) {
            return Ok(MadeTrial { ended, is_resumed: true, unrunnable: None });
        }
        let executed = self.execute(trial).await?;
        let unrunnable = unrunnable(&executed.outcome);
        let ended = EndedTrial::from_executed(executed);
        self.journal.add(trial.key(), ended.clone()).map_err(ExecutionError::Journal)?;
        Ok(MadeTrial { ended, is_resumed: false, unrunnable })
    }

    /// One execution, with neutral changes of its own: what only any other bytes would do is no effect of these.
    async fn execute(&self, trial: &Trial) -> Result<ExecutedRun, ExecutionError> {
        let name = format!("{} {}", self.journal.salt(), trial.arm);
        let run = self.journal.run(&trial.key());
        let fork =
            ForkedReplies { cassette: Arc::clone(&self.cassette), at: trial.fork.clone(), says: trial.says.clone() };
        let sentences = self.system.sentences.clone();
        let mut arm = ExecutionArm { replies: ReplySource::Forked(fork), sentences, ..ExecutionArm::default() };
        if !trial.plain {
            let number = u32::try_from(trial.number).map_err(|_| ExecutionError::Lost)?;
            // A short text at the fork has few wordings. Once all were had they come again, drawn as before; what is live after it
            // has changes of its own.
            let draw = arm.any_draw(&name, number);
            arm = arm.perturbed(draw);
        }
        self.system.execute(&run, arm, &self.meter).await?.uninterrupted()
    }
}

impl<'a> SearchExecutions<'a> {
    /// Nothing is executed yet.
    pub(super) fn new(subject: &'a SearchSubject, watch: &'a dyn Watch) -> Self {
        let spent = SearchSpent::default();
        Self { subject, watch, other_tool_results: 0, spent, out_of_budget: false, unrunnable: None }
    }

    /// Searches until nothing is left to learn, or to spend.
    pub(super) async fn search(&mut self) -> Result<SearchedArms, ExecutionError> {
        let SearchSubject { cassette, corrections, settings, .. } = self.subject;
        let arms = Arms::from_corrections(cassette, corrections, settings);
        let (search, runs) = (Search::new(arms.question.clone()), vec![Vec::new(); arms.arms.len()]);
        let mut searched = SearchedArms { arms, search, runs };
        loop {
            let room = settings.jobs.max(1) as usize;
            let wanted = searched.search.next(room);
            let Some(room) = self.room(wanted.len()) else { break };
            let wanted: Vec<usize> = wanted.into_iter().take(room).collect();
            let trials = wanted
                .iter()
                .filter_map(|arm| Some(searched.arms.arms.get(*arm)?.trial(*arm, searched.runs.get(*arm)?.len())));
            let outcomes = self.execute(&trials.collect::<Vec<_>>()).await?;
            for (arm, outcome) in wanted.into_iter().zip(outcomes) {
                searched.search.take(arm, outcome.sample);
                if let Some(runs) = searched.runs.get_mut(arm) {
                    runs.push(outcome.run);
                }
            }
        }
        Ok(searched)
    }

    /// Where no step heals the run, executes each correction that was cleared, and that some neutral change failed, once as it is.
    /// One that passes so is not cleared: the check, or the program, minds the changes. Gives the places of such steps.
    pub(super) async fn try_as_they_are(&mut self, searched: &mut SearchedArms) -> Result<Vec<usize>, ExecutionError> {
        let found = searched.search.found();
        let mut doubted = Vec::new();
        if found.ending.is_some() || !found.flips.is_empty() || found.coupled.is_some() {
            return Ok(doubted);
        }
        for place in 0..searched.arms.question.steps.len() {
            let Some(&Offer::Other { treated, by: TriedWords::Given, .. }) = searched.arms.question.steps.get(place)
            else {
                continue;
            };
            let Some(arm) = searched.arms.arms.get(treated) else { continue };
            // Where it passed with each neutral change, nothing minds them.
            let minds_none =
                searched.search.samples(treated).iter().all(|sample| *sample == proof::ProofSample::Passed);
            if minds_none || searched.search.stands(place) != Stands::Excluded {
                continue;
            }
            let trial = Trial { plain: true, arm: format!("plain {treated}"), ..arm.trial(treated, 0) };
            let outcomes = match self.room(1) {
                Some(_) => self.execute(&[trial]).await?,
                None => Vec::new(),
            };
            let passed = outcomes.iter().any(|outcome| outcome.sample == proof::ProofSample::Passed);
            if passed || outcomes.is_empty() {
                searched.search.doubt(place);
            }
            doubted.extend(passed.then_some(place));
        }
        Ok(doubted)
    }

    /// Executes the program at once for each of these that no earlier start did, and counts what it cost.
    pub(super) async fn execute(&mut self, trials: &[Trial]) -> Result<Vec<TrialOutcome>, ExecutionError> {
        let subject = self.subject;
        let executions = trials.iter().map(|trial| subject.make(trial));
        let mut outcomes = Vec::new();
        for (trial, made) in trials.iter().zip(join_all(executions).await) {
            let made = made?;
            self.unrunnable = made.unrunnable.or(self.unrunnable.take());
            self.spent.runs += 1;
            self.spent.resumed += u64::from(made.is_resumed);
            let EndedTrial { run, sample, live_tokens, recorded_tokens, other_tool_results } = made.ended;
            self.other_tool_results += u64::from(other_tool_results);
            self.spent.live_tokens += live_tokens;
            self.spent.recorded_tokens += recorded_tokens;
            self.out_of_budget |= sample == proof::ProofSample::Void(Void::Budget);
            let (number, step) = (self.spent.runs, trial.fork.step);
            self.watch.executed(&EndedExecution { number, step, arm: trial.words, run: &run, sample });
            outcomes.push(TrialOutcome { run, sample });
        }
        Ok(outcomes)
    }

    /// How many of so many executions may be made at once; `None` where none is wanted, or none may be made.
    pub(super) fn room(&mut self, wanted: usize) -> Option<usize> {
        if wanted == 0 {
            return None;
        }
        let settings = &self.subject.settings;
        let made = self.spent.runs - self.spent.resumed;
        let left = settings.runs.map_or(u64::MAX, |runs| runs.saturating_sub(made));
        if left == 0 || self.subject.meter.is_spent() || self.out_of_budget {
            self.out_of_budget = true;
            return None;
        }
        Some(wanted.min(usize::try_from(left).unwrap_or(usize::MAX)))
    }
}

/// What came of a trial.
struct MadeTrial {
    ended: EndedTrial,
    /// Whether an earlier start of the trace executed it.
    is_resumed: bool,
    /// What its check said, where that could not be run.
    unrunnable: Option<String>,
}

impl EndedTrial {
    fn from_executed(executed: ExecutedRun) -> Self {
        let usage = executed.live_usage();
        let served = executed.replay.iter().flat_map(|report| &report.served);
        Self {
            sample: executed.sample(),
            live_tokens: usage.input + usage.output,
            recorded_tokens: executed.recorded_tokens(),
            other_tool_results: served.into_iter().any(|served| served.fit == Fit::ToolResults),
            run: executed.run,
        }
    }
}

impl Trial {
    fn key(&self) -> TrialKey {
        TrialKey { arm: self.arm.clone(), number: self.number }
    }
}

impl ForkArm {
    fn trial(&self, arm: usize, number: usize) -> Trial {
        let says = self.also.clone().map(|(agent, step, at)| (agent, vec![(step, at)]));
        Trial { fork: self.fork.clone(), says, words: self.words, arm: format!("arm {arm}"), number, plain: self.plain }
    }
}
