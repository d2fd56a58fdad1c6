//! `aegis fork RUN --at STEP -- CMD`: what would have happened. Recorded up to a step, another reply there, live from it.

use crate::cli::printed::{ForkSample, PrintedFork, SuccessInterval, TokenSum, printed};
use std::{
    fmt::Write,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;

use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    again::HowStarted,
    escape,
    matching::MatchArgs,
    screen,
    settings::{self, PlannedArgs},
    signals::number,
    trial::{ExecuteArgs, JudgedProgram, cannot_check, failed, live, say_execution},
};
use crate::{
    execution::{Console, ErrorOutput, ExecutedRun, ExecutionArm, Judge, unrunnable},
    launch::Echo,
    plan::{self, Plan},
    proof::{self, ProofSample},
    proxy::Proxy,
    replay::{AtFork, Cassette, ForkPoint, NoReply, emptied, reworded},
    trajectory::{Executions, RunId, Side, Step, StepIndex, Void},
};

/// Options of `fork`.
#[derive(Debug, Args)]
pub(super) struct ForkArgs {
    /// Directory of the recorded run.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
    /// Step at which the run leaves its recording. Default: where the plan or the recorded injection first applies.
    #[arg(long, value_name = "STEP", required_unless_present_any = ["plan", "drop_injection"])]
    at: Option<StepIndex>,
    /// Replace the step's reply by this file: its text, or a whole reply (JSON).
    #[arg(long, value_name = "FILE", group = "edit")]
    replace: Option<PathBuf>,
    /// Replace the step's reply by an empty one.
    #[arg(long, group = "edit")]
    empty: bool,
    /// Restore the upstream's reply, before the injection edited it. Asks again if the request was edited.
    #[arg(long, group = "edit")]
    drop_injection: bool,
    /// Keep the step's recorded reply and ask again after it, to show the effect of chance.
    #[arg(long, group = "edit")]
    keep: bool,
    /// Number of executions.
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    #[command(flatten)]
    matching: MatchArgs,
    #[command(flatten)]
    planned: PlannedArgs,
    #[command(flatten)]
    execute: ExecuteArgs,
}

pub(super) fn run(arguments: &ForkArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let cassette = arguments.matching.open(&arguments.dir, global.quiet)?;
    let plan = arguments.planned.plan.as_deref().map(|path| resolved(path, &cassette)).transpose()?.map(Arc::new);
    let (recorded, execute) = (HowStarted::read(&arguments.dir)?, &arguments.execute);
    let program = recorded.required(&execute.command, execute.again, "fork")?;
    let judge = execute.trial.judge(&recorded, execute.again)?;
    let checked = judge.is_some();
    let planned = arguments.planned.on(&arguments.execute.proxy);
    let live = live(&planned, execute.again, &cassette, &arguments.dir)?;
    say_execution(&recorded, execute.again, &live, global.quiet);
    let (proxy, _) = live.proxy(None)?;
    let runs: Vec<RunId> = (0..arguments.samples).map(|_| settings::fresh_run_id()).collect();
    let mut forks = Vec::new();
    for run in runs {
        let fork = fork_point(arguments, &cassette, plan.as_deref(), &run)?;
        forks.push((run, fork));
    }
    if !global.quiet
        && let Some((_, fork)) = forks.first()
    {
        talkln!(
            "fork     {} at step {}: earlier model calls come from the record; tools and all they do run again",
            arguments.dir.display(),
            fork.step
        );
    }
    let samples = settings::block_on(conduct(
        proxy,
        JudgedProgram { program, judge: judge.unwrap_or(Judge::End) },
        &cassette,
        plan,
        forks,
        arguments,
        global,
    ))??;
    if let Some(said) = samples.iter().find_map(|sample| unrunnable(&sample.outcome)) {
        return Err(cannot_check(&said));
    }
    Ok(finish(&samples, checked))
}

async fn conduct(
    proxy: Proxy,
    executed: JudgedProgram,
    cassette: &Arc<Cassette>,
    plan: Option<Arc<Plan>>,
    forks: Vec<(RunId, ForkPoint)>,
    arguments: &ForkArgs,
    global: &Global,
) -> Result<Vec<ExecutedRun>, Failure> {
    let echo = if global.format == OutputFormat::Json { Echo::Stderr } else { Echo::Stdout };
    let console = Console { echo, errors: ErrorOutput::Ours, ..Console::default() };
    let meter = arguments.execute.budget.meter()?;
    let reference = arguments.matching.reference(global.quiet);
    let system = arguments.execute.system(executed, proxy, console, reference).await?;
    let arms = forks.into_iter().map(|(run, at)| (run, ExecutionArm::forked(cassette, at, plan.clone())));
    let mut samples = Vec::new();
    let ended = |sample| {
        if !global.quiet {
            say(samples.len(), &sample);
        }
        samples.push(sample);
        ControlFlow::Continue(())
    };
    system.execute_each(arms, arguments.execute.trial.jobs as usize, &meter, ended).await.map_err(failed)?;
    Ok(samples)
}

