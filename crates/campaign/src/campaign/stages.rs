//! The first stages of a chain: clean runs, and the injected runs that begin like the first of them.

use std::sync::Arc;

use super::{
    bench::CellBench,
    cell::Cell,
    chain::{Chain, Silence},
    ended::{Class, EndedCell, HowEnded},
    error::CampaignError,
    file::Repeatable,
    funnel::{Aim, ConcludedChain, InjectedRun, LeftOut, TaskState},
    sample,
    treatment::Aimed,
};
use crate::{
    equality::{Parting, Rules, parting},
    plan::{self, Operator, Plan},
    recording::{self, Recording},
    replay::{ForkPoint, compared_run},
    trajectory::{Step, Unserved, Verdict, unserved},
};

/// Why a plan that no call of the reference meets is not run: the run would be the reference.
const NO_CALL: &str = "it meets no call of the reference run";

/// A plan for a task, or why it cannot be one, and how often it is run.
type PlannedTask = (Result<Aimed, (Aimed, String)>, u32);

/// The reference run of a task.
pub(super) struct Reference {
    /// Its cell.
    pub(super) cell: Cell,
    /// The task's place among all tasks of the file: what the sampler draws by.
    nth: usize,
}

impl CellBench {
    /// Makes the clean runs of a task, and says whether it is to be gone on with.
    pub(super) async fn clean(
        self: &Arc<Self>,
        chain: Chain,
        concluded: &mut ConcludedChain,
    ) -> Result<(Option<Reference>, Option<Silence>), CampaignError> {
        let campaign = &self.context.campaign;
        let repeats = 0..campaign.clean;
        let cells: Vec<Cell> = repeats.map(|repeat| Cell::clean(campaign, chain.system, chain.task, repeat)).collect();
        let ended = self.stage(&cells).await?;
        let Some(first) = cells.first() else { return Ok((None, None)) };
        for ended in ended.iter().flatten() {
            count(concluded, ended);
        }
        let state = self.task_state(first, &ended)?;
        let reference = state.reference.is_some().then(|| Reference { cell: first.clone(), nth: first.task });
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
        let tool_results = self.references.learn(&first.run, &seen);
        let difference = first_difference(&seen, &self.references.rules(&first.run));
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
            tool_results,
        })
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
        reference: &Reference,
        concluded: &mut ConcludedChain,
    ) -> Result<Vec<Option<Cell>>, CampaignError> {
        let cells = self.planned_runs(chain, reference, concluded)?;
        let runs: Vec<Cell> = cells.iter().flatten().cloned().collect();
        let mut ended = self.stage(&runs).await?.into_iter();
        for (attempt, cell) in concluded.attempts.iter_mut().zip(&cells) {
            let Some(ended) = cell.as_ref().and_then(|_| ended.next()) else { continue };
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

    /// The injected runs that are to be made, each with its attempt; `None` where nothing is run.
    fn planned_runs(
        &self,
        chain: Chain,
        reference: &Reference,
        concluded: &mut ConcludedChain,
    ) -> Result<Vec<Option<Cell>>, CampaignError> {
        let mut cells: Vec<Option<Cell>> = Vec::new();
        let (system, task) = self.names(&reference.cell)?;
        let campaign = &self.context.campaign;
        let cassette = self.references.open(&self.state, &reference.cell.run)?;
        for (planned, repeats) in self.plans(reference, &cassette.recording().trajectory.steps) {
            let (aimed, why) = match planned {
                Ok(aimed) => (aimed, None),
                Err((aimed, why)) => (aimed, Some(why)),
            };
            let aimed = Arc::new(aimed);
            for repeat in 0..repeats {
                let cell = Cell::injected(campaign, &reference.cell, &aimed, repeat);
                let fork = ForkPoint::of_plan(&cassette, &aimed.plan, &cell.run);
                let why = why.clone().or_else(|| fork.is_none().then(|| NO_CALL.to_owned()));
                let cell = why.is_none().then_some(cell);
                concluded.attempts.push(InjectedRun::planned((&system, &task), &aimed, cell.as_ref(), why));
                cells.push(cell);
            }
        }
        let called = sample::called(&cassette.recording().trajectory.steps);
        let can: Vec<bool> = cells.iter().map(Option::is_some).collect();
        for number in campaign.decoys_of(chain, &can) {
            let aimed = cells.get(number).and_then(|cell| cell.as_ref()?.plan()?.as_decoy(&called)).map(Arc::new);
            let Some(aimed) = aimed else { continue };
            let cell = Cell::injected(campaign, &reference.cell, &aimed, u32::try_from(number).unwrap_or(u32::MAX));
            let decoy = InjectedRun::planned((&system, &task), &aimed, Some(&cell), None);
            concluded.attempts.push(InjectedRun { decoy: true, ..decoy });
            cells.push(Some(cell));
        }
        Ok(cells)
    }

    /// The plans that a task is tried with, and how often; with why one cannot be.
    fn plans(&self, reference: &Reference, steps: &[Step]) -> Vec<PlannedTask> {
        let campaign = &self.context.campaign;
        let called = sample::called(steps);
        let mut plans = Vec::new();
        for fixed in campaign.plans.iter().filter(|fixed| fixed.systems.contains(&reference.cell.system)) {
            let aimed = |plan| Aimed { name: fixed.name.clone(), plan, position: None };
            let resolved = plan::resolve(&fixed.plan, &called);
            let planned = match resolved {
                Ok(plan) => Ok(aimed(plan)),
                Err(error) => Err((aimed(fixed.plan.clone()), error.to_string())),
            };
            plans.push((planned, fixed.repeats));
        }
        if let Some(drawn) = campaign.sample.as_ref().filter(|drawn| drawn.systems.contains(&reference.cell.system)) {
            for planned in sample::draw(drawn, campaign.seed, reference.nth, steps) {
                plans.push((planned.map_err(|why| (nothing(), why)), 1));
            }
        }
        plans
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
    /// A run of a plan on a task of a system, before anything is known of it. Where no cell is run, `why` says why.
    fn planned((system, task): (&str, &str), aimed: &Aimed, cell: Option<&Cell>, why: Option<String>) -> Self {
        Self {
            system: system.to_owned(),
            task: task.to_owned(),
            plan: aimed.name.clone(),
            decoy: false,
            position: aimed.position,
            aims: aims(&aimed.plan),
            class: why.is_some().then_some(Class::NotInjected),
            delivered: false,
            flipped: false,
            run: cell.map(|cell| cell.run.clone()),
            ended: None,
            claim: None,
            fork_step: None,
            standing: None,
            executed: None,
            necessity: Vec::new(),
            why,
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

/// What stands for a plan that could not be drawn.
fn nothing() -> Aimed {
    let (injections, checks) = (Vec::new(), Vec::new());
    let plan = Plan {
        seed: 0,
        draws_of: None,
        settled: None,
        left_out: None,
        injections,
        checks,
        text: String::new(),
        digest: String::new(),
    };
    Aimed { name: "sample".to_owned(), plan, position: None }
}

fn aims(plan: &Plan) -> Vec<Aim> {
    let aim = |injection: &plan::Injection| Aim {
        agent: injection.agents.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
        mode: injection.failure_mode,
        side: match &injection.operator {
            Operator::Manipulator { side, .. } => Some(*side),
            Operator::Fault(_) => None,
        },
        operator: injection.name.clone(),
    };
    plan.injections.iter().map(aim).collect()
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
