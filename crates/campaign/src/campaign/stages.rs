//! The first stages of a chain: clean runs, and the injected runs that begin like the first of them.

use std::sync::Arc;

use super::{
    aim::Aim,
    bench::CellBench,
    cell::Cell,
    chain::{Chain, Silence},
    ended::{Class, EndedCell, HowEnded},
    error::CampaignError,
    file::Repeatable,
    funnel::{ConcludedChain, InjectedRun, LeftOut, TaskState},
    planned_task::PlannedTask,
    sample,
    treatment::TargetedPlan,
};
use crate::{
    equality::{Parting, Rules, parting},
    recording::{self, Recording},
    replay::compared_run,
    trajectory::{Unserved, Verdict, unserved},
};

impl CellBench {
    /// Makes the clean runs of a task, and says whether it is to be gone on with.
    pub(super) async fn clean(
        self: &Arc<Self>,
        chain: Chain,
        concluded: &mut ConcludedChain,
    ) -> Result<(Option<Cell>, Option<Silence>), CampaignError> {
        let campaign = &self.context.campaign;
        let repeats = 0..campaign.clean;
        let cells: Vec<Cell> = repeats.map(|repeat| Cell::clean(campaign, chain.system, chain.task, repeat)).collect();
        let ended = self.stage(&cells).await?;
        let Some(first) = cells.first() else { return Ok((None, None)) };
        for ended in ended.iter().flatten() {
            count(concluded, ended);
        }
        let state = self.task_state(first, &ended)?;
        let reference = state.reference.is_some().then(|| first.clone());
        concluded.tasks.push(state);
        concluded.unfinished += ended.iter().filter(|ended| ended.is_none()).count();
        Ok((reference, self.silence(first, &ended)))
    }

