//! `aegis test PLAN… -- CMD`: plans × program, and whether the program survives each: for CI.

pub(super) mod allowed;
mod annotate;
mod baseline;
mod choice;
mod report;
mod tested;

use crate::cli::printed::{PrintedTest, TestedPlan, printed};
use std::{ffi::OsString, ops::ControlFlow, path::PathBuf, sync::Arc, time::Instant};

use clap::Args;

use self::{
    allowed::{allowed, defect_rule},
    baseline::BaselineRun,
    choice::{ChosenPlan, TestName, choose, place},
    tested::{PlannedRun, TestedRun},
};
use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    asking::{self, AskingArgs},
    budget::BudgetArgs,
    client_verdict,
    config::Config,
    ending,
    matching::MatchArgs,
    output::{OutputFile, Replaces, ReportKind},
    progress::ShownProgress,
    servers::ServerArgs,
    settings::{self, ProxyArgs},
    signals::number,
    terminal,
    trial::{self, JudgedProgram},
};
use crate::{
    campaign::Progress,
    equality::EqualitySetting,
    execution::{Console, ErrorOutput, ExecutionError, Executor, Judge, Meter, Program, SystemUnderTest},
    launch::Echo,
    proxy::Proxy,
    recording::Masked,
    replay::Rules,
    trajectory::{RunId, Verdict},
    verdict::{FindingKind, Strictness, SurvivalResult},
    viewer::{self, ViewerLibrary},
};

/// Options of `test`.
#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Plans: files, ready-made plans (`rate-limit`) or folders of plans (`faults`).
    #[arg(required = true, value_name = "PLAN")]
    plans: Vec<String>,
    /// Name of the test and of its directory of recordings. Draws depend only on it, the plan's name and the run's
    /// number: a red run stays red.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Runs per plan, each with its own draws.
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Command that judges the outcome, run by `sh -c` with the program's output on standard input and `AEGIS_RUN_DIR`
    /// set. Exit code 0: success; 1: failure; other: unknown. Default: the program's exit code; 0: unknown; other:
    /// failure.
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Timeout of a run in seconds; the run then fails.
    #[arg(long, default_value_t = 300.0, value_name = "S", value_parser = super::settings::seconds)]
    timeout: f64,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Replace existing recordings of a test of this name.
    #[arg(long)]
    overwrite: bool,
    /// Accept findings of this rule, for example `crashed`; repeatable. Adds to `[test] allow` of aegis.toml.
    #[arg(long = "allow", value_name = "RULE", value_parser = defect_rule)]
    allow: Vec<String>,
    /// Accept inconclusive runs.
    #[arg(long)]
    allow_inconclusive: bool,
    /// Fail if a plan does not apply to the program (no tools, no streams, too few calls).
    #[arg(long)]
    strict: bool,
    /// Runs in parallel. Draws do not depend on it; programs may interfere with each other.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,
    /// Skip the run without a plan, which distinguishes retries from repeated questions.
    #[arg(long)]
    no_baseline: bool,
    /// Write a `JUnit` report. Red if and only if the exit code is not 0.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the page of `aegis view` for all runs as one file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print findings as GitHub annotations (`::error …`). Default if `GITHUB_ACTIONS` is `true`.
    #[arg(long)]
    github: bool,
    /// Upstream: http://…, https://… or `simulator`. Default: [upstream] of aegis.toml, `OPENAI_BASE_URL`, the public
    /// API.
    #[arg(long, env = "AEGIS_UPSTREAM", value_name = "URL")]
    upstream: Option<String>,
    /// Directory for recordings, in a subdirectory for the test.
    #[arg(long, env = "AEGIS_LOG_DIR", value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Configuration file. Default: ./aegis.toml.
    #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Seed of the simulator.
    #[arg(long, default_value_t = 7, value_name = "N")]
    simulator_seed: u64,
    /// PEM file of additional certificates to trust.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    matching: MatchArgs,
    #[command(flatten)]
    asking: AskingArgs,
    /// Command to execute.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The reports that a test writes; earlier ones are replaced.
struct TestFiles<'a> {
    junit: Option<OutputFile<'a>>,
    html: Option<OutputFile<'a>>,
}

impl<'a> TestFiles<'a> {
    fn named(arguments: &'a TestArgs) -> Result<Self, Failure> {
        let html = arguments.html.as_deref();
        let html = html.map(|path| OutputFile::named(path, Replaces::Earlier(ReportKind::Page))).transpose()?;
        Ok(Self { junit: client_verdict::junit_file(arguments.junit.as_deref())?, html })
    }
}

/// What was executed.
struct TestedProgram {
    baseline: Option<BaselineRun>,
    runs: Vec<TestedRun>,
    signal: Option<u8>,
}

/// How a test executes its runs.
struct Conduct<'a> {
    meter: Arc<Meter>,
    /// The name of the run without a plan.
    baseline: Option<RunId>,
    allowed: &'a [String],
    /// What may differ in requests that ask the same.
    rules: Rules,
    jobs: u32,
}

