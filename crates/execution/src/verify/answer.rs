//! Where in a text the answer stands: after a marker, in a box; and whether it is denied.

use crate::trajectory::patterns;

patterns! {
    /// `ANSWER: `, `The final answer is `, with or without Markdown.
    MARKER = {
    let link = r"(?:[:=]|(?:is|are|was|equals|(?:would|should|must)[ \t]+be)\b)[ \t]*:?";
    let word = r"\b(?:answer|result|solution|choice)\b";
    format!(r"(?i){word}[ \t]*\**[ \t]*{link}\**[ \t]*")
};

    /// A denial at the beginning of what a marker announces.
    DENIED = r"(?i)^\W*(?:not|never|neither|no longer|unknown|unclear|cannot|can't|isn't|n't|none|n/a)\b";

    /// `1,234,567` or `1 234` (thin or no-break space) or `1_234` or `1{,}234`.
    SEPARATOR = r"(?P<head>\b\d{1,3}|[^\d.,]\d{1,3})(?P<rest>(?:(?:,|\{,\}|\\,|[\u{00a0}\u{2009}\u{202f}_'’])\d{3})+)(?P<end>\b|$)";
}

/// How a text gives its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenAnswer<'t> {
    /// In its last box.
    Boxed(&'t str),
    /// After its last announcement, where there is no box.
    Stated(&'t str),
    /// It announces that there is none.
    Denied,
    /// It announces nothing: any part of it may be meant.
    Open,
}

/// How a text gives its answer: a box counts before an announcement.
pub(super) fn given_answer(text: &str) -> GivenAnswer<'_> {
    match (boxed(text), stated(text)) {
        (Some(boxed), _) => GivenAnswer::Boxed(boxed),
        (None, Some(stated)) => GivenAnswer::Stated(stated),
        (None, None) if denied(text) => GivenAnswer::Denied,
        (None, None) => GivenAnswer::Open,
    }
}

/// What the text says after its last announcement of an answer (`ANSWER: …`, `the answer is …`), to the end of that
/// line or, if nothing stands there, of the next one that is not empty. `None` without one, or if it is denied.
pub(super) fn stated(text: &str) -> Option<&str> {
    let after = announced(text)?;
    let said = after.lines().find(|line| !line.trim_matches(['*', ' ', '\t', ':', '`']).is_empty())?;
    if DENIED.is_match(said) {
        return None;
    }
    Some(said.trim())
}

/// Whether the last announcement of an answer is a denial: then no answer is given.
pub(super) fn denied(text: &str) -> bool {
    let after = announced(text).unwrap_or_default();
    DENIED.is_match(after.lines().next().unwrap_or_default())
}

/// What follows the last announcement of an answer.
fn announced(text: &str) -> Option<&str> {
    let last = MARKER.find_iter(text).last()?;
    text.get(last.end()..)
}

/// The content of the last `\boxed{…}` (or `\fbox{…}`), braces balanced.
pub(super) fn boxed(text: &str) -> Option<&str> {
    let starts = [r"\boxed{", r"\fbox{", r"\boxed {"];
    let (at, start) = starts.iter().filter_map(|start| text.rfind(start).map(|at| (at, start))).max()?;
    let body = text.get(at + start.len()..)?;
    let mut depth = 1;
    for (place, c) in body.char_indices() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 {
            return body.get(..place).map(str::trim);
        }
    }
    None
}

/// The text without thousands separators. Not as `WrittenNumber` has them: answers come with blanks, thin ones and apostrophes
/// between their thousands, too.
pub(super) fn without_separators(text: &str) -> String {
    SEPARATOR
        .replace_all(text, |found: &regex::Captures<'_>| {
            let whole = found.get(0);
            let after = whole.and_then(|whole| text.get(whole.end()..)).unwrap_or_default();
            let broken = after.strip_prefix(',').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            if broken {
                return whole.map_or(String::new(), |whole| whole.as_str().to_owned());
            }
            let digits = found.name("rest").map_or("", |rest| rest.as_str());
            let head = found.name("head").map_or("", |head| head.as_str());
            format!("{head}{}", digits.chars().filter(char::is_ascii_digit).collect::<String>())
        })
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_answers() {
        for (text, expected) in [
            ("so\nANSWER: 84\n", Some("84")),
            ("The answer is 42 because 6 * 7 = 42.", Some("42 because 6 * 7 = 42.")),
            ("**Final Answer:** 12", Some("12")),
            ("Final answer:\n\n  7 apples", Some("7 apples")),
            ("Answer: 3\nNo wait. Answer: 4", Some("4")),
            ("The answer is not 42.", None),
            ("Answer: unknown", None),
            ("I will answer now", None),
            ("no marker", None),
        ] {
            assert_eq!(stated(text), expected, "{text}");
        }
    }

    #[test]
    fn boxes() {
        for (text, expected) in [
            (r"so $\boxed{5}$", Some("5")),
            (r"\boxed{\frac{1}{2}} and then \boxed{\sqrt{3}}", Some(r"\sqrt{3}")),
            (r"\boxed{\text{(C)}}", Some(r"\text{(C)}")),
            (r"\boxed{5", None),
            ("none", None),
        ] {
            assert_eq!(boxed(text), expected, "{text}");
        }
    }

    #[test]
    fn separators() {
        for (text, expected) in [
            ("1,234,567.5", "1234567.5"),
            ("1,23", "1,23"),
            ("$1,000", "$1000"),
            ("1{,}000", "1000"),
            ("1\u{202f}000", "1000"),
            ("(1,200)", "(1200)"),
            ("1, 200", "1, 200"),
            ("x1,000", "x1000"),
            ("12,345,67", "12,345,67"),
        ] {
            assert_eq!(without_separators(text), expected, "{text}");
        }
    }
}
