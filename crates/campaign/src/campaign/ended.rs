//! What came of a cell: the file that says that it is finished, and all that reports and labels are made of.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    rewriting::Rewriting,
    sitting::{ArmExecution, Sitting},
};
use crate::{
    budget::Cost,
    equality::{ToolResults, VolatilePlace},
    proof::ProofSample,
    ruling::NoLabel,
    trajectory::{AgentName, Label, LabelContent, Outcome, Pattern, RunId, StepIndex, Verdict, Void},
};

/// The format of these files.
pub(super) const FORMAT: u32 = 1;

/// A finished cell. It holds times and so differs between two runs of a campaign; data sets are made of what does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EndedCell {
    /// Format of this file.
    pub format: u32,
    /// The run.
    pub run: RunId,
    /// The system.
    pub system: String,
    /// The task.
    pub task: String,
    /// What was run.
    pub kind: Ran,
    /// How the program ended.
    pub ending: HowEnded,
    /// Whether it does so when nothing is wrong with it.
    pub in_order: bool,
    /// What the run achieved.
    pub outcome: Outcome,
    /// What the checker read as the answer.
    #[serde(default)]
    pub answer: String,
    /// What was really planted.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_label")]
    pub label: Option<Label>,
    /// Why there is no label; of a run with a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_label: Option<NoLabel>,
    /// Edits that could not be made: the manipulator and why, each once.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[serde(rename = "unmade")]
    pub skipped_edits: BTreeSet<(String, String)>,
    /// What a model was asked for edits.
    #[serde(default)]
    pub rewriting: Rewriting,
    /// Model calls.
    pub steps: u32,
    /// Whether the upstream's own failure ended a step.
    #[serde(default)]
    pub upstream_failed: bool,
    /// Whether a planted fault was delivered.
    #[serde(default)]
    pub faults: bool,
    /// Where a run left the prefix that it should have shared, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diverged: Option<String>,
    /// What was charged.
    pub spent: Cost,
    /// Calls and tokens that the reference's record answered: not paid for again.
    #[serde(default)]
    pub prefix: Cost,
    /// Calls that an interrupted run of the same cell had paid for.
    #[serde(default)]
    pub salvaged: u64,
    /// Replies of the upstream that said 429.
    #[serde(default)]
    pub limited: u64,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// The start of the campaign that made it; `None` in cells of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sitting: Option<Sitting>,
    /// What counted as equal in it beyond what the clean runs of its task showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<LearnedEquality>,
}

/// What counted as equal when a cell was executed, where runs after the clean ones of its task had shown more of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LearnedEquality {
    /// The run that the cell begins like.
    pub reference: RunId,
    /// How far results of tools may differ.
    #[serde(default, skip_serializing_if = "ToolResults::is_exact")]
    pub tool_results: ToolResults,
    /// What is volatile in requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volatile: Vec<VolatilePlace>,
}

/// What a cell ran, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "cell")]
pub enum Ran {
    /// The system as it is.
    Clean {
        /// Which of the clean runs, 0-based; 0 is the reference.
        repeat: u32,
    },
    /// A plan.
    Injected {
        /// The plan's name.
        plan: String,
        /// Which of its runs, 0-based.
        repeat: u32,
        /// The clean run that it begins like.
        reference: RunId,
    },
    /// The treatment of an earlier run once more, with neutral changes of its own (earlier versions made none).
    Again {
        /// That run.
        of: RunId,
        /// Which of the repeats, 0-based.
        index: u32,
    },
    /// The same beginning without the plan.
    #[serde(rename = "null")]
    Control {
        /// The clean run that it begins like.
        reference: RunId,
        /// The step at which injected runs leave it.
        step: StepIndex,
        /// Whether that step's reply is the recorded one.
        replied: bool,
        /// Which of the control executions, 0-based.
        index: u32,
        /// Whether it had neutral changes of its own.
        #[serde(default)]
        perturbed: bool,
    },
    /// The neutral change of a control execution once more, as if it were planted.
    Sham {
        /// The clean run that it begins like.
        reference: RunId,
        /// The step at which injected runs leave it.
        step: StepIndex,
        /// Whether that step's reply is the recorded one.
        replied: bool,
        /// Which of the control executions there, 0-based.
        control: u32,
        /// Which of the repeats, 0-based.
        index: u32,
    },
    /// An injected run less one injection.
    Without {
        /// That run.
        of: RunId,
        /// The injection that is left out, by its index in the plan.
        injection: u32,
        /// The agent for which it is.
        agent: AgentName,
        /// The agent's instance, 0-based.
        instance: u32,
    },
}

