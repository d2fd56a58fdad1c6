//! Regular expressions: those that people write into files, and those that stand in this program's own text.

use std::{borrow::Cow, fmt};

use regex::{Regex, RegexBuilder};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Largest compiled pattern, in bytes: far above what a file needs, far below what could hurt.
const SIZE_MAX: usize = 1 << 20;

/// A regular expression that a file gives, in the syntax of the `regex` crate: compiled once, limited in size, linear in
/// time.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// Why a text is no [`Pattern`]; it goes on where the pattern was named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The syntax is wrong.
    #[error("is not a regular expression: {0}")]
    Syntax(String),
    /// It compiles to too much.
    #[error("is too large: expected at most {SIZE_MAX} bytes compiled")]
    TooLarge,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        RegexBuilder::new(text).size_limit(SIZE_MAX).build().map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
            // The last line of a syntax error says what is wrong; the lines before repeat the pattern.
            error => {
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or(&text);
                PatternError::Syntax(reason.trim_start_matches("error: ").to_owned())
            }
        })
    }

    /// The compiled pattern.
    pub fn regex(&self) -> &Regex {
        &self.0
    }

    /// What the last match says: its group `answer`, else its first group, else all of it.
    pub fn last_in<'a>(&self, text: &'a str) -> Option<&'a str> {
        let found = self.0.captures_iter(text).last()?;
        found.name("answer").or_else(|| found.get(1)).or_else(|| found.get(0)).map(|found| found.as_str())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str())
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(|error| de::Error::custom(format_args!("the pattern {error}")))
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "regex"})
    }
}

/// Compiles a pattern of this program's own; [`patterns`] tests each.
pub fn compiled(text: &str) -> Regex {
    match Regex::new(text) {
        Ok(pattern) => pattern,
        Err(error) => unreachable!("a pattern of this program, which its tests compile: {error}"),
    }
}

/// Declares the patterns that stand in a file of this program, compiled when they are first used, with the test that
/// they compile: none can be missing at run time.
#[macro_export]
macro_rules! patterns {
    ($($(#[$doc:meta])* $NAME:ident = $text:expr;)+) => {
        $(
            $(#[$doc])*
            static $NAME: std::sync::LazyLock<regex::Regex> =
                std::sync::LazyLock::new(|| $crate::trajectory::compiled($text.as_ref()));
        )+

        #[cfg(test)]
        #[test]
        fn own_patterns_compile() {
            $(assert!(!$NAME.as_str().is_empty(), stringify!($NAME));)+
        }
    };
}
pub use crate::patterns;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_and_huge_patterns_are_refused_with_a_reason() {
        for (pattern, expected) in [
            ("a(b", "is not a regular expression: unclosed group"),
            ("(?=x)", "is not a regular expression: look-around"),
            (r"(\w{1000}){1000}", "is too large: expected at most 1048576 bytes"),
        ] {
            let error = Pattern::new(pattern).expect_err(pattern).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(Pattern::new("(a+)+$").is_ok());
    }

    #[test]
    fn what_is_read_is_written_again() {
        let read: Pattern = serde_json::from_str(r#""ANSWER: (.*)""#).expect("a pattern");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), r#""ANSWER: (.*)""#);
        assert_eq!(read.last_in("ANSWER: 3\nANSWER: 4"), Some("4"));
        let error = serde_json::from_str::<Pattern>(r#""(""#).expect_err("no pattern").to_string();
        assert!(error.contains("the pattern is not a regular expression: unclosed group"), "{error}");
    }
}
