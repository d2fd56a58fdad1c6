//! Names on the wire: how frameworks write an agent's name into its requests, as patterns in one file.
//!
//! Only ways that a framework uses on *every* request of an agent name it here; a name that shows now and then (a
//! hand-off, a quote) is a vote for a display name, never an identity.

use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;

use super::fingerprint::is_fresh;
use crate::{
    surface::{Outline, Role},
    trajectory::{AgentName, compiled, nearest},
};

/// The patterns that this build knows.
const BUILT_IN: &str = include_str!("dialects.toml");
/// Longest prompt that patterns look at, in bytes: names stand at its beginning or its end.
const LOOKED_AT: usize = 64 << 10;
/// What frameworks call whoever has no name: nobody's.
const NOBODY: [&str; 8] =
    ["assistant", "user", "system", "developer", "agent", "ai", "ai assistant", "helpful assistant"];
/// How the names of few-shot examples begin.
const EXAMPLES: &str = "example_";

/// Why dialects cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    /// The built-in file is broken: a defect of the build, held by a test.
    #[error("the built-in dialects cannot be read: {0}")]
    BuiltIn(String),
    /// One that is to be switched off does not exist.
    #[error("no dialect is called `{name}`{}", .near.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest that there is.
        near: Option<String>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DialectFile {
    dialect: Vec<DialectEntry>,
}

/// One way, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct DialectEntry {
    name: String,
    system: Option<String>,
    /// What every prompt holds that `system` fits. Patterns of bounded names take milliseconds to compile, which each process
    /// would pay: one with this is compiled when a prompt first holds it.
    holds: Option<String>,
    #[serde(default)]
    system_name: bool,
    #[serde(default)]
    without_user: bool,
    user_name: Option<String>,
    first_user: Option<String>,
    agent: Option<String>,
    helper: Option<String>,
    /// A text that it fits, and the name that it gives.
    example: Option<(String, String)>,
    /// More of them.
    #[serde(default)]
    also: Vec<(String, String)>,
}

/// One way, ready to match.
#[derive(Debug, Clone)]
struct Dialect {
    entry: DialectEntry,
    system: Option<OnceLock<Regex>>,
    user_name: Option<Regex>,
    first_user: Option<Regex>,
}

/// The ways that are switched on, in order.
#[derive(Debug, Clone)]
pub struct Dialects(Vec<Dialect>);

/// What a dialect told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DialectMatch {
    /// The agent's name, if the request has it.
    pub(super) agent: Option<AgentName>,
    /// The helper's role, if it is one's.
    pub(super) helper: Option<String>,
    /// Which dialect.
    pub(super) dialect: String,
}

impl Default for Dialects {
    fn default() -> Self {
        Self::without(&[]).unwrap_or(Self(Vec::new()))
    }
}

impl Dialects {
    /// The built-in ones without those that are switched off.
    ///
    /// # Errors
    /// [`DialectError::Unknown`] when one of them does not exist.
    pub fn without(off: &[String]) -> Result<Self, DialectError> {
        let file: DialectFile = toml::from_str(BUILT_IN).map_err(|error| DialectError::BuiltIn(error.to_string()))?;
        if let Some(name) = off.iter().find(|name| file.dialect.iter().all(|entry| entry.name != **name)) {
            let near = nearest(name, file.dialect.iter().map(|entry| entry.name.as_str())).map(str::to_owned);
            return Err(DialectError::Unknown { name: name.clone(), near });
        }
        let on = file.dialect.into_iter().filter(|entry| !off.contains(&entry.name));
        on.map(Dialect::new).collect::<Result<_, _>>().map(Self)
    }

    /// Each one's name and its example: a text that it fits, and the name that it gives.
    pub fn examples(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().flat_map(|dialect| {
            let examples = dialect.entry.example.iter().chain(&dialect.entry.also);
            examples.map(|(text, name)| (dialect.entry.name.as_str(), text.as_str(), name.as_str()))
        })
    }

    /// What the first way that fits tells.
    pub(super) fn tell(&self, outline: &Outline<'_>) -> Option<DialectMatch> {
        self.0.iter().find_map(|dialect| dialect.tell(outline))
    }
}

