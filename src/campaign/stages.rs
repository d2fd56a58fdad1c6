//! The campaign's way: clean runs, injected runs, what shows their claims, labels.

use std::{path::PathBuf, sync::Arc, time::Instant};

use tokio::sync::watch;

use super::{
    Progress,
    bench::{CellBench, Judge, ServedSystem, Slots},
    budget::Ledger,
    cell::Cell,
    definition::Campaign,
    ended::{Class, EndedCell, HowEnded},
    error::CampaignError,
    file::Repeatable,
    funnel::{Aim, Concluded, InjectedRun, LeftOut, TaskState},
    gate::CellGate,
    metered::House,
    prefix::References,
    report::CampaignReport,
    sample,
    state::{CampaignState, Earlier},
    treatment::Aimed,
};
use crate::{
    equality::{Parting, Rules, Told, parting},
    plan::{self, Operator, Plan},
    proxy::{Proxy, upstream::Upstream},
    recording,
    replay::{ForkPoint, told},
    trajectory::{Side, Step, Unserved, Verdict, unserved},
};

/// Why a plan that no call of the reference meets is not run: the run would be the reference.
const NO_CALL: &str = "it meets no call of the reference run";

/// How a campaign is run.
#[derive(Debug)]
pub struct CampaignOptions {
    /// Where everything goes.
    pub out: PathBuf,
    /// What becomes of what lies there.
    pub earlier: Earlier,
    /// Cells at once.
    pub jobs: usize,
    /// Only these tasks: `TASK`, or `SYSTEM/TASK`, with `*` for any text; all if none.
    pub only: Vec<regex::Regex>,
    /// Where a model judge is asked; the first system's upstream if none.
    pub judge: Option<Arc<dyn Upstream>>,
    /// This program, for `{aegis}`.
    pub program: PathBuf,
    /// What paths of the campaign file are relative to.
    pub directory: PathBuf,
    /// Set when the campaign is to stop.
    pub stop: watch::Receiver<bool>,
}

