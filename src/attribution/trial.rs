//! One more execution of a program, as a recorded run with an upstream of its own.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tokio::sync::watch;

use super::line::{ListeningProxy, ModelLine};

use crate::{
    launch::{Echo, Ending, Launch, LaunchError, environment, judge, told_to_stop},
    plan::Plan,
    proxy::{OriginError, Proxy, ProxyError, RunSetup, upstream::Upstream},
    recording::{Launched, Recording, RecordingError, RunOrigin},
    replay::{Cassette, ForkPoint, NoSuchStep, Prefixed, ReplayReport},
    ruling::{self, NoLabel},
    trajectory::{Label, Outcome, Reason, RunId, Verdict},
};

/// Why a trial could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The proxy cannot listen.
    #[error("cannot listen on a loopback port")]
    Listen(#[source] std::io::Error),
    /// The program cannot be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A run cannot be opened.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// A run cannot be recorded.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The fork point is not in the record.
    #[error(transparent)]
    NoSuchStep(#[from] NoSuchStep),
    /// We were told to stop.
    #[error("interrupted; what was executed is kept")]
    Interrupted,
    /// A line to another model cannot be had.
    #[error("cannot ask the other model")]
    Line(#[from] OriginError),
    /// A trial ended by a defect.
    #[error("a trial ended without a result")]
    Lost,
}

/// A multi-agent system that can be executed again.
pub trait System: Send + Sync {
    /// Executes it once against the proxy at `origin` (`http://host:port`) as this run, and judges what it achieved.
    fn execute<'a>(&'a self, origin: &'a str, run: &'a RunId, run_dir: &'a Path) -> Executing<'a>;

    /// How it is started, to be kept with each run; nothing of it by default.
    fn launched(&self) -> Option<Launched> {
        None
    }
}

/// A system under way.
pub type Executing<'a> = Pin<Box<dyn Future<Output = Result<(Ending, Outcome), TrialError>> + Send + 'a>>;

/// A system that is a command.
#[derive(Debug, Clone)]
pub struct CommandSystem {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Its working directory; ours, if none.
    pub directory: Option<PathBuf>,
    /// Command that judges the outcome.
    pub check: Option<String>,
    /// Longest run time.
    pub limit: Option<Duration>,
    /// Where its output goes.
    pub echo: Echo,
    /// Whether its standard error is thrown away.
    pub hush: bool,
    /// The header that names the run.
    pub run_header: String,
    /// Becomes true when all work is to stop.
    pub stop: watch::Receiver<bool>,
}

impl System for CommandSystem {
    fn execute<'a>(&'a self, origin: &'a str, run: &'a RunId, run_dir: &'a Path) -> Executing<'a> {
        Box::pin(async move {
            let stopped = || told_to_stop(self.stop.clone());
            let launch = Launch {
                environment: environment(origin, run, &self.run_header),
                limit: self.limit,
                echo: self.echo,
                hush: self.hush,
                input: Some(Vec::new()),
                directory: self.directory.clone(),
                ..Launch::of(self.command.clone())
            };
            let ended = launch.run(stopped()).await?;
            let outcome = judge(&ended, self.check.as_deref(), run_dir, stopped()).await?;
            Ok((ended.ending, outcome))
        })
    }
}

/// What a check said that could not be run: the shell found no such command (127), or one that it may not run (126).
pub fn unrunnable(outcome: &Outcome) -> Option<String> {
    let says = |code: &str| outcome.evidence.starts_with(&format!("check exited with {code}"));
    let failed = outcome.reason == Some(Reason::Check) && outcome.verdict == Verdict::Unknown;
    (failed && (says("126") || says("127"))).then(|| outcome.evidence.clone())
}

/// A proxy with a system before it.
pub struct Bench {
    listening: ListeningProxy,
    system: Arc<dyn System>,
}

/// A run that was made.
#[derive(Debug)]
pub struct Tried {
    /// Its id.
    pub run: RunId,
    /// Its directory; sealed.
    pub dir: PathBuf,
    /// How many steps it has.
    pub steps: u32,
    /// How the program ended.
    pub ending: Ending,
    /// What it achieved.
    pub outcome: Outcome,
    /// Its label, where a plan was at work.
    pub label: Result<Label, NoLabel>,
}

/// A run whose prefix came from a record.
#[derive(Debug)]
pub struct ForkSample {
    /// The run.
    pub tried: Tried,
    /// What came from where.
    pub report: ReplayReport,
}

impl Bench {
    /// Starts the proxy on a free port.
    ///
    /// # Errors
    /// [`TrialError::Listen`].
    pub async fn start(proxy: Arc<Proxy>, system: Arc<dyn System>) -> Result<Self, TrialError> {
        Ok(Self { listening: ListeningProxy::start(proxy).await?, system })
    }

    /// Where the proxy listens: `http://host:port`.
    pub fn origin(&self) -> &str {
        &self.listening.origin
    }

    /// The live upstream.
    pub fn live(&self) -> Arc<dyn Upstream> {
        Arc::clone(&self.listening.proxy.upstream)
    }

    /// Executes the system once as a run with this plan and this upstream, and seals the run.
    ///
    /// # Errors
    /// [`TrialError`]; what the system comes to is no error.
    pub async fn execute(&self, run: &RunId, setup: RunSetup) -> Result<Tried, TrialError> {
        self.execute_unless(run, setup, None, || None).await
    }

    /// The same, beginning like `reference` if it has one; where `void` says in the end why the run proves nothing, its outcome is unknown.
    async fn execute_unless(
        &self,
        run: &RunId,
        setup: RunSetup,
        reference: Option<&Recording>,
        void: impl Fn() -> Option<String>,
    ) -> Result<Tried, TrialError> {
        let open = self.listening.proxy.runs.open(run, setup).await?;
        if let Some(words) = open.plan.as_ref().and_then(|plan| plan.repeats()) {
            open.recorder.note(&words);
        }
        if let Some(launched) = self.system.launched() {
            open.recorder.set_launched(launched)?;
        }
        let executed = self.system.execute(&self.listening.origin, run, open.dir()).await;
        self.listening.proxy.runs.retire_run(run);
        let executed = executed.map(|(ending, outcome)| match void() {
            Some(evidence) => (ending, Outcome { verdict: Verdict::Unknown, reason: None, evidence }),
            None => (ending, outcome),
        });
        if let Ok((ending, outcome)) = &executed {
            open.recorder.set_program_end((*ending).into());
            open.recorder.set_outcome(outcome.clone())?;
        }
        open.recorder.seal()?;
        let (ending, outcome) = executed?;
        let label = ruling::settle(open.dir(), reference)?;
        let (dir, steps) = (open.dir().to_owned(), open.steps());
        Ok(Tried { run: run.clone(), dir, steps, ending, outcome, label })
    }

    /// Executes the system once with a recorded prefix and a live rest.
    ///
    /// # Errors
    /// [`TrialError`]; what the system comes to, a divergence included, is no error.
    pub async fn sample(
        &self,
        run: &RunId,
        prefixed: Prefixed,
        plan: Option<Arc<Plan>>,
    ) -> Result<ForkSample, TrialError> {
        self.sample_as(run, prefixed, plan, None).await
    }

    /// The same for an execution whose plan is a note: it says of itself that it answers feedback, and earns no label.
    ///
    /// # Errors
    /// As [`Bench::sample`].
    pub async fn with_feedback(
        &self,
        run: &RunId,
        prefixed: Prefixed,
        note: Option<Arc<Plan>>,
    ) -> Result<ForkSample, TrialError> {
        self.sample_as(run, prefixed, note, Some(RunOrigin::Feedback)).await
    }

    async fn sample_as(
        &self,
        run: &RunId,
        prefixed: Prefixed,
        plan: Option<Arc<Plan>>,
        origin: Option<RunOrigin>,
    ) -> Result<ForkSample, TrialError> {
        let prefixed = Arc::new(prefixed);
        let upstream: Arc<dyn Upstream> = Arc::clone(&prefixed) as Arc<dyn Upstream>;
        let diverged = || prefixed.report().diverged.map(|departure| format!("diverged: {departure}"));
        let setup = RunSetup { plan, upstream: Some(upstream), origin, ..RunSetup::default() };
        let tried = self.execute_unless(run, setup, Some(prefixed.cassette().bare()), diverged).await?;
        Ok(ForkSample { tried, report: prefixed.report() })
    }

    /// A prefix of the record before this bench's live upstream.
    ///
    /// # Errors
    /// [`NoSuchStep`].
    pub fn prefix(&self, cassette: &Arc<Cassette>, fork: ForkPoint) -> Result<Prefixed, NoSuchStep> {
        Prefixed::new(Arc::clone(cassette), fork, self.live())
    }

    /// A line to another model, through the proxy: each question and answer is recorded as a step of `run`, by `agent`.
    ///
    /// # Errors
    /// [`TrialError`] when the run cannot be recorded.
    pub(super) async fn line(
        &self,
        run: &RunId,
        upstream: Arc<dyn Upstream>,
        agent: &str,
    ) -> Result<ModelLine, TrialError> {
        self.listening.line(run, upstream, agent).await
    }

    /// Ends a line and seals what it recorded.
    ///
    /// # Errors
    /// [`TrialError`] when it cannot be sealed.
    pub(super) fn hang_up(&self, line: &ModelLine) -> Result<(), TrialError> {
        self.listening.hang_up(line)
    }

    /// Stops the proxy.
    pub async fn stop(self) {
        self.listening.stop().await;
    }
}
