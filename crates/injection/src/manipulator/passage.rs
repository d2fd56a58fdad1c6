//! Passages of a text: its sentences and sections, and answers without some of them.

use super::shape::{TextShape, shape};
use super::{ManipulatorError, json_text};
use crate::surface::{Answer, RequiredFormat};

/// The sentences of a text with what follows them, so that together they are the text. A line end ends one too.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut ended = false;
        let end = rest.char_indices().find_map(|(at, c)| {
            if ended && !c.is_whitespace() && !matches!(c, '"' | '”' | ')' | '*') {
                return Some(at);
            }
            let follows = rest.get(at + c.len_utf8()..).unwrap_or_default();
            let at_stop = matches!(c, '.' | '!' | '?') && follows.starts_with([' ', '\n', '"', '”', ')', '*']);
            ended |= c == '\n' || (at_stop && !is_item(rest.get(..at).unwrap_or_default()));
            None
        });
        let (sentence, tail) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, ""));
        found.push(sentence);
        rest = tail;
    }
    found
}

/// Whether what stands before a stop is the number of a list's item.
fn is_item(before: &str) -> bool {
    let word = before.trim_start();
    !word.is_empty() && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The sections of a text with what follows them: parted by headings, else by empty lines, else lines.
pub(super) fn sections(text: &str) -> Vec<&str> {
    let is_heading = |line: &str| line.starts_with('#') || (line.starts_with("**") && line.trim_end().ends_with("**"));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let starts: Vec<bool> = if lines.iter().filter(|line| is_heading(line)).count() > 1 {
        lines.iter().map(|line| is_heading(line)).collect()
    } else if text.trim().contains("\n\n") {
        let blank = |at: usize| lines.get(at).is_some_and(|line| line.trim().is_empty());
        (0..lines.len()).map(|at| at > 0 && blank(at - 1) && !blank(at)).collect()
    } else {
        lines.iter().map(|_| true).collect()
    };
    let mut found: Vec<&str> = Vec::new();
    let mut from = 0;
    let mut at = 0;
    for (line, starts) in lines.iter().zip(starts) {
        if starts && at > from {
            found.extend(text.get(from..at));
            from = at;
        }
        at += line.len();
    }
    found.extend(text.get(from..).filter(|rest| !rest.is_empty()));
    found
}

/// The text without the pieces that `goes` says; `None` when none of them does.
pub(super) fn without(pieces: &[&str], goes: impl Fn(&str) -> bool) -> Option<String> {
    let mut kept = String::new();
    let mut gone = false;
    for piece in pieces {
        if !goes(piece) {
            kept.push_str(piece);
            continue;
        }
        gone = true;
        // The line ends with what stood before, now that the end of the line has gone.
        let ends = piece.get(piece.trim_end().len()..).unwrap_or_default();
        if ends.contains('\n') && !kept.is_empty() && !kept.ends_with('\n') {
            kept.truncate(kept.trim_end().len());
            kept.push_str(ends);
        }
    }
    gone.then(|| kept.trim_end().to_owned())
}

/// Edits each text of an answer; in a JSON answer each string value. Says whether any was edited.
///
/// # Errors
/// [`ManipulatorError::NotApplicable`] when JSON was asked for and the answer is none.
pub(super) fn edit(
    answer: &mut Answer,
    format: &RequiredFormat,
    edit: impl Fn(&str) -> Option<String>,
) -> Result<bool, ManipulatorError> {
    let mut found = false;
    for text in answer.message.texts_mut().filter(|text| !text.is_empty()) {
        let edited = match shape(text, format)? {
            TextShape::Text => edit(text),
            TextShape::Json => json_text::edit_strings(text, &edit),
        };
        if let Some(edited) = edited {
            found = true;
            *text = edited;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_the_whole_text() {
        for (text, expected) in [
            ("A is 3.5. B? “C!” D", vec!["A is 3.5. ", "B? ", "“C!” ", "D"]),
            ("1. Add 12.\n2. Stop", vec!["1. Add 12.\n", "2. Stop"]),
            ("é", vec!["é"]),
            ("", vec![]),
            ("a\n\nb", vec!["a\n\n", "b"]),
        ] {
            assert_eq!(sentences(text), expected, "{text}");
            assert_eq!(sentences(text).concat(), text);
        }
    }

    #[test]
    fn sections_are_the_whole_text() {
        for (text, expected) in [
            ("# A\nx\n# B\ny", vec!["# A\nx\n", "# B\ny"]),
            ("a\nb\n\nc\n\n\nd", vec!["a\nb\n\n", "c\n\n\n", "d"]),
            ("a\nb", vec!["a\n", "b"]),
            ("one", vec!["one"]),
            ("", vec![]),
        ] {
            assert_eq!(sections(text), expected, "{text}");
        }
    }
}
