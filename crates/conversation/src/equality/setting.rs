//! What is equal in a run, as its files keep it.

use serde::{Deserialize, Serialize};

use super::{ToolResults, VolatilePlace};

/// What may differ in the requests of a run that are still the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EqualitySetting {
    /// The text of a file of rules (`--rules`). Without it the built-in rules hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// How far results of tools may differ (`--tool-results`).
    #[serde(default, skip_serializing_if = "ToolResults::is_exact")]
    pub tool_results: ToolResults,
    /// What clean runs of the same task showed to be volatile in its requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volatile: Vec<VolatilePlace>,
}

impl EqualitySetting {
    /// Whether it is what holds where nobody says anything.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// What of it was learned beyond another setting, in words.
    pub fn learned_beyond(&self, before: &Self) -> Vec<String> {
        let results = Some(self.tool_results).filter(|results| *results != before.tool_results);
        let results = results.and_then(|results| match results {
            ToolResults::Exact => None,
            ToolResults::Masked => Some("results of tools, in words with a digit".to_owned()),
            ToolResults::Any => Some("results of tools".to_owned()),
        });
        let places = self.volatile.iter().filter(|place| !before.volatile.contains(place));
        results.into_iter().chain(places.map(|place| format!("volatile: {place}"))).collect()
    }
}

impl std::fmt::Display for EqualitySetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rules = if self.rules.is_some() { " --rules …" } else { "" };
        write!(f, "--tool-results {}{rules}", self.tool_results.name())?;
        self.volatile.iter().try_for_each(|place| write!(f, ", volatile: {place}"))
    }
}