/// How a cell's program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HowEnded {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// It ran out of time and was ended with its group.
    TimedOut,
    /// It made more model calls than it may and was ended with its group.
    TooManyCalls,
    /// It left the beginning that it should have shared and was ended with its group.
    Diverged,
}

/// What an injected run is counted as: each in one class, never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The injection, and nothing else, turned success into failure.
    Verified,
    /// Delivered, and still a success.
    Benign,
    /// No altered byte was delivered.
    NotInjected,
    /// A manipulator failed and its step passed untouched.
    ManipulatorFailed,
    /// The wire cannot tell which agent or call was hit.
    AmbiguousAgent,
    /// The upstream refused a request as an edit had made it.
    EditRefused,
    /// The upstream failed for its own reasons.
    InfraError,
    /// The program ran out of time or of calls.
    Timeout,
    /// The program ended by an error of its own.
    Crashed,
    /// The run left the prefix that it should have shared.
    Diverged,
    /// The outcome flipped, and the same injection passed at another time: it cannot be shown that it turned the outcome.
    FlakyTask,
    /// A planted fault was delivered, and the outcome flipped: no agent's error, so no label.
    Fault,
    /// The check could not tell.
    Unchecked,
    /// The outcome flipped; too many of the runs that should show why say nothing.
    Void,
    /// The outcome flipped; what was executed does not show, or not yet, that the injection did it.
    Unproven,
}

impl Class {
    /// Every class, as reports list them.
    pub const ALL: [Class; 15] = [
        Class::Verified,
        Class::Benign,
        Class::NotInjected,
        Class::ManipulatorFailed,
        Class::AmbiguousAgent,
        Class::EditRefused,
        Class::InfraError,
        Class::Timeout,
        Class::Crashed,
        Class::Diverged,
        Class::FlakyTask,
        Class::Fault,
        Class::Unchecked,
        Class::Void,
        Class::Unproven,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Class::Verified => "verified",
            Class::Benign => "benign",
            Class::NotInjected => "not_injected",
            Class::ManipulatorFailed => "manipulator_failed",
            Class::AmbiguousAgent => "ambiguous_agent",
            Class::EditRefused => "edit_refused",
            Class::InfraError => "infra_error",
            Class::Timeout => "timeout",
            Class::Crashed => "crashed",
            Class::Diverged => "diverged",
            Class::FlakyTask => "flaky_task",
            Class::Fault => "fault",
            Class::Unchecked => "unchecked",
            Class::Void => "void",
            Class::Unproven => "unproven",
        }
    }
}

/// The label that was ruled when the cell ended.
fn read_label<'de, D: Deserializer<'de>>(file: D) -> Result<Option<Label>, D::Error> {
    Ok(Option::<LabelContent>::deserialize(file)?.map(Label::read_back))
}

impl EndedCell {
    /// The number of a control execution at its place.
    pub(super) fn control_number(&self) -> Option<u32> {
        if let Ran::Control { index, .. } = self.kind { Some(index) } else { None }
    }

    /// What the run came to, in words: how it ended where that says more than the checker's word. `wanted` is how its
    /// answer was looked for.
    pub(super) fn in_words(&self, wanted: Option<&Pattern>) -> String {
        match (self.defect(), self.ending) {
            (Some(Class::InfraError), _) => "the upstream left a call unanswered".to_owned(),
            (Some(Class::Timeout), HowEnded::TooManyCalls) => "it made more calls than `max_calls`".to_owned(),
            (Some(Class::Timeout), _) => format!("timed out after {:.1} s (`timeout_s`)", self.seconds),
            (Some(_), HowEnded::Exited(code)) => {
                format!("exited with {code}, which is none of `exit_codes`; output/{}.stderr has its words", self.run)
            }
            (Some(_), HowEnded::Signalled(signal)) => format!("was ended by signal {signal}"),
            _ => match wanted.filter(|_| self.answer.is_empty()) {
                Some(pattern) => {
                    format!("{}; nothing it said matches `{pattern}` (`verify.answer`)", self.outcome.evidence)
                }
                None => self.outcome.evidence.clone(),
            },
        }
    }

