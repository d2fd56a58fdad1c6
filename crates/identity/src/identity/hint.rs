//! Explicit hints: the path prefix, headers, API keys, mapped fields. Their names are configurable.

use serde::Deserialize;

use crate::trajectory::Pattern;

/// A hint setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HintsError {
    /// A pattern has none of the groups that it is there for.
    #[error("`{field}` needs a named group: {expected}")]
    Group {
        /// Which setting.
        field: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// A header name that no header can have.
    #[error("`{field}` is not a header name: `{value}`")]
    Header {
        /// Which setting.
        field: &'static str,
        /// What was written.
        value: String,
    },
}

/// Names of runs and agents in requests (`[hints]` of `aegis.toml`).
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hints {
    /// Header that names the run.
    pub run_header: String,
    /// Header that names the agent.
    pub agent_header: String,
    /// Regular expression over the API key, with groups `run` and/or `agent`.
    pub key: Option<WholePattern>,
    /// API keys that stand for a run and/or an agent.
    pub keys: Vec<KeyEntry>,
    /// Entry of the body's `metadata` that names the run.
    pub metadata_run: Option<String>,
    /// Entry of the body's `metadata` that names the agent.
    pub metadata_agent: Option<String>,
    /// Whether the body's `user` names the agent, not an end user.
    pub user_is_agent: bool,
    /// Regular expression over the model's name, with group `agent`.
    pub model: Option<WholePattern>,
}

/// An API key that stands for a run and/or an agent.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// Key that the client sends. It is never forwarded.
    pub key: String,
    /// Its run.
    pub run: Option<String>,
    /// Its agent.
    pub agent: Option<String>,
}

/// A regular expression (syntax of the `regex` crate) that must match the whole text.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct WholePattern(Pattern);

impl TryFrom<String> for WholePattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        // Alone first: what is wrong is told of the text that was written, and a stray `)` cannot leave the group.
        let whole = Pattern::new(&text).and_then(|_| Pattern::new(&format!("^(?:{text})$")));
        whole.map(Self).map_err(|error| format!("the pattern {error}"))
    }
}

/// A run and an agent, as far as a hint names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// The run.
    pub run: Option<String>,
    /// The agent.
    pub agent: Option<String>,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            run_header: "x-aegis-run".to_owned(),
            agent_header: "x-aegis-agent".to_owned(),
            key: None,
            keys: Vec::new(),
            metadata_run: None,
            metadata_agent: None,
            user_is_agent: false,
            model: None,
        }
    }
}

impl Hints {
    /// Checks that every pattern has a group to give, and that header names are header names.
    ///
    /// # Errors
    /// The first [`HintsError`].
    pub fn check(&self) -> Result<(), HintsError> {
        let has = |pattern: &WholePattern, groups: &[&str]| {
            pattern.0.regex().capture_names().flatten().any(|name| groups.contains(&name))
        };
        if self.key.as_ref().is_some_and(|key| !has(key, &["run", "agent"])) {
            return Err(HintsError::Group { field: "hints.key", expected: "(?<run>…) or (?<agent>…)" });
        }
        if self.model.as_ref().is_some_and(|model| !has(model, &["agent"])) {
            return Err(HintsError::Group { field: "hints.model", expected: "(?<agent>…)" });
        }
        let token =
            |value: &str| !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        for (field, value) in [("hints.run_header", &self.run_header), ("hints.agent_header", &self.agent_header)] {
            if !token(value) {
                return Err(HintsError::Header { field, value: value.clone() });
            }
        }
        Ok(())
    }

    /// Whether API keys carry hints, so that they must be replaced before they reach the upstream.
    pub fn uses_keys(&self) -> bool {
        self.key.is_some() || !self.keys.is_empty()
    }

    /// Whether names of models carry hints.
    pub(super) fn uses_models(&self) -> bool {
        self.model.is_some()
    }

    /// What an API key names.
    pub fn from_key(&self, key: &str) -> Named {
        if let Some(entry) = self.keys.iter().find(|entry| entry.key == key) {
            return Named { run: entry.run.clone(), agent: entry.agent.clone() };
        }
        let captures = self.key.as_ref().and_then(|pattern| pattern.0.regex().captures(key));
        let group = |name: &str| captures.as_ref()?.name(name).map(|group| group.as_str().to_owned());
        Named { run: group("run"), agent: group("agent") }
    }

    /// The agent that a model alias names.
    pub fn from_model(&self, model: &str) -> Option<String> {
        self.model.as_ref()?.0.regex().captures(model)?.name("agent").map(|group| group.as_str().to_owned())
    }
}

/// A request path without our own prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routed<'a> {
    /// The run in the prefix.
    pub run: Option<&'a str>,
    /// The agent in the prefix, still percent-encoded.
    pub agent: Option<&'a str>,
    /// What goes upstream: path and query.
    pub rest: &'a str,
}

/// Takes `/r/<run>` and `/a/<agent>` off a path: either part alone, or both in this order.
pub fn route(path: &str) -> Routed<'_> {
    let (run, rest) = segment(path, "/r/");
    let (agent, rest) = segment(rest, "/a/");
    Routed { run, agent, rest }
}

/// Takes `<prefix><segment>` off a path, if it is followed by a slash.
fn segment<'a>(path: &'a str, prefix: &str) -> (Option<&'a str>, &'a str) {
    let taken = path.strip_prefix(prefix).and_then(|rest| {
        let end = rest.find(['/', '?'])?;
        rest.split_at_checked(end).filter(|(_, tail)| tail.starts_with('/'))
    });
    match taken {
        Some((segment, rest)) => (Some(segment), rest),
        None => (None, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, run, agent, rest) in [
            ("/v1/chat/completions", None, None, "/v1/chat/completions"),
            ("/r/run1/v1/chat/completions?x=%20", Some("run1"), None, "/v1/chat/completions?x=%20"),
            ("/r/run1/a/writer/v1/x", Some("run1"), Some("writer"), "/v1/x"),
            ("/a/writer/chat/completions", None, Some("writer"), "/chat/completions"),
            ("/r/run1", None, None, "/r/run1"),
            ("/r/%2e%2e/v1", Some("%2e%2e"), None, "/v1"),
            ("/r//v1", Some(""), None, "/v1"),
            ("/", None, None, "/"),
        ] {
            assert_eq!(route(path), Routed { run, agent, rest }, "{path}");
        }
    }

    #[test]
    fn settings_are_checked() {
        let check = |toml: &str| {
            toml::from_str::<Hints>(toml).map_err(|e| e.to_string()).and_then(|h| h.check().map_err(|e| e.to_string()))
        };
        assert_eq!(check("key = \"sk-(?<run>.+)\""), Ok(()));
        assert!(check("key = \"sk-.+\"").expect_err("no group").contains("named group"));
        assert!(check("key = \"(\"").is_err());
        assert!(check("agent_header = \"x agent\"").expect_err("blank").contains("not a header name"));
        assert!(check("nonsense = 1").is_err());
    }
}
