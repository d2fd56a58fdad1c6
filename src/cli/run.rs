//! `aegis run -- CMD`: a command as one recorded run.

mod arguments;
mod talk;

use crate::cli::printed::{PrintedRun, printed};
use std::{collections::BTreeMap, path::Path, sync::Arc};

use nix::sys::signal::Signal;

pub(super) use self::arguments::RunArgs;
use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    attribute::{self, JudgeArgs},
    client_verdict,
    config::Config,
    serve::monitoring::Monitoring,
    settings,
    settings::ProxyArgs,
    signals::number,
    trial,
};
use crate::{
    execution::{
        Console, ErrorOutput, ExecutedRun, Execution, ExecutionArm, ExecutionError, Executor, Judge, Meter, Program,
        unrunnable,
    },
    launch::{Echo, Ending},
    plan,
    proxy::{Proxy, ProxyError},
    recording::{self, Masked, Recording},
    ruling::NoLabel,
    surface::{
        self,
        account::{self, RunAccount},
    },
    trajectory::{Label, Outcome, RunId, Step, Unserved, Verdict, WatchSign, unanswered, unserved},
    verdict::{self, ClientVerdict, Judgement},
};

/// What a run came to.
#[derive(Debug)]
struct ConcludedRun {
    run: RunId,
    dir: std::path::PathBuf,
    steps: u32,
    /// Steps that passed uninspected.
    uninspected: u32,
    /// Steps by the API that they speak, where that is recorded and not read.
    unread: BTreeMap<String, usize>,
    /// How many steps were read, whether or not a surface reads their calls.
    account: RunAccount,
    /// What was not read of the first step that a surface reads, and not whole.
    not_whole: Vec<String>,
    /// Requests that looked at what the provider keeps, or took it away: they are no steps.
    fetches: u32,
    ending: Ending,
    over_budget: bool,
    /// The signal that interrupted it.
    interrupted: Option<Signal>,
    outcome: Outcome,
    label: Result<Label, NoLabel>,
    planned: bool,
    /// Whether a check was to tell the outcome.
    checked: bool,
    /// Why no call got an answer, if none did, and who should have given it.
    unserved: Option<(Unserved, String)>,
    /// Calls that the upstream left without an answer.
    unanswered: usize,
    /// Agents of the configuration that no step is of, while steps are of agents that nobody named.
    unmet: Vec<String>,
    /// What kept the plan's injections from every step, where nothing was delivered: one line each.
    missed: Vec<String>,
    /// How the program met the plan's faults, if it has any.
    client: Option<ClientVerdict>,
    /// What the rules that watched it saw.
    watched: Vec<WatchSign>,
}

