//! A regular expression that a plan gives: compiled once, limited in size, linear in time by the `regex` crate.

use std::fmt;

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

/// Largest compiled pattern, in bytes: far above what a plan needs, far below what could hurt.
const SIZE_LIMIT: usize = 1 << 20;

/// A regular expression in the syntax of the `regex` crate.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// The compiled expression.
    pub fn regex(&self) -> &Regex {
        &self.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        RegexBuilder::new(&text).size_limit(SIZE_LIMIT).build().map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                format!("the pattern is too large: expected at most {SIZE_LIMIT} bytes compiled")
            }
            // The last line of a syntax error says what is wrong; the lines before repeat the pattern.
            error => {
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default();
                format!("the pattern is not a regular expression: {}", reason.trim_start_matches("error: "))
            }
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_and_huge_patterns_are_refused_with_a_reason() {
        for (pattern, expected) in [
            ("a(b", "not a regular expression: unclosed group"),
            ("(?=x)", "not a regular expression: look-around"),
            (r"(\w{1000}){1000}", "too large"),
        ] {
            let error = Pattern::try_from(pattern.to_owned()).expect_err(pattern);
            assert!(error.contains(expected), "{error}");
        }
        assert!(Pattern::try_from("(a+)+$".to_owned()).is_ok());
    }
}
