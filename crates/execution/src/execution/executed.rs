//! What an execution came to.

use std::{path::PathBuf, time::Duration};

use nix::sys::signal::Signal;

use super::{ExecutionError, Halt};
use crate::{
    launch::Ending,
    proof::ProofSample,
    recording::Recording,
    replay::ReplayReport,
    ruling::NoLabel,
    trajectory::{Label, Outcome, Reason, RunId, Usage, Verdict, Void},
};

/// An execution that has ended; its run is sealed, and ruled on.
#[derive(Debug)]
pub struct ExecutedRun {
    /// The run.
    pub run: RunId,
    /// Its directory.
    pub dir: PathBuf,
    /// How many steps it has.
    pub steps: u32,
    /// How many of them passed uninspected.
    pub uninspected: u32,
    /// Requests that looked at what the provider keeps, or took it away: they are no steps.
    pub fetches: u32,
    /// The run as it was recorded.
    pub recording: Recording,
    /// How the program ended.
    pub ending: Ending,
    /// The signal by which all work was to stop, where that ended the program or the command that judges it.
    pub interrupted: Option<Signal>,
    /// What it wrote to its standard output, or the end of it; secrets are masked.
    pub output: Vec<u8>,
    /// What it achieved.
    pub outcome: Outcome,
    /// What the checkers read as its answer.
    pub answer: String,
    /// Its label, where something was planted.
    pub label: Result<Label, NoLabel>,
    /// What came from the record, where one answered.
    pub replay: Option<ReplayReport>,
    /// Why we ended the program before its end.
    pub halt: Option<Halt>,
    /// Why nothing of it counts.
    pub void: Option<Void>,
    /// From its opening to its seal.
    pub took: Duration,
}

impl ExecutedRun {
    /// What it says of a claim: its verdict, or why it has none that counts.
    pub fn sample(&self) -> ProofSample {
        match (self.void, self.outcome.verdict) {
            (Some(why), _) => ProofSample::Void(why),
            (None, Verdict::Success) => ProofSample::Passed,
            (None, Verdict::Failure) => ProofSample::Failed,
            (None, Verdict::Unknown) => ProofSample::Void(Void::NoVerdict),
        }
    }

    /// Whether the program, or its judge, was ended because all work is to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Whether the program was ended because it may spend no more.
    pub fn is_over_budget(&self) -> bool {
        matches!(self.halt, Some(Halt::Budget | Halt::Price))
    }

    /// Itself, where it was not [interrupted](Self::is_interrupted).
    ///
    /// # Errors
    /// [`ExecutionError::Interrupted`].
    pub fn uninterrupted(self) -> Result<Self, ExecutionError> {
        self.interrupted.map_or(Ok(self), |signal| Err(ExecutionError::Interrupted(signal)))
    }

    /// What its live calls used, as the upstream counted it.
    pub fn live_usage(&self) -> Usage {
        let live = |step: u32| self.replay.as_ref().is_none_or(|report| report.live.contains(&step));
        let steps = self.recording.trajectory.steps.iter().filter(|step| live(step.step));
        let usage = steps.flat_map(|step| &step.attempts).filter_map(|attempt| attempt.usage);
        usage.fold(Usage::default(), |sum, one| Usage { input: sum.input + one.input, output: sum.output + one.output })
    }

    /// Tokens that a record answered instead of an upstream.
    pub fn recorded_tokens(&self) -> u64 {
        self.replay.as_ref().map_or(0, |report| report.saved.input + report.saved.output)
    }
}

/// What a check said that could not be run: the shell found no such command (127), or one that it may not run (126).
pub fn unrunnable(outcome: &Outcome) -> Option<String> {
    let says = |code: &str| outcome.evidence.starts_with(&format!("check exited with {code}"));
    let failed = outcome.reason == Some(Reason::Check) && outcome.verdict == Verdict::Unknown;
    (failed && (says("126") || says("127"))).then(|| outcome.evidence.clone())
}
