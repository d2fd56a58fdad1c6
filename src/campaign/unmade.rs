//! Edits that could not be made, and what models were asked for edits: a share of answers that is of no use is a fact about
//! the model that rewrites.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ended::EndedCell, funnel::ConcludedChain};
use crate::recording::Recording;

/// A reason for which an edit could not be made.
#[derive(Debug, Serialize)]
pub struct Unmade {
    /// What was to edit.
    pub manipulator: String,
    /// Why it did not.
    pub why: String,
    /// Injected runs in which it was so.
    pub runs: usize,
}

/// What a model was asked for edits, and what came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewriting {
    /// Questions.
    pub asked: u64,
    /// Answers that became an edit.
    pub used: u64,
    /// Answers that could not be used: no JSON, no change, a leaked instruction, a refusal.
    pub refused: u64,
    /// Questions without an answer.
    pub unanswered: u64,
}

impl Rewriting {
    /// What a run says of it.
    pub(super) fn of(recording: &Recording) -> Self {
        let questions = &recording.manipulator_questions;
        let count = |number: usize| number as u64;
        let unanswered = count(questions.iter().filter(|question| question.error.is_some()).count());
        // The last answer to an edit's questions is used, where the edit was made; all others were refused.
        let edits: BTreeSet<_> = questions
            .iter()
            .filter(|question| question.error.is_none())
            .map(|question| (question.step, question.attempt, question.injection))
            .collect();
        let failed = |(step, attempt, injection): &(u32, u32, u32)| {
            let failures = &recording.manipulator_failures;
            failures.iter().any(|one| (one.step, one.attempt, one.injection) == (*step, *attempt, *injection))
        };
        let used = count(edits.iter().filter(|edit| !failed(edit)).count());
        let asked = count(questions.len());
        Self { asked, used, refused: asked - unanswered - used, unanswered }
    }

    fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.used += other.used;
        self.refused += other.refused;
        self.unanswered += other.unanswered;
    }
}

/// Edits that could not be made and questions for edits, added up.
#[derive(Debug, Default)]
pub(super) struct UnmadeSums {
    runs: BTreeMap<(String, String), usize>,
    /// What all injected runs asked.
    pub(super) rewriting: Rewriting,
}

impl UnmadeSums {
    /// Adds the injected runs of a chain.
    pub(super) fn add(&mut self, chain: &ConcludedChain) {
        for ended in chain.attempts.iter().filter_map(|attempt| attempt.ended.as_ref()) {
            self.rewriting.add(ended.rewriting);
            for edit in &ended.unmade {
                *self.runs.entry(edit.clone()).or_default() += 1;
            }
        }
    }

    /// Why edits could not be made, most frequent first.
    pub(super) fn rows(self) -> Vec<Unmade> {
        let row = |((manipulator, why), runs): ((String, String), usize)| Unmade { manipulator, why, runs };
        let mut rows: Vec<_> = self.runs.into_iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.runs));
        rows
    }
}

/// Why edits of a run could not be made, in words.
pub(super) fn of(ended: &EndedCell) -> Option<String> {
    let words: Vec<_> = ended.unmade.iter().map(|(operator, why)| format!("{operator}: {why}")).collect();
    (!words.is_empty()).then(|| words.join("; "))
}
