//! `normalised`: the same words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Case, UnnamedVerdict, answer};

/// Compares words, without case, punctuation, blanks, articles and thousands separators.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Normalised {
    /// Whether it suffices that the output contains the expected words in sequence and does not deny them.
    pub contains: bool,
}

impl Normalised {
    pub(super) fn compare(&self, case: &Case<'_>) -> UnnamedVerdict {
        let expected = words(case.expected);
        if expected.is_empty() {
            return UnnamedVerdict::unreadable("text with words", case);
        }
        let stated = answer::stated(case.output).unwrap_or(case.output);
        let solved = words(stated) == expected
            || words(case.output) == expected
            || (self.contains && holds(&words(case.output), &expected));
        UnnamedVerdict::compared(solved, stated, case)
    }
}

/// Lower-case words without punctuation and articles.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = answer::without_separators(text).to_lowercase();
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '%' | '+' | '-' | '.' | '/');
    let words = text.split(|c: char| !kept(c)).map(|word| {
        let word = word.trim_start_matches(['.', '/']).trim_end_matches(['.', '-', '/']);
        // A dash is a sign before a digit only.
        let unsigned = word.trim_start_matches('-');
        if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') { word } else { unsigned }
    });
    words.filter(|word| !word.is_empty() && !matches!(*word, "a" | "an" | "the")).map(str::to_owned).collect()
}

/// Whether the words stand in a row somewhere, not denied.
fn holds(output: &[String], expected: &[String]) -> bool {
    let places = output.windows(expected.len()).enumerate().filter(|(_, window)| *window == expected);
    let mut places = places.map(|(place, _)| {
        let before = output.get(place.saturating_sub(3)..place).unwrap_or_default();
        !before.iter().any(|word| matches!(word.as_str(), "not" | "never" | "no" | "isn" | "wasn" | "cannot"))
    });
    // One plain denial is enough to doubt the rest.
    places.next().is_some_and(|first| first && places.all(|plain| plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Verdict::{Failure, Success, Unknown};

    #[test]
    fn hard_cases() {
        let table = [
            ("Paris", "  the PARIS. ", Success),
            ("The Eiffel Tower", "Eiffel tower!", Success),
            ("1000", "1,000", Success),
            ("Paris", "Final answer: Paris", Success),
            ("Paris", "The answer is **Paris**.", Success),
            ("Paris", "It is Paris, I think", Failure),
            ("-3", "3", Failure),
            ("3.5", "35", Failure),
            ("50%", "50", Failure),
            ("...", "anything", Unknown),
            ("Paris", "", Failure),
            ("Zürich", "zürich", Success),
        ];
        crate::verify::check_table(|case| Normalised::default().compare(case), &table);
        let table = [
            ("Paris", "It is Paris, I think", Success),
            ("Paris", "It is not Paris", Failure),
            ("Paris", "It isn't in Paris at all", Failure),
            ("Paris", "Comparison", Failure),
            ("New York", "York is new", Failure),
            ("12", "between 112 and 120", Failure),
        ];
        crate::verify::check_table(|case| Normalised { contains: true }.compare(case), &table);
    }
}