impl Dialect {
    fn new(entry: DialectEntry) -> Result<Self, DialectError> {
        let regex = |text: &Option<String>| {
            let built = text.as_deref().map(Regex::new).transpose();
            built.map_err(|error| DialectError::BuiltIn(format!("{}: {error}", entry.name)))
        };
        let system = match &entry.holds {
            Some(_) => Some(OnceLock::new()),
            None => regex(&entry.system)?.map(OnceLock::from),
        };
        let (user_name, first_user) = (regex(&entry.user_name)?, regex(&entry.first_user)?);
        Ok(Self { entry, system, user_name, first_user })
    }

    /// What the pattern of prompts finds in one.
    #[expect(clippy::option_option, reason = "a pattern that fits need not have the group")]
    fn in_prompt(&self, pattern: &OnceLock<Regex>, prompt: &str) -> Option<Option<String>> {
        if self.entry.holds.as_ref().is_some_and(|held| !prompt.contains(held.as_str())) {
            return None;
        }
        captured(pattern.get_or_init(|| compiled(self.entry.system.as_deref().unwrap_or_default())), prompt)
    }

    fn tell(&self, outline: &Outline<'_>) -> Option<DialectMatch> {
        let bare = outline.prompts.is_empty();
        let captured = if let Some(pattern) = &self.system {
            let excluded = self.entry.without_user && outline.messages.iter().any(|said| said.role == Role::User);
            if bare || excluded {
                return None;
            }
            self.in_prompt(pattern, beginning(&outline.prompt()))?
        } else if self.entry.system_name {
            let mut names = outline.names.iter().filter(|name| !name.starts_with(EXAMPLES));
            let first = names.next()?;
            // Messages of several names are of several, or of nobody.
            Some(first.to_string()).filter(|_| names.all(|name| name == first))
        } else if let Some(pattern) = self.user_name.as_ref().filter(|_| bare) {
            let last = outline.messages.iter().rev().find(|said| said.role == Role::User)?;
            captured(pattern, last.name.as_deref()?)?
        } else if let Some(pattern) = self.first_user.as_ref().filter(|_| bare && is_fresh(outline)) {
            captured(pattern, beginning(&outline.first_user()?))?
        } else {
            return None;
        };
        let agent = match self.entry.agent.as_deref().or(captured.as_deref()) {
            // A name that could steer a terminal is no name.
            Some(name) if is_nobody(name) => return None,
            Some(name) => Some(AgentName::parse(name).ok()?),
            None => None,
        };
        Some(DialectMatch { agent, helper: self.entry.helper.clone(), dialect: self.entry.name.clone() })
    }
}

fn is_nobody(name: &str) -> bool {
    NOBODY.iter().any(|nobody| nobody.eq_ignore_ascii_case(name)) || name.starts_with(EXAMPLES)
}

