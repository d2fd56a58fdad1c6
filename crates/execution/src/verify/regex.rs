//! `regex`: the output matches a pattern.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Case, UnnamedVerdict, normalised::words, excerpt};
use crate::trajectory::Pattern;

/// Matches the output against a pattern. A group `answer` must equal the expected answer, word for word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Regex {
    /// Pattern; `{answer}` stands for the expected answer, verbatim.
    pub pattern: String,
    /// Whether a match is a failure.
    #[serde(default)]
    pub absent: bool,
}

impl Regex {
    pub(super) fn compare(&self, case: &Case<'_>) -> UnnamedVerdict {
        let text = self.pattern.replace("{answer}", &::regex::escape(case.expected.trim()));
        let pattern = match Pattern::new(&text) {
            Ok(pattern) => pattern,
            Err(error) => return UnnamedVerdict::unknown(format!("`{text}` {error}")),
        };
        let found = pattern.last_in(case.output);
        let compares = pattern.regex().capture_names().flatten().any(|name| name == "answer");
        let Some(found) = found else {
            return UnnamedVerdict::new(self.absent, format!("no match of `{text}` in {}", excerpt(case.output)));
        };
        if compares {
            return UnnamedVerdict::compared((words(found) == words(case.expected)) != self.absent, found, case);
        }
        UnnamedVerdict::new(!self.absent, format!("`{text}` matches {}", excerpt(found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        trajectory::Verdict::{Failure, Success, Unknown},
        verify::check_table,
    };

    fn check(pattern: &str, absent: bool) -> impl Fn(&Case<'_>) -> UnnamedVerdict {
        let regex = Regex { pattern: pattern.to_owned(), absent };
        move |case| regex.compare(case)
    }

    #[test]
    fn hard_cases() {
        check_table(check(r"(?m)^DONE$", false), &[("", "a\nDONE\nb", Success), ("", "DONE.", Failure)]);
        check_table(check("(?i)error", true), &[("", "fine", Success), ("", "An Error", Failure)]);
        check_table(
            check(r"ANSWER: (?P<answer>.*)", false),
            &[("4", "ANSWER: 3\nANSWER: 4", Success), ("3", "ANSWER: 3\nANSWER: 4", Failure), ("3", "3", Failure)],
        );
        check_table(check(r"\b{answer}\b", false), &[("a+b", "x a+b y", Success), ("a+b", "aab", Failure)]);
        check_table(check("(", false), &[("", "x", Unknown)]);
    }
}
