//! `aegis fork RUN --at STEP -- CMD`: what would have happened. Recorded up to a step, another reply there, live from it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde_json::json;

use super::{
    Exit, Failure, Finished, Format, Global, escape, replay::MatchArgs, run::interrupted, settings, settings::ProxyArgs,
};
use crate::{
    attribution::{Bench, Command, Sample, Share, TrialError},
    launch::{Echo, Ending},
    plan::{self, Plan},
    proxy::Proxy,
    replay::{AtFork, Cassette, ForkPoint, NoReply, emptied, reworded},
    trajectory::{RunId, Side, Step, StepIndex, Verdict},
};

/// Options of `fork`.
#[derive(Debug, Args)]
pub(super) struct ForkArgs {
    /// The recorded run's directory.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
    /// The step at which the run leaves its record. Without it: the first that the plan, or the recorded injection,
    /// applies to.
    #[arg(long, value_name = "STEP", required_unless_present_any = ["plan", "drop_injection"])]
    at: Option<StepIndex>,
    /// Give the step the text of this file as its reply; or a whole reply, if the file holds one (JSON).
    #[arg(long, value_name = "FILE", group = "edit")]
    replace: Option<PathBuf>,
    /// Give the step an empty reply.
    #[arg(long, group = "edit")]
    empty: bool,
    /// Give the step what the upstream said before an injection edited it; ask anew, if its request was edited.
    #[arg(long, group = "edit")]
    drop_injection: bool,
    /// Give the step its recorded reply, and ask anew only after it: what chance alone does.
    #[arg(long, group = "edit")]
    keep: bool,
    /// How many times.
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    #[command(flatten)]
    matching: MatchArgs,
    #[command(flatten)]
    proxy: ProxyArgs,
    #[command(flatten)]
    trial: TrialArgs,
    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How a command is executed again and judged.
#[derive(Debug, Clone, Args)]
pub(super) struct TrialArgs {
    /// Command that judges the outcome: run by `sh -c`, the child's output on its standard input, `AEGIS_RUN_DIR` set.
    /// Exit code 0 is success, 1 failure, anything else unknown.
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Seconds after which the command is ended.
    #[arg(long, value_name = "S")]
    timeout: Option<f64>,
    /// Executions at once. More than 1 only for programs that do not get into each other's way.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) jobs: u32,
}

impl TrialArgs {
    /// The command as a system that can be executed again. Call it on a runtime: it listens for signals.
    pub(super) fn system(
        &self,
        command: &[OsString],
        proxy: &Proxy,
        echo: Echo,
        hush: bool,
    ) -> Result<Command, Failure> {
        let (told, stop) = tokio::sync::watch::channel(false);
        tokio::spawn(async move {
            interrupted().await;
            told.send_replace(true);
        });
        Ok(Command {
            command: command.to_vec(),
            check: self.check.clone(),
            limit: settings::time_limit(self.timeout)?,
            echo,
            hush,
            run_header: proxy.identity.hints.run_header.clone(),
            stop,
        })
    }
}

/// How a verb ends that cannot make its trials.
pub(super) fn failed(error: TrialError) -> Failure {
    match error {
        TrialError::Proxy(error) => Failure::new(super::run::recording_exit(&error), error),
        TrialError::Recording(error) => error.into(),
        TrialError::Listen(_) | TrialError::Lost | TrialError::Line(_) => Failure::new(Exit::Infrastructure, error),
        TrialError::Interrupted => Failure::new(Exit::Signal(2), error),
        TrialError::Launch(_) | TrialError::NoSuchStep(_) => Failure::new(Exit::Usage, error),
    }
}

/// The live upstream of a fork: what was said, else the simulator where the record was made on it.
pub(super) fn live(proxy: &ProxyArgs, cassette: &Cassette) -> ProxyArgs {
    let simulated = cassette.recording().manifest.upstream == "simulator";
    let upstream = proxy.upstream.clone().or_else(|| simulated.then(|| "simulator".to_owned()));
    ProxyArgs { upstream, plan: None, ..proxy.clone() }
}

pub(super) fn run(arguments: &ForkArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let cassette = arguments.matching.open(&arguments.dir)?;
    let plan = arguments.proxy.plan.as_deref().map(|path| resolved(path, &cassette)).transpose()?.map(Arc::new);
    let (proxy, _) = live(&arguments.proxy, &cassette).proxy(None)?;
    let runs: Vec<RunId> = (0..arguments.samples).map(|_| settings::fresh_run_id()).collect();
    let mut forks = Vec::new();
    for run in runs {
        let fork = fork_point(arguments, &cassette, plan.as_deref(), &run)?;
        forks.push((run, fork));
    }
    if !global.quiet
        && let Some((_, fork)) = forks.first()
    {
        eprintln!(
            "fork     {} at step {}: earlier model calls come from the record; tools and all they do run again",
            arguments.dir.display(),
            fork.step
        );
    }
    let samples = settings::block_on(conduct(Arc::new(proxy), &cassette, plan, forks, arguments, global))??;
    Ok(finish(&samples))
}

async fn conduct(
    proxy: Arc<Proxy>,
    cassette: &Arc<Cassette>,
    plan: Option<Arc<Plan>>,
    forks: Vec<(RunId, ForkPoint)>,
    arguments: &ForkArgs,
    global: &Global,
) -> Result<Vec<Sample>, Failure> {
    let echo = if global.format == Format::Json { Echo::Stderr } else { Echo::Stdout };
    let system = arguments.trial.system(&arguments.command, &proxy, echo, false)?;
    let bench = Arc::new(Bench::start(proxy, Arc::new(system)).await.map_err(failed)?);
    let places = Arc::new(tokio::sync::Semaphore::new(arguments.trial.jobs as usize));
    let mut running = tokio::task::JoinSet::new();
    for (number, (run, fork)) in forks.into_iter().enumerate() {
        let mut prefixed = bench.prefix(cassette, fork).map_err(|error| failed(error.into()))?;
        if arguments.matching.any_tool_results() {
            prefixed = prefixed.with_any_tool_results();
        }
        let (bench, places, plan) = (Arc::clone(&bench), Arc::clone(&places), plan.clone());
        running.spawn(async move {
            let _place = places.acquire().await;
            (number, bench.sample(&run, prefixed, plan).await)
        });
    }
    let mut samples = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (number, sample) = ended.map_err(|_| failed(TrialError::Lost))?;
        let sample = sample.map_err(failed)?;
        if !global.quiet {
            say(number, &sample);
        }
        samples.push((number, sample));
    }
    samples.sort_by_key(|(number, _)| *number);
    Ok(samples.into_iter().map(|(_, sample)| sample).collect())
}