    /// Whether it ended in order and asked nothing.
    pub(super) fn was_silent(&self) -> bool {
        self.in_order && self.steps == 0
    }

    /// What keeps the run, whatever it achieved, from being evidence of anything.
    pub(super) fn defect(&self) -> Option<Class> {
        // A run that has left its prefix is refused all further calls, which looks like a failing upstream.
        if self.diverged.is_some() {
            return Some(Class::Diverged);
        }
        // Whatever the program made of it: its end is the edit's doing.
        if self.no_label == Some(NoLabel::EditRefused) {
            return Some(Class::EditRefused);
        }
        if self.upstream_failed || self.no_label == Some(NoLabel::InfraError) {
            return Some(Class::InfraError);
        }
        match self.ending {
            HowEnded::TimedOut | HowEnded::TooManyCalls => Some(Class::Timeout),
            HowEnded::Diverged => Some(Class::Diverged),
            HowEnded::Exited(_) if self.in_order => None,
            HowEnded::Exited(_) | HowEnded::Signalled(_) => Some(Class::Crashed),
        }
    }

    /// The class of an injected run as far as it can be told by itself; `None` where the outcome flipped.
    pub(super) fn class(&self) -> Option<Class> {
        let unlabelled = match self.no_label {
            Some(NoLabel::ManipulatorFailed | NoLabel::NotReadWhole) => Some(Class::ManipulatorFailed),
            Some(why) if why.is_about_identity() => Some(Class::AmbiguousAgent),
            Some(
                NoLabel::OnlyFaults | NoLabel::NotInjected | NoLabel::Note | NoLabel::Perturbed | NoLabel::Unanswered,
            ) => Some(Class::NotInjected),
            Some(NoLabel::InfraError) => Some(Class::InfraError),
            Some(NoLabel::EditRefused) => Some(Class::EditRefused),
            None if self.label.is_none() => Some(Class::NotInjected),
            Some(_) | None => None,
        };
        let only_faults =
            self.no_label == Some(NoLabel::FaultEnded) || (unlabelled == Some(Class::NotInjected) && self.faults);
        let unlabelled = unlabelled.filter(|_| !only_faults);
        self.defect().or(unlabelled).or(match self.outcome.verdict {
            Verdict::Success => Some(Class::Benign),
            Verdict::Unknown => Some(Class::Unchecked),
            Verdict::Failure => only_faults.then_some(Class::Fault),
        })
    }

    /// What the run says of a claim.
    pub(super) fn proof_sample(&self) -> ProofSample {
        match (self.defect(), self.outcome.verdict) {
            (Some(Class::Diverged), _) => ProofSample::Void(Void::Diverged),
            (Some(Class::Timeout), _) => ProofSample::Void(Void::TimedOut),
            (Some(Class::Crashed), _) => ProofSample::Void(Void::Crashed),
            (Some(_), _) => ProofSample::Void(Void::Unanswered),
            (None, Verdict::Success) => ProofSample::Passed,
            (None, Verdict::Failure) => ProofSample::Failed,
            (None, Verdict::Unknown) => ProofSample::Void(Void::NoVerdict),
        }
    }

    /// The same as an execution of an arm.
    pub(super) fn execution(&self) -> ArmExecution {
        ArmExecution { run: self.run.clone(), sample: self.proof_sample(), sitting: self.sitting.clone() }
    }

    /// Whether it is a run without injection that passed.
    pub(super) fn passed(&self) -> bool {
        self.defect().is_none() && self.outcome.verdict == Verdict::Success
    }

    /// Whether altered bytes were delivered, whatever came of the run.
    pub(super) fn was_delivered(&self) -> bool {
        self.faults || self.label.as_ref().is_some_and(|label| !label.errors.is_empty())
    }
}

#[cfg(test)]
#[path = "ended_tests.rs"]
pub(super) mod tests;
