//! What `fork`, `trace` and `prove` have in common: a recorded run's program is executed again, and judged.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;

use super::{
    Exit, Failure,
    again::{AgainArgs, HowStarted},
    budget::BudgetArgs,
    checkers::Checkers,
    config::Config,
    settings::{self, ProxyArgs},
    signals::{interrupted, number},
};
use crate::{
    attribution::{EndedExecution, Watch},
    execution::{Console, ExecutionError, Executor, Judge, LearningReference, Program, Stop, SystemUnderTest},
    proof::{NeutralSentences, ProofSample},
    proxy::{Proxy, UpstreamOrigin},
    replay::Cassette,
};

/// Options of verbs that execute a recorded run's program again: where its calls go, how it is judged, what it is.
#[derive(Debug, Clone, Args)]
pub(super) struct ExecuteArgs {
    #[command(flatten)]
    pub(super) proxy: ProxyArgs,
    #[command(flatten)]
    pub(super) trial: TrialArgs,
    #[command(flatten)]
    pub(super) budget: BudgetArgs,
    #[command(flatten)]
    pub(super) again: AgainArgs,
    /// Command to execute.
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

/// A program, and what judges its outcome.
#[derive(Debug, Clone)]
pub(super) struct JudgedProgram {
    pub(super) program: Program,
    pub(super) judge: Judge,
}

/// What is executed and how it is judged, as a line says it.
#[derive(Debug)]
pub(super) enum ExecutionSpec {
    /// Both are said.
    Whole(JudgedProgram),
    /// A dry run is asked before they are: these the line itself needs.
    Lacks(Vec<&'static str>),
}

impl ExecuteArgs {
    /// The sentences of which a neutral change of an execution may add one.
    ///
    /// # Errors
    /// The configuration cannot be read, or has a sentence that is none.
    pub(super) fn sentences(&self) -> Result<NeutralSentences, Failure> {
        let proof = Config::load(self.proxy.config.as_deref())?.proof;
        proof.sentences().map_err(|bad| Failure::new(Exit::Usage, bad))
    }

    /// The program as a system that can be executed again. Call it on a runtime: it listens for signals.
    pub(super) async fn system(
        &self,
        executed: JudgedProgram,
        proxy: Proxy,
        console: Console,
        reference: LearningReference,
    ) -> Result<SystemUnderTest, Failure> {
        let sentences = self.sentences()?;
        let JudgedProgram { program, judge } = executed;
        let program = Program { limit: settings::time_limit(self.trial.timeout)?, console, ..program };
        let executor = Executor::start(Arc::new(proxy), stop()).await.map_err(failed)?;
        Ok(SystemUnderTest { sentences, reference, ..SystemUnderTest::new(executor, Arc::new(program), judge) })
    }

    /// What is executed by a verb that can do nothing without a program and a judge. A dry run may be asked before there is
    /// one; what is said is refused there as the line itself would be.
    ///
    /// # Errors
    /// Nothing is said, the recorded command or judge cannot be had again, or the time limit is none.
    pub(super) fn executed(
        &self,
        recorded: &HowStarted,
        verb: &str,
        what: &str,
        dry_run: bool,
    ) -> Result<ExecutionSpec, Failure> {
        if !dry_run {
            let program = recorded.required(&self.command, self.again, verb)?;
            let judge = self.trial.required_judge(recorded, self.again, what)?;
            settings::time_limit(self.trial.timeout)?;
            return Ok(ExecutionSpec::Whole(JudgedProgram { program, judge }));
        }
        let program = recorded.program(&self.command, self.again, verb)?;
        let judge = self.trial.judge(recorded, self.again)?;
        settings::time_limit(self.trial.timeout)?;
        let needs = [(judge.is_none(), "--check CMD"), (program.is_none(), "-- CMD")];
        Ok(match (program, judge) {
            (Some(program), Some(judge)) => ExecutionSpec::Whole(JudgedProgram { program, judge }),
            _ => ExecutionSpec::Lacks(needs.iter().filter(|(lacks, _)| *lacks).map(|(_, words)| *words).collect()),
        })
    }
}

impl ExecutionSpec {
    /// What the line itself would be refused without, for the last line of a dry run.
    pub(super) fn needs(&self) -> String {
        match self {
            Self::Whole(..) => String::new(),
            Self::Lacks(needs) => format!("; the line itself needs {}", needs.join(" and ")),
        }
    }
}

/// How a command is executed again and judged.
#[derive(Debug, Clone, Args)]
pub(super) struct TrialArgs {
    /// Command that judges the outcome, run by `sh -c` with the program's output on standard input and `AEGIS_RUN_DIR`
    /// set. Exit code 0: success; 1: failure; other: unknown.
    #[arg(long, value_name = "CMD")]
    pub(super) check: Option<String>,
    /// Judge by the checkers and right answers of a campaign file, or of one with `tasks.file` and `verify` alone.
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub(super) verify: Option<PathBuf>,
    /// Timeout of the command in seconds.
    #[arg(long, value_name = "S", value_parser = super::settings::seconds)]
    timeout: Option<f64>,
    /// Executions in parallel. Above 1, parallel executions must not interfere.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) jobs: u32,
}

impl TrialArgs {
    /// What tells the outcome: `--check`, `--verify`, or with `--again` what judged the recorded run.
    pub(super) fn judge(&self, recorded: &HowStarted, again: AgainArgs) -> Result<Option<Judge>, Failure> {
        if let Some(file) = &self.verify {
            return Checkers::read(file)?.judge(recorded.dir()).map(Some);
        }
        match &self.check {
            Some(check) => Ok(Some(Judge::Command(check.clone()))),
            None if again.again => recorded.judge(),
            None => Ok(None),
        }
    }