/// Reads a plan; what counts in a recorded run is counted in this one.
fn resolved(path: &Path, cassette: &Cassette) -> Result<Plan, Failure> {
    let plan = super::plan::read(path)?;
    let called = |step: &Step| plan::Called {
        agent: step.attribution.agent.as_str().to_owned(),
        instance: step.attribution.instance,
        call: step.call,
        step: step.step,
    };
    let calls: Vec<_> = cassette.recording().trajectory.steps.iter().map(called).collect();
    plan::resolve(&plan, &calls).map_err(|error| Failure::new(Exit::Usage, error))
}

/// Where a run leaves its record, and what it gets there.
fn fork_point(
    arguments: &ForkArgs,
    cassette: &Cassette,
    plan: Option<&Plan>,
    run: &RunId,
) -> Result<ForkPoint, Failure> {
    let no_reply = |error: NoReply| Failure::new(Exit::Usage, error);
    let steps = &cassette.recording().trajectory.steps;
    let injected = steps.iter().find(|step| {
        step.injected.iter().any(|error| error.delivered) && arguments.at.is_none_or(|at| at == step.step)
    });
    if arguments.drop_injection {
        let step = injected.ok_or_else(|| {
            let place = arguments.at.map(|at| format!(" at step {at}")).unwrap_or_default();
            Failure::new(Exit::Usage, format!("the run has no delivered injection{place}"))
        })?;
        let edited = step.injected.iter().any(|error| error.side == Side::Request && error.failure_mode.is_some());
        let at = if edited { AtFork::Live } else { AtFork::Recorded };
        return Ok(ForkPoint { step: step.step, at });
    }
    if let (Some(plan), None) = (plan, arguments.at) {
        return ForkPoint::of_plan(cassette, plan, run).ok_or_else(|| {
            Failure::new(Exit::Usage, "the plan applies to no step of the recorded run")
                .hint("aegis plan check FILE --against RUN_DIR says what kept it from each")
        });
    }
    let at = arguments.at.unwrap_or_default();
    let step = steps.iter().find(|step| step.step == at).ok_or_else(|| {
        let last = steps.last().map(|step| step.step).unwrap_or_default();
        Failure::new(Exit::Usage, format!("step {at} is not in the record: expected 0 to {last}"))
    })?;
    let at = if let Some(file) = &arguments.replace {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display())))?;
        AtFork::Instead(reworded(step, text.trim_end_matches('\n')).map_err(no_reply)?)
    } else if arguments.empty {
        AtFork::Instead(emptied(step).map_err(no_reply)?)
    } else if arguments.keep {
        AtFork::Delivered
    } else if plan.is_some() {
        AtFork::Recorded
    } else {
        AtFork::Live
    };
    Ok(ForkPoint { step: step.step, at })
}