/// What the pattern's group holds; `None` where it does not match.
#[expect(clippy::option_option, reason = "a pattern that fits need not have the group")]
fn captured(pattern: &Regex, text: &str) -> Option<Option<String>> {
    let captures = pattern.captures(text)?;
    Some(captures.name("agent").map(|group| group.as_str().trim().to_owned()))
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(LOOKED_AT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::surface::{OpenaiChat, Surface};

    fn match_dialect(
        dialects: &Dialects,
        messages: &serde_json::Value,
    ) -> Option<(String, Option<String>, Option<String>)> {
        let body = json!({"model": "m", "messages": messages}).to_string();
        let told = dialects.tell(&OpenaiChat.outline(body.as_bytes()).expect("a request"))?;
        Some((told.dialect, told.agent.map(|agent| agent.to_string()), told.helper))
    }

    #[test]
    fn every_pattern_fits_its_example() {
        let dialects = Dialects::without(&[]).expect("the built-in dialects");
        assert!(!Dialects::default().0.is_empty());
        for (name, text, whole) in dialects.examples() {
            let entry = &dialects.0.iter().find(|dialect| dialect.entry.name == name).expect("it").entry;
            let role = if entry.first_user.is_some() { "user" } else { "system" };
            let mut messages = json!([{"role": role, "content": text}]);
            if role == "system" && !entry.without_user {
                messages.as_array_mut().expect("a list").push(json!({"role": "user", "content": "go"}));
            }
            let (dialect, agent, helper) = match_dialect(&dialects, &messages).expect(name);
            let base = agent.unwrap_or_else(|| "agent-00000000".to_owned());
            let told = helper.map_or(base.clone(), |helper| format!("{base}/{helper}"));
            assert_eq!((dialect.as_str(), told.as_str()), (name, whole));
        }
    }

    #[test]
    fn what_a_pattern_needs_stands_in_it() {
        let dialects = Dialects::default();
        let held = dialects.0.iter().filter_map(|dialect| Some((dialect.entry.holds.as_ref()?, &dialect.entry.system)));
        let mut count = 0;
        for (held, pattern) in held {
            let pattern = pattern.as_deref().expect("a pattern of prompts");
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
            // Outside of groups and never optional: it is a part of the text at the top.
            let mut depth = 0_i32;
            let top: String = pattern
                .chars()
                .filter(|c| {
                    depth += i32::from(*c == '(') - i32::from(*c == ')');
                    depth == 0 || *c == '('
                })
                .collect();
            assert!(top.contains(held.as_str()) && !pattern.contains(&format!("{held}?")), "{held}: {top}");
            count += 1;
        }
        assert_eq!(count, 5);
    }

    #[test]
    fn names_beside_the_text() {
        let dialects = Dialects::default();
        let name = |messages| match_dialect(&dialects, &messages).and_then(|(_, agent, _)| agent);
        let system =
            |name: &str| json!([{"role": "system", "name": name, "content": "x"}, {"role": "user", "content": "y"}]);
        assert_eq!(name(system("Physics Expert")).as_deref(), Some("Physics Expert"));
        for hostile in ["\u{1b}[2Jroot", "a\u{202e}b", "", &"x".repeat(500)] {
            assert_eq!(name(system(hostile)), None, "{hostile:?}");
        }
        assert_eq!(
            name(system("../../etc/passwd<script>")).as_deref(),
            Some("../../etc/passwd<script>"),
            "text, never a path"
        );
        let ledger = json!([{"role": "user", "name": "MagenticOneOrchestrator", "content": "Plan."}]);
        assert_eq!(name(ledger).as_deref(), Some("MagenticOneOrchestrator"));
        let instructed = json!([{"role": "system", "content": "You surf."},
            {"role": "user", "name": "MagenticOneOrchestrator", "content": "Go."}]);
        assert_eq!(name(instructed), None, "an agent that the orchestrator instructs");
        assert_eq!(name(json!([{"role": "system", "content": "You plan."}])), None);
        for nobody in ["Assistant", "example_user", "user"] {
            assert_eq!(name(system(nobody)), None, "{nobody}");
        }
        let role =
            |role: &str| json!([{"role": "system", "content": format!("Be kind.\nYour Role: {role}\nYour Goal: x")}]);
        assert_eq!((name(role("Assistant")), name(role("Poet")).as_deref()), (None, Some("Poet")));
        let few = json!([{"role": "system", "name": "Tutor", "content": "x"},
            {"role": "system", "name": "example_user", "content": "y"}]);
        assert_eq!(name(few).as_deref(), Some("Tutor"));
        let two =
            json!([{"role": "system", "name": "A", "content": "x"}, {"role": "system", "name": "B", "content": "y"}]);
        assert_eq!(name(two), None, "of two names, neither");
    }

    #[test]
    fn dialects_are_switched_off_by_name() {
        let off = Dialects::without(&["system-name".to_owned()]).expect("it exists");
        assert_eq!(match_dialect(&off, &json!([{"role": "system", "name": "A", "content": "x"}])), None);
        let error = Dialects::without(&["crewia".to_owned()]).expect_err("unknown").to_string();
        assert_eq!(error, "no dialect is called `crewia`: did you mean `crewai`?");
    }
}
