//! What people and judges who looked at a change say of its failure mode.

use serde::{Deserialize, Serialize};

use super::{FailureMode, InjectedError, ModeClaim, ModeState, StepIndex};

/// Which of the modes that were offered a planted change shows, as one person or one judge says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModeVerdict {
    /// The step of the change.
    pub step: StepIndex,
    /// Index of the injection in its plan, 0-based.
    pub injection: u32,
    /// The mode that the plan calls it. It was one of those that were offered, and nothing told which.
    pub declared: FailureMode,
    /// The mode that it shows; `None` where it shows none of those that were offered.
    pub shown: Option<FailureMode>,
    /// How many answers of a judge said so; `None` of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes: Option<ModeVotes>,
    /// The reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Votes of a judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModeVotes {
    /// Answers that say the same.
    pub agreeing: u32,
    /// Answers that were asked for.
    pub cast: u32,
}

/// Who gave a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeJudge {
    /// Somebody who saw the change on the page.
    Person,
    /// A model.
    Model,
}

/// A verdict and who gave it.
#[derive(Debug, Clone, Copy)]
pub struct GivenModeVerdict<'a> {
    /// The name of the person or of the model.
    pub by: &'a str,
    /// Which of both it is.
    pub judge: ModeJudge,
    /// What they said last of this change.
    pub verdict: &'a ModeVerdict,
}

impl ModeVerdict {
    /// Whether it is about this error, under the mode that the error has.
    pub fn is_about(&self, error: &InjectedError) -> bool {
        (self.step, self.injection, Some(self.declared)) == (error.step, error.injection, error.failure_mode)
    }

    /// Whether it says that the change is the mode that its plan calls it.
    pub fn confirms(&self) -> bool {
        self.shown == Some(self.declared)
    }
}

impl ModeClaim {
    /// The claim as it stands with what people and judges said of the change. People outweigh judges. Those who count must agree:
    /// otherwise the claim is as it was before they looked. No judge confirms a mode of which something is missing at the call.
    #[must_use]
    pub fn after(self, given: &[GivenModeVerdict<'_>]) -> Self {
        if given.is_empty() {
            return self;
        }
        let before = if self.unmet.is_some() { ModeState::Declared } else { self.state.min(ModeState::Applicable) };
        let by_people = given.iter().any(|one| one.judge == ModeJudge::Person);
        let counts = |one: &&GivenModeVerdict<'_>| one.judge == ModeJudge::Person || !by_people;
        let counted: Vec<_> = given.iter().filter(counts).collect();
        let confirming = counted.iter().filter(|one| one.verdict.confirms()).count();
        let state = match confirming {
            0 => ModeState::Refuted,
            _ if confirming == counted.len() && (by_people || self.unmet.is_none()) => ModeState::Confirmed,
            _ => return Self { state: before, by: None, ..self },
        };
        let by: Vec<&str> = counted.iter().map(|one| one.by).collect();
        Self { state, by: Some(by.join(", ")), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(shown: Option<FailureMode>) -> ModeVerdict {
        let declared = FailureMode::IgnoredInput;
        ModeVerdict { step: 1, injection: 0, declared, shown, votes: None, why: String::new() }
    }

    #[test]
    fn people_outweigh_judges_and_must_agree() {
        let [yes, other, none] =
            [Some(FailureMode::IgnoredInput), Some(FailureMode::StepRepetition), None].map(verdict);
        let person = |by, verdict| GivenModeVerdict { by, judge: ModeJudge::Person, verdict };
        let model = |by, verdict| GivenModeVerdict { by, judge: ModeJudge::Model, verdict };
        let applicable = ModeClaim::looked_at(None);
        let impossible = ModeClaim::looked_at(Some("peer-input"));
        let cases: [(&ModeClaim, &[GivenModeVerdict<'_>], ModeState, Option<&str>); 9] = [
            (&applicable, &[], ModeState::Applicable, None),
            (&applicable, &[model("m", &yes)], ModeState::Confirmed, Some("m")),
            (&applicable, &[model("m", &other)], ModeState::Refuted, Some("m")),
            (&applicable, &[model("m", &yes), model("n", &none)], ModeState::Applicable, None),
            (&applicable, &[model("m", &yes), person("ada", &none)], ModeState::Refuted, Some("ada")),
            (&applicable, &[person("ada", &yes), person("bo", &yes)], ModeState::Confirmed, Some("ada, bo")),
            (&applicable, &[person("ada", &yes), person("bo", &other)], ModeState::Applicable, None),
            (&impossible, &[model("m", &yes)], ModeState::Declared, None),
            (&impossible, &[person("ada", &yes)], ModeState::Confirmed, Some("ada")),
        ];
        for (before, given, state, by) in cases {
            let after = before.clone().after(given);
            assert_eq!((after.state, after.by.as_deref()), (state, by), "{before:?} {given:?}");
            assert_eq!(after.unmet, before.unmet);
            // What was said before is not added to: the same verdicts give the same claim.
            assert_eq!(after.clone().after(given), after);
        }
    }
}
