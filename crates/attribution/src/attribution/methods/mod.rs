//! Attribution from a log: which agent failed, at which step, told from what was said, without executing anything.
//!
//! A method is one file, its `mod` and one line of [`ALL`]. It is written as if its questions were answered at once
//! ([`Dialogue::ask`]); whoever drives it asks one question after the other and calls it again with the answers so far. So
//! a method knows no model, no clock and no disk, and its prompts and its reading are tested without any. What it says is a
//! prediction, never a label: only executions prove one ([`crate::proof`]).

mod a2p;
mod aligned;
mod alignment;
mod all_at_once;
mod binary_search;
mod clues;
mod confidence;
mod conformal;
mod dialogue;
mod formula;
mod fused;
mod graph;
mod hybrid;
mod judge_critics;
mod learned;
mod logged;
mod panel;
mod predicted;
mod prompt;
mod rules;
mod spectrum;
mod step_by_step;
mod log_text;
mod tracer;
mod whowhen;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use clues::{CLUES, clues};
pub use conformal::{Calibrated, CalibrationRow, StepInterval, StepScores};
pub use dialogue::{Abstention, Dialogue, JudgeQuestion, JudgeReply, Pause};
pub use fused::{COMBINED, combined, voted};
pub use learned::{LearnedError, LearnedFrom, LearnedRanker};
pub use log_text::Cuts;
pub use logged::{LoggedCall, LoggedRow, LoggedRun, LoggedTurn};
pub(super) use predicted::object as answer_object;
pub use predicted::{MethodAnswer, PredictedStep, QuotedEvidence};
pub use tracer::{Tracer, TracerAsking};

/// What a method may look at beside the run.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Whether prompts and reading are those of the public Who&When script.
    pub compat: bool,
    /// Longest log in a question, in characters.
    pub longest_log: usize,
    /// Other runs of the same task.
    pub others: &'a [LoggedRun],
    /// What was learned of executed effects, where a file of it was named.
    pub ranker: Option<&'a LearnedRanker>,
}

/// What a method cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The log alone.
    Log,
    /// A model that answers questions.
    Model,
    /// Other runs of the same task.
    OtherRuns,
    /// A file that `aegis learn` wrote.
    Ranker,
}

/// A way to tell from a log who failed and when.
pub trait Method: Sync + std::fmt::Debug {
    /// Its name on the command line and in rows.
    fn name(&self) -> &str;

    /// What it does, in one line.
    fn description(&self) -> &'static str;

    /// What it cannot do without.
    fn needs(&self) -> Needs {
        Needs::Model
    }

    /// Whether the public Who&When script has it, so that `--compat whowhen` means something.
    fn is_public(&self) -> bool {
        false
    }

    /// Whether it is asked about runs that did not fail, too, and may say that nobody erred.
    fn takes_clean(&self) -> bool {
        false
    }

    /// Whose published script its question is, where that is so whatever the view says.
    fn published(&self) -> Option<&'static str> {
        None
    }

    /// What it answers: its ranking, where it says nothing else.
    ///
    /// # Errors
    /// As [`attribute`](Self::attribute).
    fn answer(&self, run: &LoggedRun, view: View<'_>, dialogue: &mut Dialogue<'_>) -> Result<MethodAnswer, Pause> {
        self.attribute(run, view, dialogue).map(MethodAnswer::Ranked)
    }

    /// What it finds, the most likely first; never an empty list.
    ///
    /// # Errors
    /// [`Pause`]: a question that must be answered first, or why there is no prediction.
    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause>;
}

/// Every method.
pub const ALL: &[&dyn Method] = &[
    &all_at_once::AllAtOnce,
    &step_by_step::StepByStep,
    &binary_search::BinarySearch,
    &hybrid::Hybrid,
    &a2p::A2p,
    &judge_critics::JudgeCritics,
    &panel::Panel,
    &graph::Graph,
    &alignment::Alignment,
    &spectrum::Spectrum,
    &confidence::Confidence,
    &rules::LogRules,
    &learned::Learned,
];

/// The method of that name.
pub fn method(name: &str) -> Option<&'static dyn Method> {
    ALL.iter().copied().find(|method| method.name() == name)
}