/// What a test came to.
struct ConcludedTest {
    name: TestName,
    dir: PathBuf,
    plans: Vec<ChosenPlan>,
    /// The runs that were made, in their order; fewer than planned where one said that all are in vain.
    runs: Vec<TestedRun>,
    planned: usize,
    /// The program without a plan.
    baseline: Option<BaselineRun>,
    strictness: Strictness,
    /// When it began, RFC 3339.
    began: String,
    seconds: f64,
    /// The signal that ended it.
    signal: Option<u8>,
}

pub(super) fn run(arguments: &TestArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let files = TestFiles::named(arguments)?;
    let plans = choose(&arguments.plans)?;
    let name = TestName::parse(arguments.name.as_deref())?;
    let planned = name.runs(&plans, arguments.runs)?;
    let config = Config::load(arguments.config.as_deref())?;
    let mut wanted = arguments.proxy_args();
    let baseline = name.baseline().map_err(|error| Failure::new(Exit::Usage, error))?;
    let dir = place(&wanted.log_dir(&config), &name, &planned, arguments.overwrite)?;
    let allowed = allowed(&arguments.allow, &config)?;
    wanted.log_dir = Some(dir.clone());
    let rules = arguments.matching.equality()?;
    wanted.equality = rules.setting();
    let (proxy, config) = wanted.proxy_of(config, None)?;
    if let Some(plan) = plans.iter().find(|plan| plan.plan.asks_model() && proxy.runs.model().is_none()) {
        return Err(asking::unnamed(&format!("the plan `{}`", plan.name)));
    }
    if !global.quiet {
        wanted.say_destination(&config);
    }
    let (echo, errors) = match (global.verbose, global.format) {
        (0, _) => (Echo::Silent, ErrorOutput::Beside),
        (_, OutputFormat::Json) => (Echo::Stderr, ErrorOutput::Ours),
        (_, OutputFormat::Text) => (Echo::Stdout, ErrorOutput::Ours),
    };
    let program = Program {
        command: arguments.command.clone(),
        limit: settings::time_limit(Some(arguments.timeout))?,
        console: Console { echo, errors, ..Console::default() },
        ..Program::default()
    };
    let meter = arguments.budget.meter()?;
    let how = Conduct {
        meter,
        baseline: Some(baseline).filter(|_| !arguments.no_baseline),
        allowed: &allowed,
        rules,
        jobs: arguments.jobs,
    };
    let system = JudgedProgram { program, judge: Judge::of_command(arguments.check.as_deref()) };
    let (begun, began) = (Instant::now(), jiff::Timestamp::now().to_string());
    let TestedProgram { baseline, runs, signal } = settings::block_on(conduct(proxy, system, &planned, &how, global))??;
    let concluded = ConcludedTest {
        name,
        dir,
        plans,
        runs,
        planned: planned.len(),
        baseline,
        strictness: Strictness { strict: arguments.strict, allow_inconclusive: arguments.allow_inconclusive },
        began,
        seconds: begun.elapsed().as_secs_f64(),
        signal,
    };
    let finished = concluded.finish();
    concluded.write(arguments, &files, &finished, global)?;
    Ok(finished)
}

impl TestArgs {
    fn proxy_args(&self) -> ProxyArgs {
        ProxyArgs {
            logprobs: false,
            servers: ServerArgs::default(),
            no_websocket: false,
            upstream: self.upstream.clone(),
            plan: None,
            log_dir: self.log_dir.clone(),
            config: self.config.clone(),
            simulator_seed: self.simulator_seed,
            ca_file: self.ca_file.clone(),
            asking: self.asking.clone(),
            later_roster: Vec::new(),
            equality: EqualitySetting::default(),
        }
    }
}

