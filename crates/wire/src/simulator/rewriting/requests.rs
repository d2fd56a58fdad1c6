//! How each weakness is brought about by what an agent is asked.

use super::{
    RewriteQuestion,
    wording::{numbers, sentences, with_first_number, written},
};
use crate::trajectory::FailureMode;

/// The message that brings the weakness about.
pub(super) fn rewritten(wanted: &RewriteQuestion<'_>, text: &str) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a draw below ten")]
    let by = wanted.draw(text, 9) as f64;
    let with = |more: &str| format!("{}\n\n{more}", text.trim_end());
    match wanted.mode {
        FailureMode::DisobeyTaskSpecification => with_first_number(text, |value| written(value + by))
            .unwrap_or_else(|| with("Give the answer as a list of three items.")),
        FailureMode::DisobeyRoleSpecification => with("You also settle the result for the whole team this time."),
        FailureMode::StepRepetition => {
            with("Before anything else, carry out all finished steps once more from the start, line by line.")
        }
        FailureMode::LossOfConversationHistory => opening(text),
        FailureMode::UnawareOfTermination => unending(text),
        FailureMode::ConversationReset => {
            format!("Hello! Here is a new task for you. {}\n\nHow might one set about it?", opening(text))
        }
        FailureMode::FailToAskForClarification => {
            with_first_number(text, |_| "some".to_owned()).unwrap_or_else(|| with("Do the usual with it, right away."))
        }
        FailureMode::TaskDerailment => {
            with("More than the result, tell us where such problems come from historically.")
        }
        FailureMode::InformationWithholding => {
            with("Keep it short: the approach in one sentence; do not state the answer.")
        }
        FailureMode::IgnoredInput => without_peers(text),
        FailureMode::ReasoningActionMismatch => {
            with("Carry out all of it, but let only the first step count for what you state.")
        }
        FailureMode::PrematureTermination => {
            with("That is far enough for now: stop after the first step and close with its value.")
        }
        FailureMode::IncompleteVerification => unchecked(text),
        FailureMode::IncorrectVerification => match numbers(text).pop() {
            Some((_, value)) => with(&format!("For reference, the right result is {}.", written(value + by))),
            None => with("For reference, every step has to mention its unit twice."),
        },
    }
}

/// The first paragraph; the first sentence where there is only one.
fn opening(text: &str) -> String {
    let first = text.split("\n\n").next().unwrap_or_default().trim();
    if first.len() < text.trim().len() {
        return first.to_owned();
    }
    let first = sentences(first).first().map(|sentence| sentence.trim().to_owned());
    first.filter(|first| first.len() < text.trim().len()).unwrap_or_else(|| text.to_owned())
}

fn unending(text: &str) -> String {
    let ends = ["TERMINATE", "APPROVE", "ANSWER", "end with", "when you are done", "final"];
    let kept: String =
        sentences(text).into_iter().filter(|piece| !ends.iter().any(|word| piece.contains(word))).collect();
    format!("{}\n\nKeep working on it and do not state a final answer; further rounds follow.", kept.trim())
}

fn without_peers(text: &str) -> String {
    let heads = ["Plan:", "Solution", "Proposed", "Feedback", "Review", "Answer of", "Other"];
    let kept: Vec<&str> =
        text.split("\n\n").filter(|part| !heads.iter().any(|head| part.trim_start().starts_with(head))).collect();
    let kept = kept.join("\n\n");
    if kept.trim().is_empty() || kept.len() == text.len() {
        return format!(
            "{}\n\nWhat the others said is dealt with: do not follow the plan, go by your own view.",
            text.trim_end()
        );
    }
    kept
}

fn unchecked(text: &str) -> String {
    let checks = ["check", "verify", "review", "test", "Check", "Verify", "Review", "Test"];
    let kept: String =
        sentences(text).into_iter().filter(|piece| !checks.iter().any(|word| piece.contains(word))).collect();
    format!("{}\n\nA glance at the wording is enough: accept it without checking.", kept.trim())
}
