//! The roster: what tells a user's agents apart, declared once in `aegis.toml` (`[[agent]]`).

use std::cell::LazyCell;

use memchr::memmem::Finder;
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::quoted;
use crate::{
    surface::Outline,
    trajectory::{AgentName, Attribution, Pattern, Source},
};

/// A roster rule that cannot be used. Rules are counted from 1, as a reader of the file counts them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[[agent]] number {number}: {detail}")]
pub struct RosterError {
    /// Which rule, from 1.
    pub number: usize,
    /// What is wrong, and what was expected.
    pub detail: String,
}

/// One rule; all its conditions must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RosterRule {
    /// Name of the agent; optional if `system_regex` has a group `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Text that the system prompt contains. Several words do not count in quotation marks, a block quote or a code
    /// block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_contains: Option<String>,
    /// Regular expression that matches in the system prompt; a group `agent` names the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_regex: Option<String>,
    /// Tools that must all be offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Text that the first user message contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_user_contains: Option<String>,
    /// Regular expression that matches in the first user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_user_regex: Option<String>,
    /// Regular expression that matches in the last user message, for agents that share a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_user_regex: Option<String>,
    /// `name` of the system message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_name: Option<String>,
    /// Learned looks of this agent (`agent-<8 hex>` in `aegis agents`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<Vec<String>>,
    /// Whether the request has no system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bare: Option<bool>,
    /// Number of instances per run; 1 if not given. Their histories distinguish them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<u32>,
    /// Order of instances that their histories do not tell apart: `turn`, one after the other, or `arrival`, in rounds,
    /// numbered by arrival. Requires `instances`. Without it, the step is `ambiguous`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<SpeakingOrder>,
}

/// Order in which instances speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpeakingOrder {
    /// One after the other, always in the same order; two at once are `ambiguous`.
    Turn,
    /// In rounds, numbered by arrival within each.
    Arrival,
}

/// Equal agents whose order the user declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeclaredOrder {
    pub(super) order: SpeakingOrder,
    /// How many there are.
    pub(super) instances: u32,
}

/// Checked rules, in order.
#[derive(Debug, Clone, Default)]
pub struct Roster(Vec<WrittenRule>);

#[derive(Debug, Clone)]
struct WrittenRule {
    number: usize,
    conditions: RosterRule,
    system: Option<Regex>,
    first_user: Option<Regex>,
    last_user: Option<Regex>,
    system_contains: Option<Finder<'static>>,
    first_user_contains: Option<Finder<'static>>,
    looks: Option<Vec<u32>>,
}

