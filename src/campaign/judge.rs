//! Whether a program solved its task.

use std::path::Path;

use super::{definition::Campaign, task::Task};
use crate::trajectory::{Outcome, Reason, Verdict};

/// The verdict on a program's output, and what was read as its answer.
pub(super) async fn judge(_campaign: &Campaign, output: &[u8], task: &Task, _run: &Path) -> (Outcome, String) {
    let output = String::from_utf8_lossy(output);
    let said = output.lines().rev().find_map(|line| line.trim().strip_prefix("ANSWER:"));
    let answer = said.unwrap_or_default().trim().to_owned();
    let verdict = if answer == task.answer { Verdict::Success } else { Verdict::Failure };
    let evidence = format!("expected `{}`, got `{answer}`", task.answer);
    (Outcome { verdict, reason: Some(Reason::Verifier), evidence }, answer)
}
