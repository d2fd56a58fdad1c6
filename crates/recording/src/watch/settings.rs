//! What is looked for in a run, and what stops it.

use super::{RULES, WatchRule, rule};
use crate::trajectory::{Pattern, nearest};

/// Which rules are asked, and what they need to know.
#[derive(Debug, Clone, Default)]
pub struct WatchSettings {
    /// The rules, each with whether it stops the run.
    pub(super) rules: Vec<(&'static WatchRule, bool)>,
    /// What a reply holds that ends the work, beside the convention of frameworks.
    pub(super) end: Option<Pattern>,
    /// How many tokens the model takes.
    pub(super) window: Option<u64>,
    /// Whether a rule speaks of an agent at each step at which it sees something.
    pub(super) repeats: bool,
}

/// A name that no rule has, or a rule that cannot do what is asked of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownRule {
    /// No rule is called so.
    #[error("there is no rule `{name}`{}", nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Name {
        /// What was written.
        name: String,
        /// The nearest name.
        nearest: Option<&'static str>,
    },
    /// It looks when the run is over.
    #[error("`{0}` looks when the run is over: there is no call left that it could stop")]
    TooLate(&'static str),
}

impl WatchSettings {
    /// The rules of these names (`all`: every one; without names those that are on by themselves), and those that stop a run.
    ///
    /// # Errors
    /// [`UnknownRule`].
    pub fn new(named: &[String], stops: &[String]) -> Result<Self, UnknownRule> {
        let mut chosen: Vec<&'static WatchRule> = Vec::new();
        if named.is_empty() {
            chosen.extend(RULES.iter().filter(|rule| rule.is_on));
        }
        for name in named {
            if name == "all" {
                chosen.extend(RULES);
            } else {
                chosen.push(find_rule(name)?);
            }
        }
        let mut stopping: Vec<&'static str> = Vec::new();
        for name in stops {
            let rule = find_rule(name)?;
            if matches!(rule.look, super::Look::End(_)) {
                return Err(UnknownRule::TooLate(rule.name));
            }
            chosen.push(rule);
            stopping.push(rule.name);
        }
        // In the order of the list, each once.
        let rules = RULES.iter().filter(|rule| chosen.iter().any(|one| one.name == rule.name));
        let rules = rules.map(|rule| (rule, stopping.contains(&rule.name))).collect();
        Ok(Self { rules, ..Self::default() })
    }

    /// Every rule, at each step at which it sees something: what attribution weighs.
    pub fn every() -> Self {
        Self { rules: RULES.iter().map(|rule| (rule, false)).collect(), repeats: true, ..Self::default() }
    }

    /// The same with what a reply holds that ends the work.
    #[must_use]
    pub fn with_end(self, end: Option<Pattern>) -> Self {
        Self { end, ..self }
    }

    /// The same with the tokens that the model takes.
    #[must_use]
    pub fn with_window(self, window: Option<u64>) -> Self {
        Self { window, ..self }
    }

    /// The names of its rules.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.rules.iter().map(|(rule, _)| rule.name)
    }
}

fn find_rule(name: &str) -> Result<&'static WatchRule, UnknownRule> {
    let unknown = || UnknownRule::Name {
        name: name.chars().take(80).collect(),
        nearest: nearest(name, RULES.iter().map(|rule| rule.name)),
    };
    rule(name).ok_or_else(unknown)
}