pub(super) fn run(arguments: &RunArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let id = match &arguments.run {
        Some(name) => RunId::parse(name).map_err(|error| Failure::new(Exit::Usage, error))?,
        None => settings::fresh_run_id(),
    };
    let limit = settings::time_limit(arguments.timeout)?;
    let junit = client_verdict::junit_file(arguments.junit.as_deref())?;
    if arguments.attributes() && arguments.check.is_none() {
        let error = "a failure is attributed where a check says that the run failed, and no check is named";
        return Err(Failure::new(Exit::Usage, error).hint("--check 'CMD'"));
    }
    // A name that no method has is no reason to run anything.
    arguments.attributing(Path::new(""), JudgeArgs::default()).check()?;
    let equality = arguments.matching.equality()?.setting();
    let asked = ProxyArgs { logprobs: arguments.ask_logprobs, equality, ..arguments.planned.on(&arguments.proxy) };
    let (mut proxy, config) = asked.proxy(Some(id.clone()))?;
    arguments.watch.apply(&mut proxy, &config)?;
    let there = arguments.proxy.log_dir(&config).join(id.as_str());
    if arguments.overwrite && there.exists() {
        recording::discard(&there)?;
    }
    if !global.quiet {
        arguments.proxy.say_destination(&config);
    }
    let echo = if global.format == OutputFormat::Json { Echo::Stderr } else { Echo::Stdout };
    let program = Program {
        command: arguments.command.clone(),
        limit,
        console: Console { reads: true, echo, errors: ErrorOutput::Ours },
        ..Program::default()
    };
    let meter = arguments.budget.meter()?;
    let monitoring = Monitoring::from_config(&config, proxy.upstream.name(), false)?;
    let executed = settings::block_on(async {
        let monitored = monitoring.start(&proxy.runs);
        let executed = execute(proxy, &id, &program, arguments, meter).await;
        monitored.end().await;
        executed
    })??;
    let concluded = ConcludedRun::from_executed(executed, arguments, &config);
    if !global.quiet {
        concluded.talk(global.color);
    }
    let attribution = attributed(&concluded, arguments, &config, global);
    let (run, recorded) = (concluded.run.clone(), concluded.dir.clone());
    let mut finished = concluded.finish();
    if let Some(file) = junit {
        let verdict = verdict::read(&recording::read(&recorded)?);
        let failed = (finished.exit != Exit::Ok).then(|| format!("{}: {}", finished.exit.word(), finished.summary));
        file.write_aloud(&Masked::new(verdict::junit(run.as_str(), &verdict, failed.as_deref())))?;
    }
    if let (Some(fields), Some(attribution)) = (finished.data.as_object_mut(), attribution) {
        fields.insert("attribution".to_owned(), attribution);
    }
    Ok(finished)
}

/// What the log of a failed run says, where that was asked for. A judge that cannot be asked changes nothing about the run.
fn attributed(
    concluded: &ConcludedRun,
    arguments: &RunArgs,
    config: &Config,
    global: &Global,
) -> Option<serde_json::Value> {
    if !arguments.attributes() || concluded.outcome.verdict != Verdict::Failure || concluded.steps == 0 {
        return None;
    }
    let asked = || recording::read(&concluded.dir).ok().and_then(|recording| attribute::model_of(&recording));
    let judge = JudgeArgs::of_upstream(
        arguments.proxy.upstream_url(config),
        arguments.attribute_model.clone().or_else(asked),
        config.upstream.key_env.clone(),
        arguments.proxy.log_dir(config),
        arguments.proxy.config.clone(),
    );
    let judge = judge.with_parameters(arguments.attribute_parameter.clone());
    let arguments = arguments.attributing(&concluded.dir, judge);
    match attribute::after(&arguments, global) {
        Ok(rows) => Some(rows),
        Err(failure) => {
            talkln!("{failure}");
            None
        }
    }
}

async fn execute(
    proxy: Proxy,
    id: &RunId,
    program: &Program,
    arguments: &RunArgs,
    meter: Arc<Meter>,
) -> Result<ExecutedRun, Failure> {
    let baseline = arguments.baseline.as_deref().map(|dir| arguments.matching.open(dir, true)).transpose()?;
    let reference_calls = baseline.map(|baseline| baseline.reference_calls());
    let arm = ExecutionArm { plan: proxy.runs.template().plan.clone(), reference_calls, ..ExecutionArm::default() };
    let executor = Executor::start(Arc::new(proxy), trial::stop()).await.map_err(trial::failed)?;
    let judge = Judge::of_command(arguments.check.as_deref());
    let mut execution = Execution::new(id, program, arm, &judge);
    // What nothing bounds passes as it comes.
    if arguments.budget.is_given() {
        execution = execution.paid_by(&meter, &executor.listening().proxy);
    }
    let executed = executor.execute(execution).await;
    executor.stop().await;
    executed.map_err(|error| match error {
        ExecutionError::Proxy(error) => unopened(error),
        ExecutionError::Launch(error) => Failure::new(Exit::Usage, error)
            .hint("is it installed, spelt so, and on PATH? try the command without `aegis run`"),
        error => trial::failed(error),
    })
}