impl Roster {
    /// Checks the rules.
    ///
    /// # Errors
    /// The first [`RosterError`].
    pub fn new(rules: Vec<RosterRule>) -> Result<Self, RosterError> {
        rules.into_iter().enumerate().map(|(i, rule)| WrittenRule::new(i + 1, rule)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all conditions are about what a request repeats from call to call: prompt, names, tools, model, looks.
    pub(super) fn asks_only_for_what_stands(&self) -> bool {
        let reads_user = |rule: &WrittenRule| {
            rule.first_user.is_some() || rule.first_user_contains.is_some() || rule.last_user.is_some()
        };
        !self.0.iter().any(reads_user)
    }

    /// Whether a rule's conditions are about what a request looks like.
    pub(super) fn asks_for_looks(&self) -> bool {
        self.0.iter().any(|rule| rule.looks.is_some())
    }

    /// The numbers of all rules, from 1.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|rule| rule.number)
    }

    /// The numbers of the rules that a request fits. `key`: what it looks like.
    pub(super) fn fitting(&self, outline: &Outline<'_>, key: u32) -> Vec<usize> {
        let prompt = outline.prompt();
        self.0.iter().filter(|rule| rule.matches(outline, &prompt, key).is_some()).map(|rule| rule.number).collect()
    }

    /// Whether a run has several equal agents of that name.
    pub(super) fn has_instances(&self, agent: &AgentName) -> bool {
        let many = |rule: &WrittenRule| rule.conditions.instances.is_some_and(|count| count > 1);
        self.0.iter().any(|rule| many(rule) && rule.conditions.name.as_deref() == Some(agent.as_str()))
    }

    /// The order in which equal agents of that name speak, where the user declares one.
    pub(super) fn order(&self, agent: &AgentName) -> Option<DeclaredOrder> {
        let rule =
            self.0.iter().map(|rule| &rule.conditions).find(|rule| rule.name.as_deref() == Some(agent.as_str()))?;
        Some(DeclaredOrder { order: rule.order?, instances: rule.instances? })
    }

    /// The agent that the first matching rule names. Where rules of different agents match, the answer is marked
    /// ambiguous, so that no label can rest on it.
    /// `key`: what the request looks like, as in `agent-<8 hex>`.
    pub fn identify(&self, outline: &Outline<'_>, key: u32) -> Option<Attribution> {
        if self.0.is_empty() {
            return None;
        }
        let prompt = outline.prompt();
        let mut matches = self.0.iter().filter_map(|rule| Some((rule, rule.matches(outline, &prompt, key)?)));
        let (rule, agent) = matches.next()?;
        let rival = matches.find(|(_, other)| *other != agent);
        let evidence = match &rival {
            None => format!("[[agent]] number {}", rule.number),
            Some((other, name)) => {
                format!("[[agent]] numbers {} and {} both match: `{agent}` or `{name}`", rule.number, other.number)
            }
        };
        let confidence = if rival.is_some() { 0.5 } else { 1.0 };
        Some(Attribution {
            agent,
            instance: 0,
            source: Source::Roster,
            evidence,
            confidence,
            ambiguous: rival.is_some(),
        })
    }
}

impl WrittenRule {
    fn new(number: usize, rule: RosterRule) -> Result<Self, RosterError> {
        let refuse = |detail: String| RosterError { number, detail };
        let regex = |field: &str, text: &Option<String>| {
            let built = text.as_deref().map(|text| Pattern::new(text).map(|pattern| pattern.regex().clone()));
            built.transpose().map_err(|error| refuse(format!("`{field}` {error}")))
        };
        let system = regex("system_regex", &rule.system_regex)?;
        let first_user = regex("first_user_regex", &rule.first_user_regex)?;
        let last_user = regex("last_user_regex", &rule.last_user_regex)?;
        let looks = rule.looks.as_ref().map(|looks| looks.iter().map(|name| key(name)).collect::<Result<_, _>>());
        let looks: Option<Vec<u32>> = looks.transpose().map_err(refuse)?;
        if rule.instances == Some(0) {
            return Err(refuse("`instances` is 0: expected 1 or more".to_owned()));
        }
        if rule.order.is_some() && rule.instances.is_none_or(|instances| instances < 2) {
            return Err(refuse(
                "`order` is for several equal agents: expected `instances = 2` or more beside it".to_owned(),
            ));
        }
        let group = system.as_ref().is_some_and(|system| system.capture_names().flatten().any(|name| name == "agent"));
        match &rule.name {
            Some(name) => drop(AgentName::parse(name).map_err(|error| refuse(error.to_string()))?),
            None if group => {}
            None => return Err(refuse("expected `name`, or `system_regex` with a group (?<agent>…)".to_owned())),
        }
        let condition = rule.system_contains.is_some()
            || system.is_some()
            || rule.tools.as_ref().is_some_and(|tools| !tools.is_empty())
            || rule.model.is_some()
            || rule.first_user_contains.is_some()
            || first_user.is_some()
            || last_user.is_some()
            || rule.wire_name.is_some()
            || looks.is_some();
        if !condition {
            return Err(refuse(
                "expected at least one condition, for example `system_contains = \"You plan\"`".to_owned(),
            ));
        }
        let finder = |text: &Option<String>| text.as_ref().map(|text| Finder::new(text).into_owned());
        let (system_contains, first_user_contains) = (finder(&rule.system_contains), finder(&rule.first_user_contains));
        Ok(Self {
            number,
            conditions: rule,
            system,
            first_user,
            last_user,
            system_contains,
            first_user_contains,
            looks,
        })
    }