fn say(number: usize, sample: &Sample) {
    let Sample { tried, report } = sample;
    let verdict = format!("{:?}", tried.outcome.verdict).to_lowercase();
    eprintln!(
        "sample {number:<2} {}  {} recorded, {} live  outcome {verdict}",
        tried.dir.display(),
        report.served.len(),
        report.live.len()
    );
    if let Some(departure) = &report.diverged {
        eprintln!("  diverged before the fork point: {}", escape(&departure.to_string()));
    }
    for served in report.served.iter().filter(|served| served.fit == crate::replay::Fit::ToolResults) {
        eprintln!("  step {}: results of tools differ from the record", served.step);
    }
}

fn finish(samples: &[Sample]) -> Finished {
    let diverged = samples.iter().filter(|sample| sample.report.diverged.is_some()).count();
    let judged = samples.iter().filter(|sample| sample.report.diverged.is_none());
    let count = |verdict| judged.clone().filter(|sample| sample.tried.outcome.verdict == verdict).count();
    let (successes, failures) = (count(Verdict::Success), count(Verdict::Failure));
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let share = Share { successes: number(successes), samples: number(successes + failures) };
    let (input, output) = samples.iter().fold((0, 0), |(input, output), sample| {
        (input + sample.report.saved.input, output + sample.report.saved.output)
    });
    let interrupted = samples.iter().any(|sample| sample.tried.ending == Ending::Interrupted);
    let no_call = samples.iter().all(|sample| sample.tried.steps == 0);
    let exit = match () {
        () if interrupted => Exit::Signal(2),
        () if no_call => Exit::Infrastructure,
        () if diverged > 0 || failures > 0 => Exit::Finding,
        () => Exit::Ok,
    };
    let interval = share.wilson();
    let summary = format!(
        "{successes} of {} succeeded [{:.2}, {:.2}]  {diverged} diverged  {} tokens from the record",
        share.samples,
        interval.low,
        interval.high,
        input + output
    );
    let data = samples.iter().map(|sample| {
        let tried = &sample.tried;
        json!({
            "run": tried.run, "run_dir": tried.dir, "steps": tried.steps, "outcome": tried.outcome,
            "label": tried.label.as_ref().ok(), "report": sample.report,
        })
    });
    let data = json!({
        "samples": data.collect::<Vec<_>>(), "successes": successes, "judged": share.samples, "interval": interval,
        "diverged": diverged, "tokens_from_record": {"input": input, "output": output},
    });
    Finished { exit, summary, data }
}