impl ConcludedRun {
    fn from_executed(executed: ExecutedRun, arguments: &RunArgs, config: &Config) -> Self {
        let recorded = &executed.recording;
        let planned = recorded.manifest.plan.is_some();
        let client = planned.then(|| verdict::read(recorded)).filter(ClientVerdict::is_planned);
        let over_budget = executed.is_over_budget();
        // What the budget refused did not reach the upstream.
        let unserved = unserved(&recorded.trajectory.steps).filter(|_| !over_budget);
        let unserved = unserved.map(|why| (why, recorded.manifest.upstream.clone()));
        let unanswered = unanswered(&recorded.trajectory.steps);
        let missed = if executed.label == Err(NoLabel::NotInjected) { missed(recorded) } else { Vec::new() };
        Self {
            run: executed.run,
            dir: executed.dir,
            steps: executed.steps,
            uninspected: executed.uninspected,
            unread: unread(&recorded.trajectory.steps),
            account: RunAccount::from_steps(&recorded.trajectory.steps),
            not_whole: not_whole(&recorded.trajectory.steps),
            fetches: executed.fetches,
            over_budget,
            ending: executed.ending,
            interrupted: executed.interrupted,
            outcome: executed.outcome,
            label: executed.label,
            planned,
            checked: arguments.check.is_some(),
            unserved,
            unanswered,
            unmet: unmet(&recorded.trajectory.steps, config),
            missed,
            client,
            watched: executed.recording.watched,
        }
    }
}

/// How many calls of a run no surface reads, by what they are.
fn unread(steps: &[Step]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::<String, usize>::new();
    for step in steps.iter().filter(|step| surface::is_unread(&step.surface)) {
        *counts.entry(step.surface.clone()).or_default() += 1;
    }
    counts
}

/// What was not read of the first step that a surface reads, and not whole: a line a piece.
fn not_whole(steps: &[Step]) -> Vec<String> {
    let of_surface = steps.iter().filter(|step| surface::named(&step.surface).is_some());
    let said = |step: &Step| {
        let lines = account::of_step(step).lines().into_iter();
        lines.map(|line| format!("step {}: {line}", step.step)).collect::<Vec<_>>()
    };
    of_surface.map(said).find(|lines| !lines.is_empty()).unwrap_or_default()
}

/// Agents of the configuration that no step is of, where steps are of agents that nobody named: their rules may be wrong.
fn unmet(steps: &[Step], config: &Config) -> Vec<String> {
    if !steps.iter().any(|step| step.attribution.agent.hash_of_unnamed().is_some()) {
        return Vec::new();
    }
    let names = config.agent.iter().filter_map(|rule| rule.name.clone());
    names.filter(|name| !steps.iter().any(|step| step.attribution.agent.as_str() == name)).collect()
}

/// What kept each injection of a run's plan from every step.
fn missed(recorded: &Recording) -> Vec<String> {
    let plan = recorded.manifest.plan.as_deref().and_then(|text| plan::parse(text, "run.json").ok());
    let matched = plan.and_then(|plan| plan::against(&plan, &recorded.trajectory).ok()).unwrap_or_default();
    let miss = |one: plan::Matched| Some(format!("injection {} met no step: {}", one.injection, one.nearest_miss?));
    matched.into_iter().filter_map(miss).collect()
}

/// Why the run cannot be opened, and what to type.
fn unopened(error: ProxyError) -> Failure {
    let sealed = matches!(error, ProxyError::Sealed(_));
    let failure = Failure::new(Exit::unopened(&error), error);
    if sealed { failure.hint("another `--run NAME` keeps it; `--overwrite` replaces it") } else { failure }
}

