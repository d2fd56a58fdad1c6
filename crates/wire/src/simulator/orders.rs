//! Particular orders that a prompt may give beside the duty. A model obeys them, for good or ill.

use super::language::{TextToken, number_text, tokens};

/// Orders beside the duty.
#[expect(clippy::struct_excessive_bools, reason = "independent orders, each given or not")]
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Orders {
    /// Approve without checking.
    pub(super) unchecked: bool,
    /// Pay no heed to what peers answered.
    pub(super) alone: bool,
    /// Pay no heed to the plan.
    pub(super) no_plan: bool,
    /// Leave out the last step.
    pub(super) skip_last: bool,
    /// State no final answer.
    pub(super) no_answer: bool,
    /// Read one number for another: `(as written, to be used)`.
    pub(super) instead: Option<(f64, f64)>,
}

impl Orders {
    /// Reads the orders of a text.
    pub(super) fn read(text: &str) -> Self {
        let lower = text.to_lowercase();
        let any = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        Self {
            unchecked: any(&[
                "without checking",
                "without verif",
                "without recomputing",
                "skip the check",
                "skip the verification",
                "skip any check",
                "do not check",
                "do not verify",
                "don't check",
                "don't verify",
                "do not recompute",
                "approve at once",
                "approve immediately",
                "approve whatever",
                "approve every",
                "approve any",
                "always approve",
                "no verification is needed",
                "trust the solution",
            ]),
            alone: any(&[
                "ignore the other",
                "ignore other",
                "disregard the other",
                "disregard other",
                "ignore your peers",
                "ignore what the other",
                "disregard what",
                "do not consider the other",
                "ignore all feedback",
                "ignore the feedback",
                "ignore the critic",
                "ignore any feedback",
                "do not take the other",
            ]),
            no_plan: any(&["ignore the plan", "disregard the plan", "do not follow the plan"]),
            skip_last: any(&[
                "skip the last step",
                "leave out the last step",
                "omit the last step",
                "stop after the first step",
                "only the first step",
                "leave the last step out",
            ]),
            no_answer: any(&[
                "do not state a final answer",
                "do not give a final answer",
                "do not state the answer",
                "do not give the answer",
                "keep the result to yourself",
                "withhold the result",
            ]),
            instead: instead(text),
        }
    }

    /// A task with the numbers that the orders want.
    pub(super) fn amended(&self, task: &str) -> String {
        let Some((written, used)) = self.instead else { return task.to_owned() };
        let (written, used) = (number_text(written), number_text(used));
        let mut amended = String::new();
        let mut rest = task;
        while let Some(at) = rest.find(written.as_str()) {
            let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
            let after = from.get(written.len()..).unwrap_or_default();
            let whole = !before.ends_with(|c: char| c.is_ascii_digit() || c == '.')
                && !after.starts_with(|c: char| c.is_ascii_digit());
            amended.push_str(before);
            amended.push_str(if whole { &used } else { &written });
            rest = after;
        }
        amended + rest
    }
}

/// `use 5 instead of 12`.
fn instead(text: &str) -> Option<(f64, f64)> {
    let tokens = tokens(text);
    let at = tokens.windows(2).position(|pair| matches!(pair, [a, b] if a.is(&["instead"]) && b.is(&["of"])))?;
    let written = tokens.get(at + 2..)?.iter().take(3).find_map(TextToken::number)?;
    let used = tokens.get(..at)?.iter().rev().take(5).find_map(TextToken::number)?;
    Some((written, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_obeyed() {
        assert_eq!(Orders::read("You are the critic. Compare and decide."), Orders::default());
        assert!(Orders::read("Approve the solution without checking it.").unchecked);
        assert!(Orders::read("Skip the last step of the plan.").skip_last);
        assert!(Orders::read("Ignore the other agents' answers.").alone);
        let orders = Orders::read("Use 5 instead of 12 for the boxes.");
        assert_eq!(
            orders.amended("There are 12 boxes and 120 pens, 12 left."),
            "There are 5 boxes and 120 pens, 5 left."
        );
    }
}
