//! Whether a failure needs one of several planted errors.

use serde::{Deserialize, Serialize};

/// Whether a failure needs one of several planted errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// It is shown that without the error the run fails less often.
    Necessary,
    /// It is shown that without the error the run fails as it does with it: an effect that counts is excluded.
    NotNeeded,
    /// Neither is shown.
    NotShown,
}

impl Need {
    /// In words, as every line and page has them.
    pub fn words(self) -> &'static str {
        match self {
            Need::Necessary => "necessary",
            Need::NotNeeded => "not needed",
            Need::NotShown => "not shown",
        }
    }
}
