//! One cell, from its opening to the file that says that it is finished.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use super::{
    bench::{CellBench, ServedSystem},
    cell::{Cell, CellKind},
    command::Setting,
    definition::CampaignSystem,
    ended::{EndedCell, FORMAT, HowEnded, Ran},
    error::CampaignError,
    judge::{self, Left},
    metered::{CellMeter, Halt, Metered},
    prefix::ArmUpstream,
    rewriting::Rewriting,
    salvage::Salvage,
};
use crate::{
    dataset::Task,
    launch::{Ending, Launch, environment},
    proxy::{Run, RunSetup, upstream::Upstream},
    recording::{self, Recording},
    ruling::{self, NoLabel},
    trajectory::{Label, Outcome, Reason, Verdict, ended_by_upstream},
};

/// The longest part of what a program said last that an error shows, in characters.
const SAID_MAX: usize = 300;

/// What is known of a run when its program has ended.
struct Closing<'a> {
    how: HowEnded,
    judged: (Outcome, String),
    meter: &'a CellMeter,
    arm: &'a ArmUpstream,
    took: Duration,
}

impl CampaignSystem {
    /// Whether the program ended as it does when nothing is wrong with it.
    fn in_order(&self, how: HowEnded) -> bool {
        matches!(how, HowEnded::Exited(code) if self.exit_codes.contains(&code))
    }
}

impl CellBench {
    /// Runs a cell; `None` if it could not be finished: stopped, or beyond the budget.
    ///
    /// # Errors
    /// What ends the whole campaign.
    pub(super) async fn conduct(&self, cell: &Cell) -> Result<Option<EndedCell>, CampaignError> {
        if let Some(ended) = self.finished(&cell.run)? {
            return Ok(Some(ended));
        }
        let (Some(served), Some(system), Some(task)) = (
            self.systems.get(cell.system),
            self.house.campaign.systems.get(cell.system),
            self.house.campaign.tasks.get(cell.task),
        ) else {
            return Err(CampaignError::Lost);
        };
        let began = Instant::now();
        let meter = Arc::new(CellMeter::default());
        let salvage = Arc::new(self.state.salvage(&cell.run)?);
        let metered = |inner: &Arc<dyn Upstream>, most| self.metered(inner, &meter, &salvage, most);
        let live = metered(&served.proxy.upstream, Some(system.max_calls));
        let arm = ArmUpstream::of(&self.references, &self.state, cell, live, &meter)?;
        let plan = cell.plan().map(|aimed| Arc::new(aimed.plan.clone()));
        let model = served.proxy.runs.model();
        let asking = model.map(|model| Arc::new(model.by_way_of(|inner| metered(inner, None))));
        let setup = RunSetup { plan, upstream: Some(arm.upstream()), asking, ..RunSetup::default() };
        let run = served.proxy.runs.open(&cell.run, setup).await?;
        if let Some(words) = run.plan.as_ref().and_then(|plan| plan.repeats()) {
            run.recorder.note(&words);
        }
        let launch = self.launch(cell, served, system, task)?;
        let (errors, directory) = (launch.errors.clone(), launch.directory.clone().unwrap_or_default());
        let ended = launch.run(self.until_stopped(&meter)).await.map_err(|source| {
            served.proxy.runs.retire_run(&cell.run);
            CampaignError::Launch { system: system.name.clone(), source }
        })?;
        served.proxy.runs.retire_run(&cell.run);
        self.state.mask_errors(&cell.run, &served.proxy.runs.template().recording.redactor)?;
        let how = match (ended.ending, meter.halt()) {
            (_, Some(Halt::Budget | Halt::Price)) | (Ending::Interrupted, None) => return Ok(None),
            (_, Some(Halt::Calls)) => HowEnded::TooManyCalls,
            (_, Some(Halt::Diverged)) => HowEnded::Diverged,
            (Ending::Exited(code), None) => HowEnded::Exited(code),
            (Ending::Signalled(signal), None) => HowEnded::Signalled(signal),
            (Ending::TimedOut, None) => HowEnded::TimedOut,
        };
        let recording = recording::read(run.dir())?;
        let left = Left {
            stdout: &ended.output,
            directory: &directory,
            trajectory: &recording.trajectory,
            run_dir: run.dir(),
        };
        let judged = self.verdict(how, system, task, left).await;
        if self.judge_is_out_of_money() {
            return Ok(None);
        }
        let arm = Closing { how, judged, meter: &meter, arm: &arm, took: began.elapsed() };
        let ended = self.close(cell, arm, &run, recording)?;
        if let (true, Some(errors)) = (system.in_order(how), errors) {
            let _ = std::fs::remove_file(errors);
        }
        self.house.gate_after(&ended);
        Ok(Some(ended))
    }

