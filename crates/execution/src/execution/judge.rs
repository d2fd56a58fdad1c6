//! What a program achieved: told by a command, by the checkers of a task set, or by its own end.

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{ExecutionPlace, Program, judged::JudgedEnd};
use crate::{
    launch::{Ended, Ending, Launch, LaunchError, describe},
    proxy::upstream::Upstream,
    recording::{self, RecordedCheck, Redactor},
    trajectory::{Outcome, Reason, Verdict},
    verify::{Check, Sources, Surroundings, Verify},
};

/// Longest excerpt of a check's output that is kept as evidence, in characters.
const EVIDENCE_MAX: usize = 400;

/// What tells the outcome of an execution.
#[derive(Debug, Clone)]
pub enum Judge {
    /// The program's own end: a failure where it says so, else unknown.
    End,
    /// A command, run by `sh -c` with the program's output on its standard input and `AEGIS_RUN_DIR` set: exit code 0 is
    /// success, 1 failure, anything else unknown.
    Command(String),
    /// Checkers, and the model that some of them ask.
    Checkers(Box<TaskCheck>, Option<Arc<dyn Upstream>>),
}

/// Checkers with the task that they judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskCheck {
    /// Where the answer is, and who looks at it.
    pub verify: Verify,
    /// What was asked.
    pub question: String,
    /// What is right.
    pub answer: String,
    /// The task's own checker, which takes the others' place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Check>,
    /// Exit codes with which the program ends in order; any other is a crash.
    pub exit_codes: Vec<i32>,
}

/// Why nobody can judge again as a run was judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableCheck {
    /// A secret in it is masked.
    #[error("what judged it held a secret, which is masked")]
    Masked,
    /// A model judged.
    #[error("a model judged it")]
    Model,
    /// It is none of ours.
    #[error("what judged it cannot be read: {0}")]
    Unreadable(String),
}

impl Judge {
    /// The command, if there is one; else the program's own end.
    pub fn of_command(check: Option<&str>) -> Self {
        check.map_or(Judge::End, |check| Judge::Command(check.to_owned()))
    }

    /// The judge of a recorded run.
    ///
    /// # Errors
    /// [`UnusableCheck`].
    pub fn of_record(check: &RecordedCheck) -> Result<Self, UnusableCheck> {
        if check.is_masked() {
            return Err(UnusableCheck::Masked);
        }
        let checked = match check {
            RecordedCheck::Command(line) => return Ok(Judge::Command(line.clone())),
            RecordedCheck::Checkers(value) => serde_json::from_value::<TaskCheck>(value.clone()),
        };
        let checked = checked.map_err(|error| UnusableCheck::Unreadable(error.to_string()))?;
        if checked.asks_a_model() { Err(UnusableCheck::Model) } else { Ok(Judge::Checkers(Box::new(checked), None)) }
    }

    /// As `run.json` keeps it.
    pub fn recorded(&self) -> Option<RecordedCheck> {
        match self {
            Judge::End => None,
            Judge::Command(line) => Some(RecordedCheck::Command(line.clone())),
            Judge::Checkers(check, _) => serde_json::to_value(check).ok().map(RecordedCheck::Checkers),
        }
    }

    /// Whether a program that ends so ended by an error of its own: what it achieved is not asked then.
    pub(super) fn is_crash(&self, ending: Ending) -> bool {
        match (self, ending) {
            (Judge::Checkers(check, _), Ending::Exited(code)) => !check.exit_codes.contains(&code),
            _ => false,
        }
    }

    pub(super) async fn judge(
        &self,
        ended: &Ended,
        place: &ExecutionPlace<'_>,
        program: Option<&Program>,
    ) -> Result<JudgedEnd, LaunchError> {
        let by_itself = |verdict, reason, evidence: String| Outcome { verdict, reason: Some(reason), evidence };
        let outcome = match (ended.ending, self) {
            (Ending::TimedOut, _) => {
                by_itself(Verdict::Failure, Reason::Timeout, "the command ran out of time".to_owned())
            }
            (Ending::Interrupted, _) => by_itself(Verdict::Unknown, Reason::Exit, "interrupted".to_owned()),
            (_, Judge::Command(line)) => return command(line, ended, place).await,
            (Ending::Exited(0), Judge::End) => Outcome::default(),
            (ending, Judge::End) => by_itself(Verdict::Failure, Reason::Exit, format!("command {}", describe(ending))),
            (Ending::Exited(code), Judge::Checkers(check, model)) if check.exit_codes.contains(&code) => {
                return Ok(check.judge(ended, place, program, model.clone()).await);
            }
            (ending, Judge::Checkers(..)) => {
                by_itself(Verdict::Failure, Reason::Exit, format!("the program {}", describe(ending)))
            }
        };
        Ok(outcome.into())
    }
}

impl TaskCheck {
    fn asks_a_model(&self) -> bool {
        self.verify.checks.iter().chain(&self.own).any(|check| matches!(check, Check::ModelJudge(_)))
    }

    async fn judge(
        &self,
        ended: &Ended,
        place: &ExecutionPlace<'_>,
        program: Option<&Program>,
        model: Option<Arc<dyn Upstream>>,
    ) -> JudgedEnd {
        let directory = program.and_then(|program| program.directory.clone()).unwrap_or_else(|| PathBuf::from("."));
        let recording = match recording::read(place.run_dir) {
            Ok(recording) => recording,
            Err(error) => {
                let evidence = format!("the run cannot be read: {error}");
                return Outcome { verdict: Verdict::Unknown, reason: Some(Reason::Verifier), evidence }.into();
            }
        };
        let sources = Sources { stdout: &ended.output, directory: &directory, trajectory: &recording.trajectory };
        let answer = self.verify.answer(&sources);
        let surroundings = Surroundings { run_dir: Some(place.run_dir.to_owned()), judge: model };
        let verified = self.verify.check(&self.question, &self.answer, self.own.as_ref(), answer, &surroundings).await;
        // A program may say its keys where it should say its answer.
        let redactor = Redactor::of_process();
        let (answer, evidence) = (redactor.masked(verified.answer), redactor.masked(verified.outcome.evidence));
        let outcome = Outcome { evidence, ..verified.outcome };
        JudgedEnd { outcome, answer, read: Some(recording), interrupted: None }
    }
}

async fn command(line: &str, ended: &Ended, place: &ExecutionPlace<'_>) -> Result<JudgedEnd, LaunchError> {
    let dir = std::path::absolute(place.run_dir).unwrap_or_else(|_| place.run_dir.to_owned());
    let launch = Launch {
        environment: vec![("AEGIS_RUN_DIR".to_owned(), dir.display().to_string())],
        input: Some(ended.output.clone()),
        ..Launch::shell(line)
    };
    let checked = launch.run(place.stop_requested()).await?;
    let said: String = String::from_utf8_lossy(&checked.output).trim().chars().take(EVIDENCE_MAX).collect();
    let verdict = match checked.ending {
        Ending::Exited(0) => Verdict::Success,
        Ending::Exited(1) => Verdict::Failure,
        _ => Verdict::Unknown,
    };
    let ending = describe(checked.ending);
    let evidence = if said.is_empty() { format!("check {ending}") } else { format!("check {ending}: {said}") };
    let outcome = Outcome { verdict, reason: Some(Reason::Check), evidence };
    Ok(JudgedEnd { interrupted: checked.interrupted, ..outcome.into() })
}
