//! Results of tools: they run anew each time, and may say something else.

use serde::{Deserialize, Serialize};

/// How far the results of tools, which run anew each time, may differ in a request that is still the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolResults {
    /// As all else.
    #[default]
    Exact,
    /// In words that hold a digit: durations, counts, hashes.
    Masked,
    /// In everything.
    Any,
}

impl ToolResults {
    /// Whether it is what holds where nobody says anything.
    pub fn is_exact(&self) -> bool {
        *self == Self::Exact
    }

    /// Its name, as options and files write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Masked => "masked",
            Self::Any => "any",
        }
    }

    /// What is left of a result.
    pub fn reduce(self, result: &str) -> String {
        let masked =
            |word: &str| if word.bytes().any(|byte| byte.is_ascii_digit()) { "#".to_owned() } else { word.to_owned() };
        match self {
            Self::Exact => result.to_owned(),
            Self::Masked => result.split_whitespace().map(masked).collect::<Vec<_>>().join(" "),
            Self::Any => "<tool result>".to_owned(),
        }
    }
}
