//! A program executed once, as a recorded run: the one place that starts it, judges it, ends, seals and rules on the run.
//!
//! An [`Executor`] is a proxy on a port of its own. [`Executor::execute`] takes a [`System`] (a [`Program`], as a rule), an
//! [`ExecutionArm`] that says who answers its model calls, and a [`Judge`]; it gives back what came of it ([`ExecutedRun`]). What the run
//! is evidence of, and whether it is any, is told here too ([`ExecutedRun::sample`]).

mod arm;
mod executed;
mod judge;
mod judged;
mod learning;
mod listening;
mod meter;
mod metered;
mod perturbed;
mod program;
mod void;

use std::{
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use nix::sys::signal::Signal;
use tokio::sync::watch;

use self::{arm::ArmUpstream, void::ExecutionEnd};
use crate::{
    launch::{Ended, LaunchError},
    proof::NeutralSentences,
    proxy::{ManipulatorModel, OriginError, Proxy, ProxyError, Run, RunSetup, upstream::Upstream},
    recording::{self, RecordingError, Redactor},
    replay::{Cassette, NoSuchStep},
    ruling,
    trajectory::{Outcome, ProgramEnd, RunId},
};

pub use arm::{ExecutionArm, ForkedReplies, ReplySource};
pub use executed::{ExecutedRun, unrunnable};
pub use judge::{Judge, TaskCheck, UnusableCheck};
pub use learning::LearningReference;
pub use listening::ListeningProxy;
pub use meter::{ExecutionMeter, Halt};
pub use metered::{CallHook, LONGEST_ANSWER, Meter, MeteredUpstream};
pub use program::{Console, ErrorOutput, Executing, ExecutionPlace, Program, System, output_file};

/// How long an exchange of a program that has ended is waited for.
const DRAINED_WITHIN: Duration = Duration::from_secs(2);

/// What a run says of itself that got the neutral changes of a claim's execution.
const PERTURBED: &str = "perturbed: each live request got a neutral change, and so did the recorded reply at the fork point where it \
                         is prose";

/// Becomes a signal when all work is to stop.
pub type Stop = watch::Receiver<Option<Signal>>;

/// Why a program could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The proxy cannot listen.
    #[error("cannot listen on a loopback port")]
    Listen(#[source] std::io::Error),
    /// The program, or the command that judges it, cannot be run.
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
    /// The budget does not hold another call.
    #[error("the budget ended; what was executed is kept, and a larger budget goes on from there")]
    Budget,
    /// We were told to stop, by this signal.
    #[error("interrupted; what was executed is kept")]
    Interrupted(Signal),
    /// A line to another model cannot be had.
    #[error("cannot ask the other model")]
    Line(#[from] OriginError),
    /// What executions came to cannot be written down.
    #[error("cannot write down what an execution came to")]
    Journal(#[source] std::io::Error),
    /// An execution ended by a defect.
    #[error("an execution ended without a result")]
    Lost,
}

/// Executes programs before a proxy that listens on a port of its own.
pub struct Executor {
    listening: ListeningProxy,
    stop: Stop,
}

/// A system that is executed again and again, always judged alike.
pub struct SystemUnderTest {
    /// Where it is executed.
    pub executor: Executor,
    /// What is executed.
    pub system: Arc<dyn System>,
    /// What tells the outcome.
    pub judge: Judge,
    /// The sentences of which a neutral change may add one.
    pub sentences: NeutralSentences,
    /// What its executions show to be equal to the record that they begin like.
    pub reference: LearningReference,
}

impl SystemUnderTest {
    /// A system whose neutral changes add no sentence of the user's, and of whose reference nothing was learned.
    pub fn new(executor: Executor, system: Arc<dyn System>, judge: Judge) -> Self {
        let (sentences, reference) = (NeutralSentences::default(), LearningReference::default());
        Self { executor, system, judge, sentences, reference }
    }

    /// The live upstream.
    pub fn live(&self) -> Arc<dyn Upstream> {
        Arc::clone(&self.executor.listening.proxy.upstream)
    }

    /// Executes it once, as a run of that name, with its live calls counted and paid for by a meter. A call beyond what may be
    /// spent ends the program. One that leaves the record in what only differs from run to run is executed once more, under another
    /// name, with that as equal.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub async fn execute(
        &self,
        run: &RunId,
        arm: ExecutionArm,
        meter: &Arc<Meter>,
    ) -> Result<ExecutedRun, ExecutionError> {
        let mut name = run.clone();
        for again in 1_u32.. {
            let arm = self.reference.compared(&arm);
            let execution = Execution::new(&name, &*self.system, arm.clone(), &self.judge);
            let executed = self.executor.execute(execution.paid_by(meter, &self.executor.listening.proxy)).await?;
            if executed.is_interrupted() || !self.reference.learns_from(&arm, &executed)? {
                return Ok(executed);
            }
            name = RunId::hashed("l", format!("{run} learned {again}").as_bytes());
        }
        Err(ExecutionError::Lost)
    }

    /// Executes it once for each arm, `jobs` at once, and gives what came of each to `ended` in the order of the arms. After a
    /// `Break` no further one begins, and those under way are dropped.
    ///
    /// # Errors
    /// As [`Executor::execute`]; no further arm begins.
    pub async fn execute_each(
        &self,
        arms: impl IntoIterator<Item = (RunId, ExecutionArm)>,
        jobs: usize,
        meter: &Arc<Meter>,
        mut ended: impl FnMut(ExecutedRun) -> ControlFlow<()>,
    ) -> Result<(), ExecutionError> {
        let executions = arms.into_iter().map(|(run, arm)| async move { self.execute(&run, arm, meter).await });
        let mut executions = stream::iter(executions).buffered(jobs.max(1));
        while let Some(executed) = executions.next().await {
            if ended(executed?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// One execution to be made.
pub struct Execution<'a> {
    /// What the run is called.
    pub run: &'a RunId,
    /// What is executed.
    pub system: &'a dyn System,
    /// Who answers its calls, and what is planted.
    pub arm: ExecutionArm,
    /// What tells the outcome.
    pub judge: &'a Judge,
    /// Where live calls go; the proxy's upstream if none.
    pub live: Option<Arc<dyn Upstream>>,
    /// The model that manipulators ask; the proxy's if none.
    pub asking: Option<Arc<ManipulatorModel>>,
    /// What ends it early.
    pub meter: Arc<ExecutionMeter>,
}

/// An execution whose program has ended.
struct EndedProgram<'a> {
    open: Arc<Run>,
    ended: Ended,
    system: &'a dyn System,
    judge: &'a Judge,
    answering: ArmUpstream,
    meter: Arc<ExecutionMeter>,
    reference: Option<Arc<Cassette>>,
    began: Instant,
}

impl<'a> Execution<'a> {
    /// An execution that spends what it asks for.
    pub fn new(run: &'a RunId, system: &'a dyn System, arm: ExecutionArm, judge: &'a Judge) -> Self {
        Self { run, system, arm, judge, live: None, asking: None, meter: Arc::default() }
    }

    /// The same with all its live calls, those to the model that manipulators ask too, counted and paid for by a meter.
    #[must_use]
    pub fn paid_by(self, meter: &Arc<Meter>, proxy: &Proxy) -> Self {
        let execution = Arc::<ExecutionMeter>::default();
        let metered =
            |inner: &Arc<dyn Upstream>| -> Arc<dyn Upstream> { Arc::new(meter.metered(Arc::clone(inner), &execution)) };
        let asking = proxy.runs.model().map(|model| Arc::new(model.by_way_of(metered)));
        Self { live: Some(metered(&proxy.upstream)), asking, meter: execution, ..self }
    }
}

impl Executor {
    /// Starts the proxy on a free port.
    ///
    /// # Errors
    /// [`ExecutionError::Listen`].
    pub async fn start(proxy: Arc<Proxy>, stop: Stop) -> Result<Self, ExecutionError> {
        Ok(Self { listening: ListeningProxy::start(proxy).await?, stop })
    }

    /// Executes before a proxy that listens already.
    pub fn at(listening: ListeningProxy, stop: Stop) -> Self {
        Self { listening, stop }
    }

    /// The proxy as it listens.
    pub fn listening(&self) -> &ListeningProxy {
        &self.listening
    }

    /// Executes a system once, and ends, seals and rules on its run. A program that cannot be started leaves no run behind.
    ///
    /// # Errors
    /// [`ExecutionError`]; what the program comes to is no error.
    pub async fn execute(&self, execution: Execution<'_>) -> Result<ExecutedRun, ExecutionError> {
        let Execution { run, system, arm, judge, live, asking, meter } = execution;
        let (runs, began) = (&self.listening.proxy.runs, Instant::now());
        let reference = arm.reference().cloned();
        let answering = arm.replies.answering(live, &self.listening.proxy.upstream, &meter)?;
        let setup = RunSetup {
            roster: Vec::new(),
            plan: arm.plan,
            task: None,
            upstream: answering.upstream(),
            asking,
            watch: None,
            origin: arm.origin,
            launched: system.program().map(|program| program.launched(runs.template(), judge.recorded())),
            repeat_of: reference.as_ref().map(|reference| reference.run().clone()),
            reference: arm.reference_calls,
            equality: reference.as_ref().map(|reference| reference.rules().setting()),
            cards: reference.as_ref().map(|reference| reference.cards()).unwrap_or_default(),
        };
        let open = runs.open(run, setup).await?;
        if let Some(words) = open.plan.as_ref().and_then(|plan| plan.repeats()) {
            open.recorder.note(&words);
        }
        if open.plan.as_ref().is_some_and(|plan| plan.has_neutral_changes()) {
            open.recorder.note(PERTURBED);
        }
        let ended = system.execute(self.place(&open, &meter)).await;
        runs.retire_run(run);
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                forget(open)?;
                return Err(error.into());
            }
        };
        drained(&open).await;
        self.end(EndedProgram { open, ended, system, judge, answering, meter, reference, began }).await
    }

    /// Judges, seals and rules.
    async fn end(&self, program: EndedProgram<'_>) -> Result<ExecutedRun, ExecutionError> {
        let EndedProgram { open, ended, system, judge, answering, meter, reference, began } = program;
        let replay = answering.report();
        let halt = meter.halt();
        let judged = match halt {
            Some(halt) => Ok(halt.judged(replay.as_ref())),
            None => judge.judge(&ended, &self.place(&open, &meter), system.program()).await,
        };
        let judged = judged.inspect_err(|_| {
            // What was recorded is kept, without an outcome.
            open.recorder.conclude(ended.ending.into(), Outcome::default());
            let _ = self.listening.proxy.runs.seal(&open);
        })?;
        open.recorder.conclude(ended.ending.into(), judged.outcome.clone());
        self.listening.proxy.runs.seal(&open)?;
        self.listening.proxy.runs.take_ended();
        let mut recording = match judged.read.filter(|_| open.plan.is_none()) {
            // Nothing is planted that its end could tell more of.
            Some(mut read) => {
                read.manifest = recording::read_manifest(open.dir())?;
                read.trajectory.outcome = read.manifest.outcome.clone();
                read
            }
            None => recording::read(open.dir())?,
        };
        let label =
            ruling::settle_recording(&mut recording, open.dir(), reference.as_deref().map(Cassette::bare_recording))?;
        let former = reference.as_ref().and_then(|reference| reference.recording().manifest.program);
        let void = ExecutionEnd {
            steps: &recording.trajectory.steps,
            replay: replay.as_ref(),
            ending: ended.ending,
            halt,
            judge,
            crashed_before: matches!(former, Some(ProgramEnd::Signalled(_))),
        };
        let void = void.void();
        Ok(ExecutedRun {
            run: open.id.clone(),
            dir: open.dir().to_owned(),
            steps: open.steps(),
            uninspected: open.uninspected(),
            fetches: open.fetches(),
            ending: ended.ending,
            interrupted: ended.interrupted.or(judged.interrupted).filter(|_| halt.is_none()),
            output: masked(ended.output),
            outcome: judged.outcome,
            answer: judged.answer,
            label,
            recording,
            replay,
            halt,
            void,
            took: began.elapsed(),
        })
    }

    /// Stops the proxy.
    pub async fn stop(self) {
        self.listening.stop().await;
    }

    fn place<'a>(&'a self, open: &'a Run, meter: &'a ExecutionMeter) -> ExecutionPlace<'a> {
        let header = &self.listening.proxy.identity.hints.run_header;
        ExecutionPlace {
            origin: &self.listening.origin,
            run: &open.id,
            run_dir: open.dir(),
            run_header: header,
            servers: &self.listening.proxy.servers,
            stop: &self.stop,
            meter,
        }
    }
}

/// Waits until no exchange is under way, as long as [`DRAINED_WITHIN`]: those of a program that has ended are cut.
async fn drained(run: &Run) {
    let begun = Instant::now();
    while !run.is_quiet() && begun.elapsed() < DRAINED_WITHIN {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Leaves nothing of a run whose program could not be started; one that goes on with an earlier recording stays as it was.
fn forget(open: Arc<Run>) -> Result<(), RecordingError> {
    let (dir, is_new) = (open.dir().to_owned(), !open.recorder.has_records());
    drop(open);
    if is_new { recording::discard(&dir) } else { Ok(()) }
}

/// What a program wrote, without secrets: programs print their keys when they fail.
fn masked(mut output: Vec<u8>) -> Vec<u8> {
    Redactor::of_process().mask(&mut output);
    output
}