    /// As [`TrialArgs::judge`], for a verb that can show nothing without one; `what` it makes, as in `a trace`.
    pub(super) fn required_judge(&self, recorded: &HowStarted, again: AgainArgs, what: &str) -> Result<Judge, Failure> {
        self.judge(recorded, again)?.ok_or_else(|| {
            let error = format!(
                "{what} needs --check CMD: without it nobody can tell whether an execution succeeded, and each costs"
            );
            Failure::new(Exit::Usage, error).hint(
                "for example --check 'grep -q \"ANSWER: 84$\"': it reads the program's output, exit code 0 is success",
            )
        })
    }
}

/// Becomes a signal when we are told to stop. Call it on a runtime.
pub(super) fn stop() -> Stop {
    let (told, stop) = tokio::sync::watch::channel(None);
    tokio::spawn(async move {
        told.send_replace(Some(interrupted().await));
    });
    stop
}

/// How a verb ends that cannot make its trials.
pub(super) fn failed(error: ExecutionError) -> Failure {
    match error {
        ExecutionError::Proxy(error) => Failure::new(Exit::unopened(&error), error),
        ExecutionError::Recording(error) => error.into(),
        ExecutionError::Journal(_) => Failure::new(Exit::Recording, error),
        ExecutionError::Listen(_) | ExecutionError::Lost | ExecutionError::Line(_) => {
            Failure::new(Exit::Infrastructure, error)
        }
        ExecutionError::Budget => {
            Failure::new(Exit::Budget, error).hint("the same line with a larger --budget goes on")
        }
        ExecutionError::Interrupted(signal) => Failure::new(Exit::Signal(number(signal)), error),
        ExecutionError::Launch(_) | ExecutionError::NoSuchStep(_) => Failure::new(Exit::Usage, error),
    }
}

/// Where the live calls of a fork or a trace of a recorded run go: to what was said, else to the recorded upstream, where the
/// user's own configuration names it, or where they recorded the run themselves and no key could leave with them. Never to
/// another one unasked.
/// With `again`, the recorded configuration is read where none is named.
pub(super) fn live(proxy: &ProxyArgs, again: AgainArgs, cassette: &Cassette, dir: &Path) -> Result<ProxyArgs, Failure> {
    let recorded = HowStarted::read(dir)?;
    let config = proxy.config.clone().or_else(|| recorded.config().filter(|_| again.again));
    let later_roster = cassette.recording().own_roster().to_vec();
    let equality = cassette.rules().setting();
    let proxy = &ProxyArgs { config, later_roster, equality, ..proxy.clone() };
    let with = |upstream: &str| ProxyArgs { upstream: Some(upstream.to_owned()), plan: None, ..proxy.clone() };
    if let Some(upstream) = &proxy.upstream {
        return Ok(with(upstream));
    }
    let name = cassette.recording().manifest.upstream.as_str();
    if name == "simulator" {
        return Ok(with(name));
    }
    let config = Config::load(proxy.config.as_deref())?;
    let configured = proxy.upstream_url(&config);
    let named = UpstreamOrigin::parse(&configured, None).is_ok_and(|origin| origin.name() == name);
    if named {
        return Ok(with(&configured));
    }
    let key = std::env::vars_os().map(|(name, _)| name).find(|name| name.to_string_lossy().ends_with("API_KEY"));
    let key = key.map(|name| name.to_string_lossy().into_owned()).or(config.upstream.key_env);
    match (key, recorded.upstream()) {
        (None, Some(upstream)) if recorded.is_made_here() => Ok(with(upstream)),
        (key, whole) => {
            let key = key.map(|name| format!(", and the key in {name} would be sent")).unwrap_or_default();
            let error = format!("`{}` was recorded on {name}, which nothing you configured names{key}", dir.display());
            let hint = format!("--upstream {} sends its live calls there", whole.unwrap_or(name));
            Err(Failure::new(Exit::Usage, error).hint(hint))
        }
    }
}

/// Says what `--again` executes and where live calls go, before either is done.
pub(super) fn say_execution(recorded: &HowStarted, again: AgainArgs, live: &ProxyArgs, quiet: bool) {
    recorded.say(again, quiet);
    if let Some(upstream) = live.upstream.as_ref().filter(|_| !quiet) {
        talkln!("{}", super::escape(&format!("calls go to {upstream}")));
    }
}

/// How a verb ends whose check cannot be run.
pub(super) fn cannot_check(said: &str) -> Failure {
    Failure::new(Exit::Usage, format!("--check cannot be run: {said}"))
        .hint("the check is run by `sh -c` in this directory; exit code 0 is success, 1 failure")
}

/// Says what is executed as it ends.
#[derive(Debug)]
pub(super) struct ExecutionTalk {
    /// Whether it says nothing.
    pub(super) quiet: bool,
}

impl Watch for ExecutionTalk {
    fn executed(&self, told: &EndedExecution<'_>) {
        if !self.quiet {
            let said = match told.sample {
                ProofSample::Passed => "passed",
                ProofSample::Failed => "failed",
                ProofSample::Void(why) => why.words(),
            };
            talkln!("executed {:>3}  step {} {}: {said}", told.number, told.step, told.arm);
        }
    }
}