    /// A live upstream as a cell sees it: the program's, or that of the model that manipulators ask.
    fn metered(
        &self,
        inner: &Arc<dyn Upstream>,
        meter: &Arc<CellMeter>,
        salvage: &Arc<Salvage>,
        max_calls: Option<u64>,
    ) -> Arc<dyn Upstream> {
        Arc::new(Metered {
            inner: Arc::clone(inner),
            house: Arc::clone(&self.house),
            meter: Arc::clone(meter),
            salvage: Arc::clone(salvage),
            max_calls,
        })
    }

    fn launch(
        &self,
        cell: &Cell,
        served: &ServedSystem,
        system: &CampaignSystem,
        task: &Task,
    ) -> Result<Launch, CampaignError> {
        let words = || system.command.iter().chain(system.environment.values());
        let scratch = if words().any(super::command::CommandTemplate::wants_scratch) {
            self.state.scratch(&cell.run)?
        } else {
            PathBuf::new()
        };
        let setting = Setting { aegis: &self.program, scratch: &scratch };
        let command = system.command.iter().map(|word| word.fill(task, setting).into()).collect();
        let header = &served.proxy.identity.hints.run_header;
        let mut variables = environment(&served.origin, &cell.run, header);
        variables.extend(system.environment.iter().map(|(name, value)| (name.clone(), value.fill(task, setting))));
        let directory = system.directory.as_ref().map_or(self.directory.clone(), |name| self.directory.join(name));
        Ok(Launch {
            environment: variables,
            directory: Some(directory),
            limit: Some(system.timeout),
            input: Some(Vec::new()),
            errors: Some(self.state.begin_errors(&cell.run)?),
            ..Launch::of(command)
        })
    }