    /// The agent, if every condition holds.
    fn matches(&self, outline: &Outline<'_>, prompt: &str, key: u32) -> Option<AgentName> {
        let rule = &self.conditions;
        let first_user = LazyCell::new(|| outline.first_user().unwrap_or_default());
        let offered = |tool: &String| outline.tools.iter().any(|offered| offered == tool);
        let last_user = LazyCell::new(|| outline.last_user().unwrap_or_default());
        let holds = self.system_contains.as_ref().is_none_or(|finder| quoted::stands_in(finder, prompt))
            && rule.tools.as_ref().is_none_or(|tools| tools.iter().all(offered))
            && rule.model.as_ref().is_none_or(|model| outline.model == *model)
            && self.first_user_contains.as_ref().is_none_or(|finder| finder.find(first_user.as_bytes()).is_some())
            && self.first_user.as_ref().is_none_or(|pattern| pattern.is_match(&first_user))
            && self.last_user.as_ref().is_none_or(|pattern| pattern.is_match(&last_user))
            && rule.wire_name.as_ref().is_none_or(|name| outline.names.iter().any(|n| n == name))
            && rule.bare.is_none_or(|bare| outline.prompts.is_empty() == bare)
            && self.looks.as_ref().is_none_or(|looks| looks.contains(&key));
        if !holds {
            return None;
        }
        let captured = match &self.system {
            None => None,
            Some(pattern) => Some(pattern.captures(prompt)?),
        };
        let group = captured.as_ref().and_then(|captures| captures.name("agent")).map(|group| group.as_str());
        AgentName::parse(rule.name.as_deref().or(group)?).ok()
    }
}

/// The key in a name of looks.
fn key(name: &str) -> Result<u32, String> {
    let hash = AgentName::parse(name).ok().and_then(|name| name.hash_of_unnamed());
    hash.ok_or_else(|| format!("`{}` is no name of looks: expected `agent-` and 8 hex digits", name.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{LazyMessage, Message, Role};

    fn message(role: Role, text: &str) -> LazyMessage<'static> {
        LazyMessage::from(&Message::text_of(role, text))
    }

    fn roster(toml: &str) -> Result<Roster, String> {
        #[derive(Deserialize)]
        struct File {
            agent: Vec<RosterRule>,
        }
        let file: File = toml::from_str(toml).map_err(|e| e.to_string())?;
        Roster::new(file.agent).map_err(|e| e.to_string())
    }

    #[test]
    fn rules_match_what_they_say() {
        let roster = roster(
            r#"
            agent = [
              { name = "planner", system_contains = "You plan" },
              { system_regex = "You are the (?<agent>\\w+)\\." },
              { name = "typist", tools = ["type", "erase"], model = "m2" },
              { name = "greeter", first_user_regex = "(?i)^hello" },
              { name = "named", wire_name = "Zed" },
              { name = "learnt", looks = ["agent-000000ab", "agent-ffffffff"], system_contains = "learn" },
            ]"#,
        )
        .expect("a roster");
        let who = |outline: Outline<'_>| roster.identify(&outline, 0xab).map(|a| (a.agent.to_string(), a.ambiguous));
        let prompt = |text: &'static str| Outline { prompts: vec![text.into()], ..Outline::default() };
        assert_eq!(who(prompt("You plan trips")), Some(("planner".to_owned(), false)));
        assert_eq!(who(prompt("You are the critic. Be kind")), Some(("critic".to_owned(), false)));
        assert_eq!(who(prompt("You plan. You are the critic.")), Some(("planner".to_owned(), true)));
        let typist = Outline { tools: vec!["erase".into(), "type".into()], model: "m2".into(), ..Outline::default() };
        assert_eq!(who(typist.clone()), Some(("typist".to_owned(), false)));
        assert_eq!(who(Outline { model: "m1".into(), ..typist }), None);
        assert_eq!(
            who(Outline { messages: vec![message(Role::User, "Hello you")], ..Outline::default() }),
            Some(("greeter".to_owned(), false))
        );
        assert_eq!(who(Outline { names: vec!["Zed".into()], ..Outline::default() }), Some(("named".to_owned(), false)));
        assert_eq!(who(prompt("I learn")), Some(("learnt".to_owned(), false)));
        assert_eq!(who(Outline::default()), None);
    }

    #[test]
    fn bad_rules_say_which_and_why() {
        for (toml, said) in [
            ("agent = [{ name = \"a\" }]", "number 1: expected at least one condition"),
            ("agent = [{ system_contains = \"x\" }]", "expected `name`"),
            ("agent = [{ name = \"a\", system_regex = \"(\" }]", "`system_regex` is not a regular expression"),
            ("agent = [{ name = \"a\", looks = [\"agent-xyz\"] }]", "expected `agent-` and 8 hex digits"),
            ("agent = [{ name = \"a\\u001b\", model = \"m\" }]", "agent name"),
            ("agent = [{ name = \"a\", model = \"m\", order = \"turn\" }]", "expected `instances = 2` or more"),
            ("agent = [{ name = \"a\", model = \"m\", instances = 2, order = \"any\" }]", "unknown variant `any`"),
            ("agent = [{ name = \"a\", modell = \"m\" }]", "unknown field `modell`"),
        ] {
            let error = roster(toml).expect_err(toml);
            assert!(error.contains(said), "{toml}: {error}");
        }
    }
}
