//! What is equal in a run, as its files keep it.

use serde::{Deserialize, Serialize};

use super::{Rules, RulesError, ToolResults, VolatilePlace};

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

    /// Its rules. `file` is only named in errors.
    ///
    /// # Errors
    /// As [`Rules::parse`].
    pub fn to_rules(&self, file: &str) -> Result<Rules, RulesError> {
        let rules = self.rules.as_deref().map(|text| Rules::parse(text, file)).transpose()?;
        Ok(rules.unwrap_or_default().with_tool_results(self.tool_results).with_volatile(self.volatile.clone()))
    }
}

impl std::fmt::Display for EqualitySetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rules = if self.rules.is_some() { " --rules …" } else { "" };
        write!(f, "--tool-results {}{rules}", self.tool_results.name())?;
        self.volatile.iter().try_for_each(|place| write!(f, ", volatile: {place}"))
    }
}