/// Reads a plan; what counts in a recorded run is counted in this one.
fn resolved(path: &Path, cassette: &Cassette) -> Result<Plan, Failure> {
    let plan = super::plan::read(path)?;
    let called = |step: &Step| plan::RecordedCall {
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
                .hint("`aegis plan check FILE --against RUN_DIR` says what kept it from each")
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

fn say(number: usize, sample: &ExecutedRun) {
    let Some(report) = &sample.replay else { return };
    let verdict = format!("{:?}", sample.outcome.verdict).to_lowercase();
    let replaced = report.served.iter().filter(|served| served.replaced).count();
    let replaced_words = if replaced > 0 { format!("{replaced} replaced, ") } else { String::new() };
    let mut lines = vec![format!(
        "sample {number:<2} {}  {} recorded, {replaced_words}{} live  outcome {verdict}",
        sample.dir.display(),
        report.served.len() - replaced,
        report.live.len()
    )];
    if let Some(departure) = &report.diverged {
        lines.push(format!("  diverged before the fork point: {}", escape(&departure.to_string())));
    }
    for served in report.served.iter().filter(|served| served.fit == crate::replay::Fit::ToolResults) {
        lines.push(format!("  step {}: results of tools differ from the record", served.step));
    }
    screen::say_at_once(&lines.join("\n"));
}

fn finish(samples: &[ExecutedRun], checked: bool) -> Finished {
    let counted = proof::counted(&samples.iter().map(ExecutedRun::sample).collect::<Vec<_>>());
    let diverged = counted.void.get(&Void::Diverged).copied().unwrap_or_default();
    let (judged, interval) = (counted.passed + counted.failed, counted.tally().interval());
    let saved = || samples.iter().filter_map(|sample| Some(&sample.replay.as_ref()?.saved));
    let (input, output) =
        (saved().map(|saved| saved.input).sum::<u64>(), saved().map(|saved| saved.output).sum::<u64>());
    let exit = exit(samples, &counted, checked);
    let mut summary = if judged == 0
        && !checked
        && counted.voids() == counted.void.get(&Void::NoVerdict).copied().unwrap_or_default()
    {
        format!("{} executed, not judged: there is no --check", samples.len())
    } else {
        format!("{} of {judged} succeeded [{:.2}, {:.2}]", counted.passed, interval.0, interval.1)
    };
    for (why, count) in counted.void.iter().filter(|(why, _)| checked || **why != Void::NoVerdict) {
        let _ = write!(summary, "  {count} {}", why.words());
    }
    let _ = write!(summary, "  {} tokens from the record", input + output);
    let data = samples.iter().map(|sample| {
        let void = if let ProofSample::Void(why) = sample.sample() { Some(why) } else { None };
        ForkSample {
            run: &sample.run,
            run_dir: &sample.dir,
            steps: sample.steps,
            outcome: &sample.outcome,
            void,
            label: sample.label.as_ref().ok(),
            report: &sample.replay,
        }
    });
    let data = printed(&PrintedFork {
        samples: data.collect(),
        successes: counted.passed,
        judged,
        interval: SuccessInterval { low: interval.0, high: interval.1 },
        void: &counted.void,
        diverged,
        tokens_from_record: TokenSum { input, output },
    });
    Finished { exit, summary, data }
}

/// A fork of which nothing is known is not well, whatever kept it from being known.
fn exit(samples: &[ExecutedRun], counted: &Executions, checked: bool) -> Exit {
    let void = |why: Void| counted.void.get(&why).copied().unwrap_or_default();
    let no_call = samples.iter().all(|sample| sample.steps == 0);
    match () {
        () if let Some(signal) = samples.iter().find_map(|sample| sample.interrupted) => Exit::Signal(number(signal)),
        () if no_call => Exit::Infrastructure,
        () if counted.passed + counted.failed == 0 && void(Void::Unanswered) > 0 => Exit::Infrastructure,
        () if void(Void::Budget) > 0 => Exit::Budget,
        () if counted.failed > 0 => Exit::Finding,
        () if counted.voids() > void(Void::NoVerdict) || (checked && void(Void::NoVerdict) > 0) => Exit::Finding,
        () => Exit::Ok,
    }
}
