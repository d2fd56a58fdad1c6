//! One cell: a system, a task, perhaps a plan; run once as a child process.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{DemoError, System, Task};
use crate::{
    launch::{Ending, Launch, environment},
    plan::Plan,
    proxy::{Proxy, RunSetup},
    recording::{self, Recording},
    trajectory::{Label, NoLabel, Outcome, Reason, RunId, Verdict},
};

/// What is to be run.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) system: &'static str,
    pub(super) task: Task,
    /// The plan's name and the plan.
    pub(super) plan: Option<(&'static str, Arc<Plan>)>,
    /// Hashes the cell, so that it is the same in every demo and tells an agent nothing.
    pub(super) run: RunId,
    /// The injected run that this one is the control of.
    pub(super) controls: Option<RunId>,
}

/// What came of a cell.
#[derive(Debug)]
pub(super) struct Conducted {
    pub(super) cell: Cell,
    pub(super) verdict: Verdict,
    pub(super) answer: String,
    pub(super) label: Result<Label, NoLabel>,
    pub(super) recording: Recording,
    pub(super) dir: PathBuf,
}

impl Cell {
    pub(super) fn clean(system: &System, task: &Task) -> Self {
        Self {
            system: system.name,
            task: task.clone(),
            plan: None,
            run: id(&[system.name, &task.id, "clean"]),
            controls: None,
        }
    }

    pub(super) fn injected(clean: &Cell, name: &'static str, plan: Arc<Plan>) -> Self {
        let run = id(&[clean.system, &clean.task.id, name, &plan.digest]);
        Self { plan: Some((name, plan)), run, ..clean.clone() }
    }

    /// The same cell without the injection.
    pub(super) fn control(&self) -> Self {
        let run = id(&["control", self.run.as_str()]);
        Self { plan: None, run, controls: Some(self.run.clone()), ..self.clone() }
    }

    /// Runs the cell to its end and reads what was recorded.
    pub(super) async fn conduct(
        self,
        proxy: &Arc<Proxy>,
        origin: &str,
        program: &Path,
        limit: Duration,
    ) -> Result<Conducted, DemoError> {
        let plan = self.plan.as_ref().map(|(_, plan)| Arc::clone(plan));
        let run = proxy.runs.open(&self.run, RunSetup { plan, upstream: None })?;
        let command = [
            program.as_os_str(),
            "example".as_ref(),
            self.system.as_ref(),
            "--task".as_ref(),
            self.task.question.as_ref(),
        ];
        let launch = Launch {
            environment: environment(origin, &self.run, &proxy.identity.hints.run_header),
            limit: Some(limit),
            input: Some(Vec::new()),
            hush: true,
            ..Launch::of(command.iter().map(|part| (*part).to_owned()).collect())
        };
        let ended = launch.run(std::future::pending()).await?;
        let answer = answer_of(&ended.output);
        let verdict = match ended.ending {
            Ending::Exited(0) if answer == self.task.answer => Verdict::Success,
            _ => Verdict::Failure,
        };
        let reason = if ended.ending == Ending::TimedOut { Reason::Timeout } else { Reason::Verifier };
        let evidence = format!("expected `{}`, got `{answer}`", self.task.answer);
        run.recorder.set_outcome(Outcome { verdict, reason: Some(reason), evidence })?;
        proxy.runs.retire_run(&self.run);
        run.recorder.seal()?;
        let label = recording::label_run(run.dir())?;
        let recording = recording::read(run.dir())?;
        Ok(Conducted { cell: self, verdict, answer, label, recording, dir: run.dir().to_owned() })
    }
}

impl Conducted {
    /// Whether a delivered injection turned success into failure.
    pub(super) fn is_flip(&self) -> bool {
        self.label.is_ok() && self.verdict == Verdict::Failure
    }

    /// Whether two runs are the same up to the first injected step: requests and replies, byte for byte.
    pub(super) fn shares_prefix_with(&self, control: &Conducted) -> bool {
        let Ok(label) = &self.label else { return false };
        let Some(first) = label.errors.iter().map(|entry| entry.error.step).min() else { return false };
        let (ours, theirs) = (&self.recording.trajectory.steps, &control.recording.trajectory.steps);
        let reply = |step: &crate::trajectory::Step| step.last_attempt().map(|attempt| attempt.reply.clone());
        ours.iter()
            .zip(theirs)
            .take_while(|(step, _)| step.step <= first)
            .all(|(a, b)| a.request == b.request && (a.step == first || reply(a) == reply(b)))
            && theirs.len() > first as usize
    }
}

/// The program's last line that says `ANSWER: …`.
fn answer_of(output: &[u8]) -> String {
    let output = String::from_utf8_lossy(output);
    let said = output.lines().rev().find_map(|line| line.trim().strip_prefix("ANSWER:"));
    said.unwrap_or_default().trim().to_owned()
}

fn id(parts: &[&str]) -> RunId {
    RunId::hashed("c", parts.join("\u{0}").as_bytes())
}
