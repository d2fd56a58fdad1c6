//! One cell, from its opening to the file that says that it is finished.

use std::{path::PathBuf, sync::Arc};

use super::{
    bench::{CellBench, CellCalls},
    cell::{Cell, CellKind},
    command::{CommandTemplate, Setting},
    definition::CampaignSystem,
    ended::{EndedCell, FORMAT, HowEnded, Ran},
    error::CampaignError,
    prefix::fork,
    rewriting::Rewriting,
};
use crate::{
    budget::Cost,
    dataset::Task,
    execution::{
        Console, ErrorOutput, ExecutedRun, Execution, ExecutionArm, ExecutionMeter, Executor, Halt, Judge, Program,
        TaskCheck,
    },
    launch::Ending,
    plan::Plan,
    proxy::upstream::Upstream,
    recording::{Recording, RunFile},
    replay::{Cassette, ForkPoint, Rules},
    trajectory::Void,
};

/// The longest part of what a program said last that an error shows, in characters.
const SAID_MAX: usize = 300;

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
        let (Some(executor), Some(system), Some(task)) = (
            self.systems.get(cell.system),
            self.context.campaign.systems.get(cell.system),
            self.context.campaign.tasks.get(cell.task),
        ) else {
            return Err(CampaignError::Lost);
        };
        let mut meter = Arc::<ExecutionMeter>::default();
        let executed = loop {
            let held = cell.reference().map(|reference| self.references.rules(reference));
            let executed = self.execute_cell(cell, executor, &meter, system, task).await?;
            self.state.mask_errors(&cell.run, &executor.listening().proxy.runs.template().recording.redactor)?;
            // Where clean runs agreed by chance in what differs from run to run, a later run shows it, and is executed again.
            if !self.learns_from(cell, &executed, held.as_ref())? {
                break executed;
            }
            meter = Arc::new(ExecutionMeter::in_place_of(&meter));
        };
        let how = match (executed.ending, executed.halt) {
            (_, Some(Halt::Budget | Halt::Price)) | (Ending::Interrupted, None) => return Ok(None),
            (_, Some(Halt::Calls)) => HowEnded::TooManyCalls,
            (_, Some(Halt::Diverged)) => HowEnded::Diverged,
            (Ending::Exited(code), None) => HowEnded::Exited(code),
            (Ending::Signalled(signal), None) => HowEnded::Signalled(signal),
            (Ending::TimedOut, None) => HowEnded::TimedOut,
        };
        if self.judge_is_out_of_money() {
            return Ok(None);
        }
        if system.in_order(how) {
            let _ = std::fs::remove_file(self.state.errors_of(&cell.run)?);
        }
        let ended = self.close(cell, how, executed, &meter)?;
        self.context.gate_after(&ended);
        Ok(Some(ended))
    }

    /// Whether a run that left its reference too early shows more of what is equal than held for it.
    fn learns_from(&self, cell: &Cell, executed: &ExecutedRun, held: Option<&Rules>) -> Result<bool, CampaignError> {
        let departure = executed.replay.as_ref().and_then(|report| report.diverged.as_ref());
        let (Some(departure), Some(reference), Some(held)) = (departure, cell.reference(), held) else {
            return Ok(false);
        };
        let cassette = self.references.open(&self.state, reference)?;
        Ok(self.references.learn_from_departure(cassette.recording(), &executed.recording, departure, held))
    }

    async fn execute_cell(
        &self,
        cell: &Cell,
        executor: &Executor,
        meter: &Arc<ExecutionMeter>,
        system: &CampaignSystem,
        task: &Task,
    ) -> Result<ExecutedRun, CampaignError> {
        let proxy = &executor.listening().proxy;
        let calls = CellCalls { salvage: self.state.salvage(&cell.run)?, gate: Arc::clone(&self.context.gate) };
        let calls = Arc::new(calls);
        let metered = |inner: &Arc<dyn Upstream>| {
            self.context.meter.metered(Arc::clone(inner), meter).hooked(Arc::<CellCalls>::clone(&calls))
        };
        let model = proxy.runs.model();
        let asking = model.map(|model| Arc::new(model.by_way_of(|inner| Arc::new(metered(inner)))));
        let (program, arm) = (self.program(cell, system, task)?, self.arm_of(cell)?);
        let check = TaskCheck {
            verify: self.context.campaign.verify.clone(),
            question: task.question.clone(),
            answer: task.answer.clone(),
            own: task.check.clone(),
            exit_codes: system.exit_codes.clone(),
        };
        let model =
            self.judge.as_ref().map(|judge| Arc::new(judge.transcript.for_execution(&cell.run)) as Arc<dyn Upstream>);
        let judge = Judge::Checkers(Box::new(check), model);
        let live: Arc<dyn Upstream> = Arc::new(metered(&proxy.upstream).at_most(system.max_calls));
        let execution = Execution::new(&cell.run, &program, arm, &judge);
        let execution = Execution { live: Some(live), asking, meter: Arc::clone(meter), ..execution };
        executor.execute(execution).await.map_err(|error| CampaignError::of_system(&system.name, error))
    }

    /// Who answers a cell's calls, and what is planted: a clean run by the live upstream alone, any other by the record of its
    /// reference up to where it leaves it. So all arms of a task begin alike by construction, and the beginning is paid for once.
    fn arm_of(&self, cell: &Cell) -> Result<ExecutionArm, CampaignError> {
        let plan = cell.plan().map(|aimed| Arc::new(aimed.plan.clone()));
        let Some(reference) = cell.reference() else { return Ok(ExecutionArm { plan, ..ExecutionArm::default() }) };
        let cassette = self.references.open(&self.state, reference)?;
        let arm = match fork(cell, &cassette) {
            Some(at) => self.forked(cell, &cassette, at, plan),
            None => ExecutionArm {
                plan,
                sentences: self.context.campaign.sentences_of(cell.system),
                ..ExecutionArm::default()
            },
        };
        // Executions that only repeat what they are repeats of need no draw of their own.
        Ok(match cell.perturbed().map(|(arm_name, number)| arm.any_draw(arm_name, number)) {
            Some(draw) => arm.perturbed(draw),
            None => arm,
        })
    }

    /// Whether neutral changes are left for an execution that no earlier one of its arm had.
    pub(super) fn has_a_draw(&self, cell: &Cell) -> Result<bool, CampaignError> {
        let (Some((name, number)), Some(reference)) = (cell.perturbed(), cell.reference()) else { return Ok(true) };
        let cassette = self.references.open(&self.state, reference)?;
        let Some(at) = fork(cell, &cassette) else { return Ok(true) };
        Ok(self.forked(cell, &cassette, at, None).draw(name, number).is_some())
    }

    /// A cell's arm that begins as its reference.
    fn forked(&self, cell: &Cell, cassette: &Arc<Cassette>, at: ForkPoint, plan: Option<Arc<Plan>>) -> ExecutionArm {
        let sentences = self.context.campaign.sentences_of(cell.system);
        sham(cell, ExecutionArm { sentences, ..ExecutionArm::forked(cassette, at, plan) })
    }

    /// Whether what stands where a cell leaves its reference takes neutral changes.
    pub(super) fn takes_changes(&self, cell: &Cell) -> Result<bool, CampaignError> {
        let Some(reference) = cell.reference() else { return Ok(false) };
        let cassette = self.references.open(&self.state, reference)?;
        Ok(fork(cell, &cassette).is_some_and(|at| ExecutionArm::forked(&cassette, at, None).takes_changes()))
    }

    fn program(&self, cell: &Cell, system: &CampaignSystem, task: &Task) -> Result<Program, CampaignError> {
        let words = || system.command.iter().chain(system.environment.values());
        let scratch =
            if words().any(CommandTemplate::wants_scratch) { self.state.scratch(&cell.run)? } else { PathBuf::new() };
        let setting = Setting { aegis: &self.program, scratch: &scratch };
        let environment = system.environment.iter().map(|(name, value)| (name.clone(), value.fill(task, setting)));
        let directory = system.directory.as_ref().map_or(self.directory.clone(), |name| self.directory.join(name));
        Ok(Program {
            command: system.command.iter().map(|word| word.fill(task, setting).into()).collect(),
            directory: Some(directory),
            environment: environment.collect(),
            limit: Some(system.timeout),
            console: Console { errors: ErrorOutput::File(self.state.begin_errors(&cell.run)?), ..Console::default() },
        })
    }

    /// A verdict that could not be paid for is none.
    fn judge_is_out_of_money(&self) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.meter.halt().is_some())
    }

    /// Writes what came of a run that has ended.
    fn close(
        &self,
        cell: &Cell,
        how: HowEnded,
        executed: ExecutedRun,
        meter: &ExecutionMeter,
    ) -> Result<EndedCell, CampaignError> {
        let ExecutedRun { recording, outcome, answer, label, replay, void, steps, took, .. } = executed;
        let (label, no_label) = match label {
            _ if cell.plan().is_none() => (None, None),
            Ok(label) => (Some(label), None),
            Err(why) => (None, Some(why)),
        };
        let prefix = replay.as_ref().map(|report| Cost {
            calls: report.served.len() as u64,
            input: report.saved.input,
            output: report.saved.output,
            ..Cost::default()
        });
        let (system, task) = self.names(cell)?;
        let ended = EndedCell {
            format: FORMAT,
            run: cell.run.clone(),
            system,
            task,
            kind: ran(cell),
            ending: how,
            in_order: self.context.campaign.systems.get(cell.system).is_some_and(|system| system.in_order(how)),
            outcome,
            answer,
            label,
            no_label,
            skipped_edits: recording.manipulator_failures.iter().map(|f| (f.operator.clone(), f.why.clone())).collect(),
            rewriting: Rewriting::from_recording(&recording),
            steps,
            upstream_failed: void == Some(Void::Unanswered),
            faults: faults(&recording),
            diverged: replay.and_then(|report| report.diverged).map(|departure| departure.to_string()),
            spent: meter.spent(),
            prefix: prefix.unwrap_or_default(),
            salvaged: meter.recalled(),
            limited: meter.limited(),
            seconds: took.as_secs_f64(),
            sitting: Some(self.sitting.clone()),
            learned: cell.reference().and_then(|reference| self.references.shown_later(reference)),
        };
        self.state.finish(&ended)?;
        Ok(ended)
    }

    /// The end of what a cell's program said on its standard error.
    pub(super) fn stderr_end(&self, cell: &Cell) -> String {
        let read = |path: PathBuf| RunFile::bytes(&path).map_err(|error| error.to_string());
        let text = match self.state.errors_of(&cell.run).map_err(|error| error.to_string()).and_then(read) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return format!("what it said on its standard error cannot be read: {error}"),
        };
        let skipped = text.trim().chars().count().saturating_sub(SAID_MAX);
        let said: String = text.trim().chars().skip(skipped).collect();
        if said.is_empty() { "it said nothing on its standard error".to_owned() } else { said }
    }
}

/// An arm of a sham with the change that the run without the plan got; any other arm as it is.
fn sham(cell: &Cell, arm: ExecutionArm) -> ExecutionArm {
    let CellKind::Sham { control_arm, control, .. } = &cell.kind else { return arm };
    let perturbation = arm.any_draw(control_arm.as_str(), *control);
    arm.sham(&perturbation)
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
        CellKind::Control { fork, index, perturbed, .. } => Ran::Control {
            reference: fork.reference.clone(),
            step: fork.step,
            replied: fork.replied,
            index: *index,
            perturbed: *perturbed,
        },
        CellKind::Sham { fork, control, index, .. } => Ran::Sham {
            reference: fork.reference.clone(),
            step: fork.step,
            replied: fork.replied,
            control: *control,
            index: *index,
        },
        CellKind::Without { of, planted, .. } => Ran::Without {
            of: of.clone(),
            injection: planted.injection,
            agent: planted.agent.clone(),
            instance: planted.instance,
        },
    }
}
