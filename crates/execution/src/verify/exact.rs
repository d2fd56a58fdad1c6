//! `exact`: the same text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Case, UnnamedVerdict};

/// Compares texts character by character, without leading and trailing blanks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Exact {
    /// Whether leading and trailing blanks count.
    pub keep_blanks: bool,
}

impl Exact {
    pub(super) fn compare(&self, case: &Case<'_>) -> UnnamedVerdict {
        let same =
            if self.keep_blanks { case.output == case.expected } else { case.output.trim() == case.expected.trim() };
        UnnamedVerdict::compared(same, case.output, case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Verdict::{Failure, Success};

    #[test]
    fn hard_cases() {
        let table = [
            ("84", " 84\n", Success),
            ("84", "84.0", Failure),
            ("Paris", "paris", Failure),
            ("", "", Success),
            ("é", "e\u{301}", Failure),
        ];
        crate::verify::check_table(|case| Exact::default().compare(case), &table);
        let strict = Exact { keep_blanks: true };
        crate::verify::check_table(|case| strict.compare(case), &[("84", "84\n", Failure), ("84", "84", Success)]);
    }
}