/// Makes the runs: the one without a plan first, then, one after the other unless more are asked for, the planned ones.
async fn conduct(
    proxy: Proxy,
    JudgedProgram { program, judge }: JudgedProgram,
    planned: &[PlannedRun],
    how: &Conduct<'_>,
    global: &Global,
) -> Result<TestedProgram, Failure> {
    let stop = trial::stop();
    let executor = Executor::start(Arc::new(proxy), stop.clone()).await.map_err(trial::failed)?;
    let system = SystemUnderTest::new(executor, Arc::new(program), judge);
    let progress = ShownProgress::new(global);
    let mut baseline = None;
    if let Some(run) = &how.baseline {
        let (run, arm) = baseline::arm(run.clone());
        let executed = system.execute(&run, arm, &how.meter).await.map_err(unstarted)?;
        let made = BaselineRun::from_execution(executed, &how.rules);
        if !made.is_in_vain() {
            progress.say(&made.line());
        }
        baseline = Some(made);
    }
    let asked = baseline.as_ref().filter(|baseline| !baseline.is_in_vain()).map(|baseline| &baseline.calls);
    progress.stage("test", planned.len());
    let begun = Instant::now();
    let (mut runs, mut waiting) = (Vec::new(), planned.iter());
    let ended = |executed| {
        let Some(planned_run) = waiting.next() else { return ControlFlow::Break(()) };
        let run = planned_run.came_to(executed, how.allowed);
        let number = u32::try_from(runs.len() + 1).unwrap_or(u32::MAX);
        let left = begun.elapsed() / number * u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        progress.advance(0);
        progress.say(&report::line(&run, number, planned.len(), left));
        let in_vain = stop.borrow().is_some() || run.is_in_vain();
        runs.push(run);
        if in_vain { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    if stop.borrow().is_none() {
        let jobs = usize::try_from(how.jobs).unwrap_or(1);
        let arms = planned.iter().map(|planned| planned.arm(asked));
        system.execute_each(arms, jobs, &how.meter, ended).await.map_err(unstarted)?;
    }
    progress.end();
    system.executor.stop().await;
    let signal = stop.borrow().map(number);
    Ok(TestedProgram { baseline, runs, signal })
}

fn unstarted(error: ExecutionError) -> Failure {
    match error {
        ExecutionError::Launch(error) => Failure::new(Exit::Usage, error)
            .hint("is it installed, spelt so, and on PATH? try the command without `aegis test`"),
        error => trial::failed(error),
    }
}

impl ConcludedTest {
    /// The exit code and the last line, from one value.
    fn finish(&self) -> Finished {
        let counts = [
            SurvivalResult::Passed,
            SurvivalResult::Failed,
            SurvivalResult::Inconclusive,
            SurvivalResult::Skipped,
            SurvivalResult::Void,
        ];
        let counts =
            counts.map(|result| (result, self.runs.iter().filter(|run| run.survival.result == result).count()));
        let told: Vec<String> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(result, count)| format!("{count} {}", result.name()))
            .collect();
        let plans = if self.plans.len() == 1 { "1 plan".to_owned() } else { format!("{} plans", self.plans.len()) };
        let left = self.planned - self.runs.len();
        let not_made = if left > 0 { format!(", {left} not made") } else { String::new() };
        // A program's own exit code 0 is no proof that it did its work.
        let unjudged =
            self.runs.iter().filter(|run| run.survival.is_passed() && run.outcome.verdict == Verdict::Unknown);
        let unjudged = match unjudged.count() {
            0 => String::new(),
            count => format!("; outcome unknown of {count}: without --check nobody judged what they did"),
        };
        let fails = self.baseline.as_ref().filter(|baseline| baseline.has_failed() && !baseline.is_in_vain());
        let fails = if fails.is_some() { "; the program also failed without a plan" } else { "" };
        let summary =
            format!("{}  {plans}, {} runs: {}{not_made}{unjudged}{fails}", self.name, self.planned, told.join(", "));
        let exit = self.exit();
        Finished { exit, data: printed(&self.data()), summary }
    }

    fn exit(&self) -> Exit {
        let has = |kind| self.runs.iter().any(|run| run.survival.has(kind));
        match self.signal {
            Some(signal) => Exit::Signal(signal),
            None if has(FindingKind::CheckBroken) => Exit::Usage,
            None if self.runs.iter().any(|run| run.over_budget) => Exit::Budget,
            None if has(FindingKind::NoCall) || has(FindingKind::Unanswered) => Exit::Infrastructure,
            None if self.runs.iter().all(|run| self.strictness.accepts(run.survival.result)) => Exit::Ok,
            None => Exit::Finding,
        }
    }

    fn data(&self) -> PrintedTest<'_> {
        let plans = self.plans.iter().map(|plan| TestedPlan {
            plan: &plan.name,
            from: &plan.from,
            about: &plan.description,
            runs: self.runs.iter().filter(|run| run.plan == plan.name).map(TestedRun::data).collect(),
        });
        PrintedTest {
            test: self.name.as_str(),
            dir: &self.dir,
            seconds: self.seconds,
            baseline: self.baseline.as_ref().map(BaselineRun::data),
            plans: plans.collect(),
            planned: self.planned,
            made: self.runs.len(),
        }
    }

    /// Writes what was asked for: the report, files, annotations.
    fn write(
        &self,
        arguments: &TestArgs,
        files: &TestFiles<'_>,
        finished: &Finished,
        global: &Global,
    ) -> Result<(), Failure> {
        let json = global.format == OutputFormat::Json;
        if !json {
            ending::write_painted(global, |out| report::write(self, global.verbose > 0, out))?;
        }
        let mut junit = files.junit.iter();
        junit.try_for_each(|file| file.write_aloud(&Masked::new(report::junit(self, finished))))?;
        if let Some(file) = &files.html {
            let made = viewer::bundle(&ViewerLibrary::new(vec![self.dir.clone()]));
            file.write_aloud(&made.map_err(|error| Failure::new(Exit::Usage, error))?.html)?;
        }
        if arguments.github || std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true") {
            let text = annotate::annotations(self, finished);
            let to: &mut dyn std::io::Write = if json { &mut terminal::stderr() } else { &mut terminal::stdout() };
            to.write_all(text.as_bytes()).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
        Ok(())
    }
}
