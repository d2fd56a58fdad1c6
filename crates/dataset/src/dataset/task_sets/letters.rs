//! Questions with choices, as the checker `choice` reads them: a line a choice, `A) …`.

use crate::verify::{Check, Choice};

/// Letters of choices.
const LETTERS: &str = "ABCDEFGHIJ";

/// The question with its choices.
pub(super) fn question_text(question: &str, choices: &[&str]) -> String {
    let lines = LETTERS.chars().zip(choices).map(|(letter, choice)| format!("\n{letter}) {choice}"));
    lines.fold(question.to_owned(), |text, line| text + &line)
}

/// The letter at a place, 0-based.
pub(super) fn letter(place: usize) -> Option<String> {
    LETTERS.chars().nth(place).map(String::from)
}

/// The place of a letter, 0-based.
pub(super) fn place(text: &str) -> Option<usize> {
    LETTERS.chars().position(|letter| text.eq_ignore_ascii_case(letter.encode_utf8(&mut [0; 4])))
}

/// Choices that can be asked about: at least two, not more than there are letters, and none of them empty.
pub(super) fn usable(choices: Vec<&str>) -> Option<Vec<&str>> {
    let count = (2..=LETTERS.len()).contains(&choices.len());
    Some(choices).filter(|choices| count && choices.iter().all(|choice| !choice.is_empty()))
}

/// The checker, which is told the choices: a question may hold lines that look like some.
pub(super) fn check(choices: &[&str]) -> Check {
    Check::Choice(Choice { choices: choices.iter().map(|&choice| choice.to_owned()).collect() })
}