    /// Resolves when the program is to be ended: we were asked to stop, or the cell may spend no more.
    async fn until_stopped(&self, meter: &CellMeter) -> Signal {
        let mut stop = self.stop.clone();
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => {}
            () = meter.halted() => {}
        }
        Signal::SIGTERM
    }

    async fn verdict(&self, how: HowEnded, system: &CampaignSystem, task: &Task, left: Left<'_>) -> (Outcome, String) {
        let by_itself = |reason, evidence: &str| {
            (Outcome { verdict: Verdict::Failure, reason: Some(reason), evidence: evidence.to_owned() }, String::new())
        };
        match how {
            HowEnded::TimedOut => by_itself(Reason::Timeout, "the program ran out of time"),
            HowEnded::TooManyCalls => by_itself(Reason::Timeout, "the program made more model calls than it may"),
            HowEnded::Diverged => by_itself(Reason::Exit, "the program left the beginning that it was to share"),
            HowEnded::Exited(_) if system.in_order(how) => {
                judge::judge(&self.house.campaign, task, left, self.judge.as_ref().map(|judge| &judge.transcript)).await
            }
            HowEnded::Exited(code) => by_itself(Reason::Exit, &format!("the program exited with {code}")),
            HowEnded::Signalled(signal) => {
                by_itself(Reason::Exit, &format!("the program was ended by signal {signal}"))
            }
        }
    }

    /// A verdict that could not be paid for is none.
    fn judge_is_out_of_money(&self) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.meter.halt().is_some())
    }

    /// Seals the run, derives its label and writes what came of it.
    fn close(
        &self,
        cell: &Cell,
        closing: Closing<'_>,
        run: &Run,
        mut recording: Recording,
    ) -> Result<EndedCell, CampaignError> {
        let Closing { how, judged: (outcome, answer), meter, arm, took } = closing;
        run.recorder.set_outcome(outcome.clone())?;
        run.recorder.seal()?;
        recording.trajectory.outcome = outcome.clone();
        let (label, no_label) = match self.ruled(cell, run)? {
            Some(Ok(label)) => (Some(label), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let (system, task) = self.names(cell)?;
        let ended = EndedCell {
            format: FORMAT,
            run: cell.run.clone(),
            system,
            task,
            kind: ran(cell),
            ending: how,
            in_order: self.house.campaign.systems.get(cell.system).is_some_and(|system| system.in_order(how)),
            outcome,
            answer,
            label,
            no_label,
            unmade: recording.manipulator_failures.iter().map(|f| (f.operator.clone(), f.why.clone())).collect(),
            rewriting: Rewriting::of(&recording),
            steps: run.steps(),
            upstream_failed: recording.trajectory.steps.iter().any(ended_by_upstream),
            faults: faults(&recording),
            diverged: arm.diverged(),
            spent: meter.spent(),
            prefix: arm.served(),
            salvaged: meter.salvaged(),
            limited: meter.limited(),
            seconds: took.as_secs_f64(),
        };
        self.state.finish(&ended)?;
        Ok(ended)
    }

    /// What is ruled of the label of a sealed run; `None` where nothing was to be planted.
    fn ruled(&self, cell: &Cell, run: &Run) -> Result<Option<Result<Label, NoLabel>>, CampaignError> {
        if cell.plan().is_none() {
            return Ok(None);
        }
        let reference = cell.reference().map(|reference| self.references.open(&self.state, reference)).transpose()?;
        Ok(Some(ruling::settle(run.dir(), reference.as_ref().map(|cassette| cassette.bare()))?))
    }

    /// The end of what a cell's program said on its standard error.
    pub(super) fn said(&self, cell: &Cell) -> String {
        let read = |path| std::fs::read(path).map_err(|error| error.to_string());
        let text = match self.state.errors_of(&cell.run).map_err(|error| error.to_string()).and_then(read) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return format!("what it said on its standard error cannot be read: {error}"),
        };
        let skipped = text.trim().chars().count().saturating_sub(SAID_MAX);
        let said: String = text.trim().chars().skip(skipped).collect();
        if said.is_empty() { "it said nothing on its standard error".to_owned() } else { said }
    }
}

/// Whether a planted fault, which never makes a label, was delivered.
fn faults(recording: &Recording) -> bool {
    let planted = recording.trajectory.steps.iter().flat_map(|step| &step.injected);
    planted.into_iter().any(|error| error.delivered && error.is_fault())
}

fn ran(cell: &Cell) -> Ran {
    match &cell.kind {
        CellKind::Clean { repeat } => Ran::Clean { repeat: *repeat },
        CellKind::Injected { aimed, repeat, reference } => {
            Ran::Injected { plan: aimed.name.clone(), repeat: *repeat, reference: reference.clone() }
        }
        CellKind::Again { of, index, .. } => Ran::Again { of: of.clone(), index: *index },
        CellKind::Null { fork, index } => {
            Ran::Null { reference: fork.reference.clone(), step: fork.step, replied: fork.replied, index: *index }
        }
        CellKind::Without { of, planted, .. } => Ran::Without {
            of: of.clone(),
            injection: planted.injection,
            agent: planted.agent.clone(),
            instance: planted.instance,
        },
    }
}
