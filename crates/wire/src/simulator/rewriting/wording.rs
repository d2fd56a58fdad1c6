//! Pieces of texts and numbers that all weaknesses work with.

use std::ops::Range;

use crate::trajectory::WrittenNumber;

/// The numbers of a text, with their places; digits that are part of a name or of a list's `1.` do not count.
pub(super) fn numbers(text: &str) -> Vec<(Range<usize>, f64)> {
    let counts = |number: WrittenNumber<'_>| {
        let (before, after) = (number.before(), number.after());
        let is_item = after.starts_with('.') && (before.is_empty() || before.ends_with('\n'));
        let in_name = before.ends_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            || after.starts_with(|c: char| c.is_ascii_alphabetic());
        let value = number.value();
        (!is_item && !in_name && !number.is_piece()).then_some((number.place, value))
    };
    WrittenNumber::all(text).filter_map(counts).collect()
}

/// A number as it is written.
pub(super) fn written(value: f64) -> String {
    crate::simulator::language::number_text(value)
}

/// The text with the last number of its last line that has one changed to another value.
pub(super) fn with_last_number(text: &str, change: impl Fn(f64) -> f64) -> Option<String> {
    let (place, value) = numbers(text).pop()?;
    let mut changed = text.to_owned();
    changed.replace_range(place, &written(change(value)));
    Some(changed)
}

/// The text with its first number changed.
pub(super) fn with_first_number(text: &str, change: impl Fn(f64) -> String) -> Option<String> {
    let (place, value) = numbers(text).into_iter().next()?;
    let mut changed = text.to_owned();
    changed.replace_range(place, &change(value));
    Some(changed)
}

/// Every line that is not empty.
pub(super) fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim().is_empty()).collect()
}

/// Whether a line states a final result or ends the work.
pub(super) fn closes(line: &str) -> bool {
    let marks = ["ANSWER", "TERMINATE", "Final Answer", "\\boxed", "####", "APPROVE"];
    marks.iter().any(|mark| line.contains(mark))
}

/// The text in which the closing line states this number; the line is added where there is none.
pub(super) fn stating(text: &str, value: f64) -> String {
    let mut stated: Vec<String> = text.lines().map(str::to_owned).collect();
    let closing = stated.iter().rposition(|line| closes(line) && !numbers(line).is_empty());
    match closing.and_then(|at| stated.get_mut(at)) {
        Some(line) => *line = with_last_number(line, |_| value).unwrap_or_default(),
        None => stated.push(format!("ANSWER: {}", written(value))),
    }
    stated.join("\n")
}

/// The sentences of a text; line ends end a sentence too.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    text.split_inclusive(['.', '!', '?', '\n']).collect()
}