impl ConcludedRun {
    fn exit(&self) -> Exit {
        match (self.ending, &self.outcome) {
            _ if self.interrupted.is_some() => Exit::Signal(self.interrupted.map_or(2, number)),
            _ if self.steps == 0 || matches!(self.unserved, Some((Unserved::Unreachable, _))) => Exit::Infrastructure,
            _ if self.over_budget => Exit::Budget,
            _ if unrunnable(&self.outcome).is_some() => Exit::Usage,
            _ if self.stopped().is_some() => Exit::Finding,
            (Ending::TimedOut, _) => Exit::Finding,
            (_, outcome) if outcome.verdict == Verdict::Failure => Exit::Finding,
            // A check that cannot tell is no success.
            (_, outcome) if self.checked && outcome.verdict == Verdict::Unknown => Exit::Finding,
            _ if self.client.as_ref().is_some_and(|client| client.result != Judgement::Passed) => Exit::Finding,
            _ if self.planned && self.client.is_none() && self.was_not_injected() => Exit::Finding,
            _ => Exit::Ok,
        }
    }

    /// Whether an injection of the plan was never delivered.
    fn was_not_injected(&self) -> bool {
        matches!(self.label, Err(NoLabel::NotInjected | NoLabel::ManipulatorFailed))
    }

    /// The sign that stopped it.
    fn stopped(&self) -> Option<&WatchSign> {
        self.watched.iter().find(|sign| sign.stops)
    }

    /// How the command failed by itself, in words.
    fn failed(&self) -> Option<String> {
        match self.ending {
            Ending::Exited(code) if code != 0 => Some(format!("ended with {code}")),
            Ending::Signalled(signal) => Some(format!("was ended by signal {signal}")),
            Ending::TimedOut => Some("timed out (--timeout)".to_owned()),
            _ => None,
        }
    }

    fn finish(self) -> Finished {
        let verdict = match self.outcome.verdict {
            Verdict::Success => "success",
            Verdict::Failure => "failure",
            Verdict::Unknown => "unknown",
        };
        let label = match (&self.label, self.planned) {
            (Ok(label), _) => {
                let named = label.errors.iter().map(|entry| {
                    let error = &entry.error;
                    format!("{} at step {}", error.agent.numbered(error.instance), error.step)
                });
                format!("  label delivered: {}", named.collect::<Vec<_>>().join(", "))
            }
            (Err(why), true) => format!("  no label: {why}"),
            (Err(_), false) => String::new(),
        };
        let data = printed(&PrintedRun {
            run: &self.run,
            run_dir: &self.dir,
            steps: self.steps,
            uninspected: self.uninspected,
            unread: &self.unread,
            account: &self.account,
            fetches: self.fetches,
            unanswered: self.unanswered,
            outcome: &self.outcome,
            label: self.label.as_ref().ok(),
            no_label: self.label.as_ref().err(),
            client: &self.client,
            watched: &self.watched,
            attribution: None,
        });
        let client = self.client.as_ref().map(|client| format!("  client {}", client.result.name()));
        let client = client.unwrap_or_default();
        let uninspected =
            if self.uninspected > 0 { format!("  {} uninspected", self.uninspected) } else { String::new() };
        let account: Vec<String> =
            self.account.counted().into_iter().map(|counted| "  ".to_owned() + &counted).collect();
        let account = account.concat();
        let fetches = if self.fetches > 0 { format!("  {} fetches", self.fetches) } else { String::new() };
        let unanswered = if self.unanswered > 0 { format!("  {} unanswered", self.unanswered) } else { String::new() };
        let ended = self.failed().filter(|_| !self.checked || self.ending == Ending::TimedOut);
        let ended = ended.map(|ended| format!(": {ended}")).unwrap_or_default();
        let over = if self.over_budget { ": ended by the budget" } else { "" };
        let watched = match (self.stopped(), self.watched.len()) {
            (Some(sign), _) => format!("  stopped by {} at step {}", sign.rule, sign.step),
            (None, 0) => String::new(),
            (None, signs) => format!("  {signs} signs of trouble"),
        };
        let summary = format!(
            "{}  {} steps{uninspected}{account}{fetches}{unanswered}  outcome {verdict}{ended}{over}{label}{client}{watched}",
            self.run, self.steps
        );
        Finished { exit: self.exit(), summary, data }
    }
}
