//! How replies are set: blanks, line ends, a small first letter. What of it is otherwise at altered steps than at the twins' tells
//! them without a look at a word.

use crate::dataset::{SampleStep, statistics::TwinPair};

/// What a text may have: its name in words, and how it is told.
type Feature = (&'static str, fn(&str) -> bool);

const FEATURES: &[Feature] = &[
    ("a doubled blank", |text| text.trim().contains("  ")),
    ("a blank at the end of a line", |text| text.lines().any(|line| line.ends_with([' ', '\t']))),
    ("a blank at the end", |text| text.ends_with([' ', '\t'])),
    ("a line end at the end", |text| text.ends_with(['\n', '\r'])),
    ("a blank at the beginning", |text| text.starts_with(char::is_whitespace)),
    ("a blank before a line end", |text| text.contains(" \n")),
    ("an empty line", |text| text.trim().contains("\n\n")),
    ("several empty lines", |text| text.contains("\n\n\n")),
    ("a blank of another kind", |text| text.chars().any(|c| c.is_whitespace() && !c.is_ascii())),
    ("a tab", |text| text.contains('\t')),
    ("a carriage return", |text| text.contains('\r')),
    ("a character without width", |text| {
        text.chars().any(|c| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}'))
    }),
    ("a small first letter", |text| text.trim_start().starts_with(char::is_lowercase)),
    ("no mark at its end", |text| text.trim_end().ends_with(char::is_alphanumeric)),
    ("capitals alone", |text| text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)),
    ("curly quotes", |text| text.contains(['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}'])),
    ("a long dash", |text| text.contains(['\u{2013}', '\u{2014}', '\u{2212}'])),
    ("letters that are none of ASCII", |text| text.chars().any(|c| c.is_alphanumeric() && !c.is_ascii())),
];

/// How often replies have each feature: altered ones, and the twins'.
#[derive(Default)]
pub(super) struct TypedReplies {
    pairs: u32,
    with: [(u32, u32); FEATURES.len()],
}

impl TypedReplies {
    pub(super) fn add(&mut self, pair: &TwinPair<'_>) {
        let (Some(altered), Some(clean)) = (text(pair.step), text(pair.other)) else { return };
        self.pairs += 1;
        for ((_, has), (own, other)) in FEATURES.iter().zip(&mut self.with) {
            *own += u32::from(has(altered));
            *other += u32::from(has(clean));
        }
    }

    /// The feature that tells most: its name, and the area under the curve.
    pub(super) fn best(&self) -> Option<(&'static str, f64)> {
        let share = |count: u32| f64::from(count) / f64::from(self.pairs.max(1));
        let areas = FEATURES
            .iter()
            .zip(&self.with)
            .map(|((name, _), (own, other))| (*name, 0.5 + (share(*own) - share(*other)).abs() / 2.0));
        areas.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|_| self.pairs > 0)
    }
}

/// What a step was answered, where that is words.
fn text(step: &SampleStep) -> Option<&str> {
    step.output.as_ref().map(|said| said.text.as_str()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_told() {
        let plain = "It adds 44 pears.\nThen it rests.";
        assert!(FEATURES.iter().all(|(_, has)| !has(plain)));
        for (text, name) in [
            ("It adds  44 pears.", "a doubled blank"),
            ("It adds 44 pears. ", "a blank at the end"),
            ("It adds 44 pears.\n", "a line end at the end"),
            ("It adds\u{a0}44 pears.", "a blank of another kind"),
            ("It adds 44 pears.\r\nThen it rests.", "a carriage return"),
            ("it adds 44 pears.", "a small first letter"),
            ("It adds 44 pears", "no mark at its end"),
            ("It adds\u{200b} 44 pears.", "a character without width"),
            ("IT ADDS 44.", "capitals alone"),
        ] {
            let found: Vec<_> = FEATURES.iter().filter(|(_, has)| has(text)).map(|(name, _)| *name).collect();
            assert!(found.contains(&name), "{name}: {found:?}");
        }
    }
}
