//! Questions with choices, as the checker `choice` reads them: a line a choice, `A) …`.

use crate::verify::{Check, Choice};

/// Letters of choices.
pub(super) const LETTERS: &str = "ABCDEFGHIJ";

/// The question with its choices.
pub(super) fn question_text(question: &str, choices: &[&str]) -> String {
    let lines = LETTERS.chars().zip(choices).map(|(letter, choice)| format!("\n{letter}) {choice}"));
    lines.fold(question.to_owned(), |text, line| text + &line)
}

/// The letter at a place, 0-based.
pub(super) fn letter(place: usize) -> Option<String> {
    LETTERS.chars().nth(place).map(String::from)
}

/// The checker, which is told the choices: a question may hold lines that look like some.
pub(super) fn check(choices: &[&str]) -> Check {
    Check::Choice(Choice { choices: choices.iter().map(|&choice| choice.to_owned()).collect() })
}
