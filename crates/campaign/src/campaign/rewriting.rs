//! What models were asked for edits: a share of answers that is of no use is a fact about the model that rewrites.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::recording::Recording;

/// What a model was asked for edits, and what came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rewriting {
    /// Questions.
    #[serde(rename = "asked")]
    pub questions: u64,
    /// Answers that became an edit.
    pub used: u64,
    /// Answers that say that the failure mode does not apply.
    #[serde(default)]
    pub declined: u64,
    /// Answers that could not be used: no JSON, no change, a leaked instruction, a refusal.
    pub refused: u64,
    /// Questions without an answer.
    pub unanswered: u64,
}

impl Rewriting {
    /// What a run says of it.
    pub(super) fn from_recording(recording: &Recording) -> Self {
        let questions = &recording.manipulator_questions;
        let count = |number: usize| number as u64;
        let unanswered = count(questions.iter().filter(|question| question.error.is_some()).count());
        // The last answer to an edit's questions is used, where the edit was made; all others were refused.
        let edits: BTreeSet<_> = questions
            .iter()
            .filter(|question| question.error.is_none())
            .map(|question| (question.step, question.attempt, question.injection))
            .collect();
        let failure = |(step, attempt, injection): &(u32, u32, u32)| {
            let failures = &recording.manipulator_failures;
            failures.iter().find(|one| (one.step, one.attempt, one.injection) == (*step, *attempt, *injection))
        };
        let used = count(edits.iter().filter(|edit| failure(edit).is_none()).count());
        let declined = count(edits.iter().filter(|edit| failure(edit).is_some_and(|one| one.nothing)).count());
        let asked = count(questions.len());
        Self { questions: asked, used, declined, refused: asked - unanswered - used - declined, unanswered }
    }

    /// Adds what another run asked.
    pub(super) fn add(&mut self, other: Self) {
        self.questions += other.questions;
        self.used += other.used;
        self.declined += other.declined;
        self.refused += other.refused;
        self.unanswered += other.unanswered;
    }
}