    /// What the clean runs of a task say of it.
    fn task_state(&self, first: &Cell, ended: &[Option<EndedCell>]) -> Result<TaskState, CampaignError> {
        let (system, task) = self.names(first)?;
        let finished: Vec<&EndedCell> = ended.iter().flatten().collect();
        let passed = finished.iter().filter(|ended| ended.passed()).count();
        let defect = finished.iter().find_map(|ended| ended.defect());
        let unchecked = finished.iter().any(|ended| ended.outcome.verdict == Verdict::Unknown);
        let all = finished.len() == ended.len();
        let seen = finished.iter().map(|run| recording::read(&self.state.run_dir(&run.run)));
        let seen: Vec<Recording> = if passed < ended.len() { Vec::new() } else { seen.collect::<Result<_, _>>()? };
        let rules = self.references.learn(&first.run, &seen);
        let difference = first_difference(&seen, &rules);
        let repeatable = difference.is_none();
        if self.context.campaign.repeats_itself && !repeatable {
            self.revoke(first.system, difference.as_deref());
        }
        let left_out = match defect {
            _ if !all => Some(LeftOut::Unfinished),
            Some(Class::InfraError) => Some(LeftOut::InfraError),
            Some(Class::Timeout) => Some(LeftOut::Timeout),
            Some(_) => Some(LeftOut::Crashed),
            None if unchecked => Some(LeftOut::Unchecked),
            None if passed == 0 => Some(LeftOut::Unsolved),
            None if passed < ended.len() => Some(LeftOut::FlakyTask),
            None if !repeatable && self.context.campaign.repeatable == Repeatable::Require => {
                Some(LeftOut::Unrepeatable)
            }
            None => None,
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let reference = left_out.is_none().then(|| first.run.clone());
        let unlike = finished.iter().find(|ended| !ended.passed()).filter(|_| left_out.is_some());
        let why = unlike.map(|ended| self.why(ended));
        Ok(TaskState {
            system,
            task,
            reference,
            passed: number(passed),
            runs: number(finished.len()),
            silent: number(finished.iter().filter(|ended| ended.was_silent()).count()),
            left_out,
            why,
            repeatable,
            chaotic: false,
            tool_results: rules.tool_results(),
            learned: self.references.learned(&rules),
        })
    }

    /// Says of each task what its runs, the later ones among them, showed to be equal.
    pub(super) fn note_learned(&self, concluded: &mut ConcludedChain) {
        for task in &mut concluded.tasks {
            let Some(reference) = &task.reference else { continue };
            let rules = self.references.rules(reference);
            task.tool_results = rules.tool_results();
            task.learned = self.references.learned(&rules);
        }
    }

    /// What a run that did not pass came to: an upstream that answered nothing says more than what the program made of it.
    fn why(&self, ended: &EndedCell) -> String {
        let told = || ended.in_words(self.context.campaign.verify.answer.as_ref());
        let then = if ended.upstream_failed { String::new() } else { format!("; {}", told()) };
        let recorded = recording::read(&self.state.run_dir(&ended.run)).ok();
        match recorded.and_then(|recorded| unserved(&recorded.trajectory.steps)) {
            Some(Unserved::Unreachable) => format!("no call reached the upstream{then}"),
            Some(refused) => format!("the upstream answered every call with {refused}{then}"),
            None => told(),
        }
    }

    /// What is told of clean runs none of which made a call.
    fn silence(&self, first: &Cell, ended: &[Option<EndedCell>]) -> Option<Silence> {
        let finished: Vec<&EndedCell> = ended.iter().flatten().collect();
        if finished.is_empty() {
            return None;
        }
        if finished.iter().any(|ended| ended.steps > 0) {
            return Some(Silence::Broken);
        }
        let late = finished.iter().all(|ended| ended.ending == HowEnded::TimedOut);
        Some(Silence::Unbroken { late, said: self.stderr_end(first) })
    }

    /// Makes the injected runs of a task.
    pub(super) async fn inject(
        self: &Arc<Self>,
        chain: Chain,
        reference: &Cell,
        concluded: &mut ConcludedChain,
    ) -> Result<Vec<Cell>, CampaignError> {
        let cells = self.planned_runs(chain, reference, concluded)?;
        let ended = self.stage(&cells).await?;
        for (attempt, ended) in concluded.attempts.iter_mut().zip(ended) {
            match ended {
                None => concluded.unfinished += 1,
                Some(ended) => attempt.take(ended),
            }
        }
        let finished: Vec<EndedCell> = concluded.attempts.iter().filter_map(|attempt| attempt.ended.clone()).collect();
        for ended in &finished {
            count(concluded, ended);
        }
        Ok(cells)
    }

    /// The injected runs that are to be made, each with its attempt.
    fn planned_runs(
        &self,
        chain: Chain,
        reference: &Cell,
        concluded: &mut ConcludedChain,
    ) -> Result<Vec<Cell>, CampaignError> {
        let (system, task) = self.names(reference)?;
        let campaign = &self.context.campaign;
        let cassette = self.references.open(&self.state, &reference.run)?;
        let steps = &cassette.recording().trajectory.steps;
        let PlannedTask { mut cells, impossible } = campaign.planned_on(reference, steps);
        concluded.impossible = impossible;
        let attempt = |cell: &Cell| Some(InjectedRun::planned(&system, &task, cell.plan()?, cell));
        concluded.attempts.extend(cells.iter().filter_map(attempt));
        let called = sample::called(steps);
        for number in campaign.decoys_of(chain, cells.len()) {
            let aimed = cells.get(number).and_then(|cell| cell.plan()?.as_decoy(&called)).map(Arc::new);
            let Some(aimed) = aimed else { continue };
            let cell = Cell::injected(campaign, reference, &aimed, u32::try_from(number).unwrap_or(u32::MAX));
            let decoy = InjectedRun::planned(&system, &task, &aimed, &cell);
            concluded.attempts.push(InjectedRun { decoy: true, ..decoy });
            cells.push(cell);
        }
        Ok(cells)
    }
}

/// Adds a finished cell to the sums.
pub(super) fn count(concluded: &mut ConcludedChain, ended: &EndedCell) {
    concluded.spent_by_cells.add(&ended.spent);
    concluded.prefix.add(&ended.prefix);
    concluded.salvaged += ended.salvaged;
    concluded.failed_upstream |= ended.upstream_failed && ended.diverged.is_none();
    concluded.runs.insert(ended.run.clone());
}

impl InjectedRun {
    /// A run of a plan on a task of a system, before anything is known of it.
    fn planned(system: &str, task: &str, aimed: &TargetedPlan, cell: &Cell) -> Self {
        Self {
            system: system.to_owned(),
            task: task.to_owned(),
            plan: aimed.name.clone(),
            decoy: false,
            position: aimed.position,
            aims: Aim::all_in(&aimed.plan),
            class: None,
            delivered: false,
            flipped: false,
            run: Some(cell.run.clone()),
            ended: None,
            claim: None,
            fork_step: None,
            standing: None,
            executed: None,
            necessity: Vec::new(),
            why: None,
        }
    }

    fn take(&mut self, ended: EndedCell) {
        self.delivered = ended.was_delivered();
        self.class = ended.class();
        self.flipped = self.class.is_none();
        if self.flipped {
            self.class = Some(Class::Unproven);
        }
        self.ended = Some(ended);
    }
}

/// Where clean runs asked different questions although they had got the same replies: the first difference may be the
/// backend's, and all that follows may differ for that. `None`: nowhere.
fn first_difference(runs: &[Recording], rules: &Rules) -> Option<String> {
    let (first, others) = runs.split_first()?;
    let compared = compared_run(first, rules);
    others.iter().find_map(|run| {
        let parted = parting(&compared, &compared_run(run, rules))?;
        let (run, reference) = (&run.trajectory.run, &first.trajectory.run);
        matches!(parted, Parting::Request(_) | Parting::Missing(_))
            .then(|| format!("of the clean run `{run}`, beside `{reference}`: {parted}"))
    })
}
