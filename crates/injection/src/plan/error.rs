//! What is wrong with a plan: each problem with its place, the line it stands in, and what was probably meant.

use std::fmt;
use std::ops::Range;

/// Most problems of a file that are shown.
const SHOWN: usize = 50;
/// Most characters of a line that are shown.
const LINE_MAX: usize = 160;

/// One problem of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, in bytes of the plan's text.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without a hint.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Every problem of a plan, or of another TOML file. Shown as `FILE:LINE:COLUMN: what`, the line with a caret, and a hint; the first without the
/// word `error: `, which the caller writes, the others with it. Columns count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PlanError {
    file: String,
    text: String,
    /// The problems, in the order of their places.
    pub problems: Vec<Problem>,
}

impl PlanError {
    /// The problems of a text that was read from `file`; for any TOML file that is answered in this form.
    pub fn new(file: &str, text: &str, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        problems.dedup();
        Self { file: file.to_owned(), text: text.to_owned(), problems }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().take(SHOWN).enumerate() {
            if number > 0 {
                formatter.write_str("\n\nerror: ")?;
            }
            let place = SpanPlace::locate(&self.text, &problem.span);
            write!(
                formatter,
                "{}:{}:{}: {}",
                printable(&self.file),
                place.line,
                place.column,
                printable(&problem.message)
            )?;
            let margin = " ".repeat(place.line.to_string().len());
            let pad = " ".repeat(place.shown_column);
            let caret = "^".repeat(place.width);
            write!(formatter, "\n{margin} |\n{} | {}\n{margin} | {pad}{caret}", place.line, place.shown)?;
            if let Some(hint) = &problem.hint {
                write!(formatter, "\nhint: {}", printable(hint))?;
            }
        }
        match self.problems.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(formatter, "\n\nerror: {more} more problems in {}", printable(&self.file)),
        }
    }
}

/// The line number, from 1, of a place in a text.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// A span as a person sees it.
struct SpanPlace {
    line: usize,
    column: usize,
    /// The part of the line that is shown.
    shown: String,
    /// Where the caret starts in it, in characters.
    shown_column: usize,
    /// How many carets.
    width: usize,
}

impl SpanPlace {
    fn locate(text: &str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let column = text.get(line_start..start).unwrap_or_default().chars().count();
        let end = text.floor_char_boundary(span.end.clamp(start, line_start + line.len().max(start - line_start)));
        let width = text.get(start..end).unwrap_or_default().chars().count().max(1);
        // Of a long line a window is shown that has the place in its first half.
        let skipped = if line.chars().count() > LINE_MAX { column.saturating_sub(LINE_MAX / 2) } else { 0 };
        let shown: String = line.chars().skip(skipped).take(LINE_MAX).collect();
        let shown_column = column - skipped;
        let room = shown.chars().count().saturating_sub(shown_column).max(1);
        Self {
            line: line_of(text, start),
            column: column + 1,
            shown: printable(&shown),
            shown_column,
            width: width.min(room),
        }
    }
}

/// The text without characters that could steer a terminal, one for one.
pub(super) fn printable(text: &str) -> String {
    let hostile = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if hostile(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_problem_has_its_line_and_caret() {
        let text = "seed = 7\n[[injection]]\nägent = \"x\"\n";
        let problem = Problem::new(23..29, "unknown key `ägent`").hint("did you mean `agent`?");
        let error = PlanError::new("plans/mine.toml", text, vec![problem.clone(), problem]);
        assert_eq!(
            error.to_string(),
            "plans/mine.toml:3:1: unknown key `ägent`\n  |\n3 | ägent = \"x\"\n  | ^^^^^\nhint: did you mean `agent`?"
        );
    }

    #[test]
    fn hostile_text_does_not_reach_the_terminal() {
        let text = format!("a = \"\u{1b}[31m\u{202e}{}\"", "x".repeat(100_000));
        let error = PlanError::new("f\u{7}", &text, vec![Problem::new(0..text.len(), "bad \u{1b}")]).to_string();
        assert!(error.chars().all(|c| c == '\n' || !c.is_control()));
        assert!(error.len() < 1000);
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_is_shown(text in "\\PC{0,30}(\n\\PC{0,30}){0,3}", start in 0..200_usize, length in 0..200_usize) {
            let error = PlanError::new("f", &text, vec![Problem::new(start..start + length, "x")]);
            prop_assert!(error.to_string().contains('^'));
        }
    }
}
