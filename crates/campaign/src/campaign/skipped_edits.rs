//! Edits that could not be made, and why.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ended::EndedCell, funnel::ConcludedChain, rewriting::Rewriting};

/// A reason for which an edit could not be made.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SkippedEdit {
    /// What was to edit.
    pub manipulator: String,
    /// Why it did not.
    pub why: String,
    /// Injected runs in which it was so.
    pub runs: usize,
}

/// Edits that could not be made and questions for edits, added up.
#[derive(Debug, Default)]
pub(super) struct SkippedEditCounts {
    runs: BTreeMap<(String, String), usize>,
    /// What all injected runs asked.
    pub(super) rewriting: Rewriting,
}

impl SkippedEditCounts {
    /// Adds the injected runs of a chain.
    pub(super) fn add(&mut self, chain: &ConcludedChain) {
        for ended in chain.attempts.iter().filter_map(|attempt| attempt.ended.as_ref()) {
            self.rewriting.add(ended.rewriting);
            for edit in &ended.skipped_edits {
                *self.runs.entry(edit.clone()).or_default() += 1;
            }
        }
    }

    /// Why edits could not be made, most frequent first.
    pub(super) fn rows(self) -> Vec<SkippedEdit> {
        let row = |((manipulator, why), runs): ((String, String), usize)| SkippedEdit { manipulator, why, runs };
        let mut rows: Vec<_> = self.runs.into_iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.runs));
        rows
    }
}

/// Why edits of a run could not be made, in words.
pub(super) fn skip_reason(ended: &EndedCell) -> Option<String> {
    let words: Vec<_> = ended.skipped_edits.iter().map(|(operator, why)| format!("{operator}: {why}")).collect();
    (!words.is_empty()).then(|| words.join("; "))
}