/// Runs a campaign. `proxies` are one a system, in order, and record under `out/logs`.
///
/// # Errors
/// [`CampaignError`]; what a cell comes to is no error.
pub async fn run(
    campaign: Arc<Campaign>,
    proxies: Vec<Proxy>,
    options: CampaignOptions,
    progress: &dyn Progress,
) -> Result<(Concluded, CampaignReport), CampaignError> {
    let began = Instant::now();
    let state = CampaignState::open(&options.out, options.earlier)?;
    let ledger = Arc::new(Ledger::new(&campaign.budget, Some(state.journal()?)));
    let gate = Arc::new(CellGate::new(options.jobs));
    let house = Arc::new(House { campaign: Arc::clone(&campaign), ledger, gate });
    let mut systems = Vec::new();
    let backend = proxies.first().map(|proxy| proxy.upstream.name().to_owned()).unwrap_or_default();
    for proxy in proxies {
        systems.push(ServedSystem::start(proxy).await?);
    }
    let judge = match systems.first().filter(|_| campaign.asks_a_judge()) {
        Some(first) => {
            let upstream = options.judge.unwrap_or_else(|| Arc::clone(&first.proxy.upstream));
            Some(Judge::at(upstream, &house, &state)?)
        }
        None => None,
    };
    let CampaignOptions { only, program, directory, stop, .. } = options;
    let (references, slots) = (References::default(), Slots::default());
    let bench = Arc::new(CellBench { house, systems, state, references, slots, judge, program, directory, stop });
    let mut concluded = Concluded::default();
    let references = bench.clean(&only, &mut concluded, progress).await?;
    let cells = bench.inject(&references, &mut concluded, progress).await?;
    bench.prove(&cells, &mut concluded, progress).await?;
    bench.sum_up(&mut concluded);
    bench.write_labels(&concluded)?;
    progress.done(&bench.write_dataset(&concluded)?);
    let report = CampaignReport::of(&campaign, &concluded, &backend, began.elapsed().as_secs_f64());
    bench.write_report(&report)?;
    Ok((concluded, report))
}

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
    /// Makes the clean runs, and says which tasks are to be gone on with.
    async fn clean(
        self: &Arc<Self>,
        only: &[regex::Regex],
        concluded: &mut Concluded,
        progress: &dyn Progress,
    ) -> Result<Vec<Reference>, CampaignError> {
        let campaign = &self.house.campaign;
        let mut cells = Vec::new();
        for (system, named) in campaign.systems.iter().enumerate() {
            for (task, _) in campaign.chosen(&named.name, only) {
                cells.extend((0..campaign.clean).map(|repeat| Cell::clean(campaign, system, task, repeat)));
            }
        }
        let ended = self.stage("clean", &cells, progress).await?;
        let mut references = Vec::new();
        let repeats = usize::try_from(campaign.clean).unwrap_or(usize::MAX);
        for (cells, ended) in cells.chunks(repeats).zip(ended.chunks(repeats)) {
            let Some(first) = cells.first() else { continue };
            for ended in ended.iter().flatten() {
                count(concluded, ended);
            }
            let state = self.task_state(first, ended)?;
            if state.reference.is_some() {
                references.push(Reference { cell: first.clone(), nth: first.task });
            }
            concluded.tasks.push(state);
        }
        concluded.unfinished += ended.iter().filter(|ended| ended.is_none()).count();
        self.refuse_silence(&cells, &ended)?;
        progress.done(&concluded.clean_line());
        Ok(references)
    }

    /// What the clean runs of a task say of it.
    fn task_state(&self, first: &Cell, ended: &[Option<EndedCell>]) -> Result<TaskState, CampaignError> {
        let (system, task) = self.names(first)?;
        let finished: Vec<&EndedCell> = ended.iter().flatten().collect();
        let passed = finished.iter().filter(|ended| ended.passed()).count();
        let defect = finished.iter().find_map(|ended| ended.defect());
        let unchecked = finished.iter().any(|ended| ended.outcome.verdict == Verdict::Unknown);
        let all = finished.len() == ended.len();
        let repeatable = passed < ended.len() || self.is_repeatable(&finished)?;
        let left_out = match defect {
            _ if !all => Some(LeftOut::Unfinished),
            Some(Class::InfraError) => Some(LeftOut::InfraError),
            Some(Class::Timeout) => Some(LeftOut::Timeout),
            Some(_) => Some(LeftOut::Crashed),
            None if unchecked => Some(LeftOut::Unchecked),
            None if passed == 0 => Some(LeftOut::Unsolved),
            None if passed < ended.len() => Some(LeftOut::FlakyTask),
            None if !repeatable && self.house.campaign.repeatable == Repeatable::Require => Some(LeftOut::Unrepeatable),
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
            left_out,
            why,
            repeatable,
        })
    }

    /// What a run that did not pass came to: an upstream that answered nothing says more than what the program made of it.
    fn why(&self, ended: &EndedCell) -> String {
        let told = ended.in_words(self.house.campaign.verify.answer.as_ref());
        let recorded = recording::read(&self.state.run_dir(&ended.run)).ok();
        match recorded.and_then(|recorded| unserved(&recorded.trajectory.steps)) {
            Some(Unserved::Refused(status)) => format!("the upstream answered every call with {status}; {told}"),
            Some(Unserved::Unreachable) => format!("no call reached the upstream; {told}"),
            None => told,
        }
    }

    /// Whether clean runs asked the same questions where they had got the same replies: the first difference may be the
    /// backend's, and all that follows may differ for that.
    fn is_repeatable(&self, runs: &[&EndedCell]) -> Result<bool, CampaignError> {
        let rules = Rules::default();
        let mut first: Option<Vec<Told>> = None;
        for run in runs {
            let this = told(&recording::read(&self.state.run_dir(&run.run))?, &rules);
            let Some(first) = &first else {
                first = Some(this);
                continue;
            };
            if matches!(parting(first, &this), Some(Parting::Asked(_) | Parting::Missing(_))) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A system whose programs never reach the proxy is set up wrongly: going on would prove nothing.
    fn refuse_silence(&self, cells: &[Cell], ended: &[Option<EndedCell>]) -> Result<(), CampaignError> {
        for (number, system) in self.house.campaign.systems.iter().enumerate() {
            let mine = || cells.iter().zip(ended).filter(|(cell, _)| cell.system == number);
            let finished: Vec<&EndedCell> = mine().filter_map(|(_, ended)| ended.as_ref()).collect();
            if let (Some((cell, _)), true) = (mine().next(), finished.iter().all(|ended| ended.steps == 0))
                && !finished.is_empty()
            {
                let late = finished.iter().all(|ended| ended.ending == HowEnded::TimedOut);
                let limit = system.timeout.as_secs_f64();
                let late = if late {
                    format!("all runs were ended after `timeout_s` = {limit} first; ")
                } else {
                    String::new()
                };
                let said = format!("{late}{}", self.said(cell));
                return Err(CampaignError::NoCall { system: system.name.clone(), said });
            }
        }
        Ok(())
    }

    /// Makes the injected runs of every reference.
    async fn inject(
        self: &Arc<Self>,
        references: &[Reference],
        concluded: &mut Concluded,
        progress: &dyn Progress,
    ) -> Result<Vec<Option<Cell>>, CampaignError> {
        let mut cells: Vec<Option<Cell>> = Vec::new();
        for reference in references {
            let (system, task) = self.names(&reference.cell)?;
            let cassette = self.references.open(&self.state, &reference.cell.run)?;
            for (planned, repeats) in self.plans(reference, &cassette.recording().trajectory.steps) {
                let (aimed, why) = match planned {
                    Ok(aimed) => (aimed, None),
                    Err((aimed, why)) => (aimed, Some(why)),
                };
                let aimed = Arc::new(aimed);
                for repeat in 0..repeats {
                    let cell = Cell::injected(&self.house.campaign, &reference.cell, &aimed, repeat);
                    let fork = ForkPoint::of_plan(&cassette, &aimed.plan, &cell.run);
                    let why = why.clone().or_else(|| fork.is_none().then(|| NO_CALL.to_owned()));
                    concluded.attempts.push(InjectedRun {
                        system: system.clone(),
                        task: task.clone(),
                        plan: aimed.name.clone(),
                        position: aimed.position,
                        aims: aims(&aimed.plan),
                        class: why.is_some().then_some(Class::NotInjected),
                        delivered: false,
                        flipped: false,
                        run: why.is_none().then(|| cell.run.clone()),
                        ended: None,
                        claim: None,
                        fork_step: None,
                        standing: None,
                        executed: None,
                        necessity: Vec::new(),
                        why: why.clone(),
                    });
                    cells.push(why.is_none().then_some(cell));
                }
            }
        }
        let runs: Vec<Cell> = cells.iter().flatten().cloned().collect();
        let mut ended = self.stage("inject", &runs, progress).await?.into_iter();
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
        progress.done(&concluded.injected_line());
        Ok(cells)
    }

    /// The plans that a task is tried with, and how often; with why one cannot be.
    fn plans(&self, reference: &Reference, steps: &[Step]) -> Vec<PlannedTask> {
        let campaign = &self.house.campaign;
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

    fn sum_up(&self, concluded: &mut Concluded) {
        concluded.spent = self.house.ledger.spent();
        concluded.exhausted = self.house.ledger.is_exhausted();
        concluded.stopped = *self.stop.borrow();
        concluded.lowest_jobs = self.house.gate.lowest();
    }
}

/// Adds a finished cell to the sums.
pub(super) fn count(concluded: &mut Concluded, ended: &EndedCell) {
    concluded.spent_by_cells.add(&ended.spent);
    concluded.prefix.add(&ended.prefix);
    concluded.salvaged += ended.salvaged;
}

impl InjectedRun {
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
            Operator::Manipulator { side: Side::Request, .. } => Some("request"),
            Operator::Manipulator { side: Side::Response, .. } => Some("response"),
            Operator::Fault(_) => None,
        },
        operator: injection.name.clone(),
    };
    plan.injections.iter().map(aim).collect()
}
