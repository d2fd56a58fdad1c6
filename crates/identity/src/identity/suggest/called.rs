//! What a request's user texts call the agent: programs whose agents share a prompt, or have none, say there who speaks.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    identity::{ObservedRun, ObservedStep},
    trajectory::patterns,
};

/// Longest line that says who speaks, in bytes.
const LINE_MAX: usize = 160;

/// What a user text calls the agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CalledAgent {
    /// Its words, such as `You are the coder` or `Now act as EXECUTOR`.
    pub(super) text: String,
    pub(super) place: CalledPlace,
}

/// Where a user text says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CalledPlace {
    /// In a line of the first user text.
    FirstText,
    /// In the last line of the first user text.
    FirstTextEnd,
    /// In the last line of the last user text.
    LastTextEnd,
}

impl CalledAgent {
    /// What a request is called; `None` where nothing says so.
    pub(super) fn read(step: &ObservedStep<'_>) -> Option<Self> {
        let first = step.outline.first_user()?;
        let last = step.outline.last_user()?;
        let end = |text: &str| {
            let line = text.trim_end().rsplit('\n').next()?.trim().to_owned();
            Some(line).filter(|line| line.len() <= LINE_MAX && SPEAKS_NOW.is_match(line))
        };
        if first != last
            && let Some(text) = end(&last)
        {
            return Some(Self { text, place: CalledPlace::LastTextEnd });
        }
        if let Some(text) = end(&first) {
            return Some(Self { text, place: CalledPlace::FirstTextEnd });
        }
        let found = CALLED.find(&first)?.as_str().trim().to_owned();
        Some(Self { text: found, place: CalledPlace::FirstText })
    }

    /// The condition of a rule that asks for it in its place.
    pub(super) fn condition(&self) -> String {
        let text = regex::escape(&self.text);
        match self.place {
            CalledPlace::FirstText => {
                format!(
                    "first_user_regex = {}\n",
                    super::toml_text::toml_pattern(&format!(r"(?m)^\s*{text}\s*(?:\.|$)"))
                )
            }
            CalledPlace::FirstTextEnd => {
                format!("first_user_regex = {}\n", super::toml_text::toml_pattern(&format!(r"(?m)^\s*{text}\s*\z")))
            }
            CalledPlace::LastTextEnd => {
                format!("last_user_regex = {}\n", super::toml_text::toml_pattern(&format!(r"(?m)^\s*{text}\s*\z")))
            }
        }
    }
}

/// What agents are called in these runs: of several runs, only what comes again in another one; the rest is a task's.
pub(super) fn lasting(runs: &[ObservedRun<'_>]) -> BTreeSet<CalledAgent> {
    let mut found: BTreeMap<CalledAgent, BTreeSet<usize>> = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        for called in run.steps.iter().filter_map(CalledAgent::read) {
            found.entry(called).or_default().insert(number);
        }
    }
    let least = runs.len().min(2);
    found.into_iter().filter(|(_, runs)| runs.len() >= least).map(|(called, _)| called).collect()
}

patterns! {
    CALLED = r"(?m)^\s*(?:You are|You're|Your name is|Your role is|Your role:|Role:)\s[^\n.]{1,100}";
    SPEAKS_NOW = r"(?i)^(?:(?:now )?(?:please )?(?:act|speak|answer|reply|respond|continue|write|go on) as\s|you are now\s|(?:now )?it(?:'s| is) (?:now )?.{1,60}(?:'s|s') turn\b|next (?:speaker|up):?\s|your turn,\s)";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        surface::{LazyMessage, Message, Outline, Role},
        trajectory::AgentName,
    };

    #[test]
    fn a_user_text_says_who_speaks() {
        use CalledPlace::{FirstText, FirstTextEnd, LastTextEnd};
        let agent = AgentName::unnamed(0);
        for (users, expected) in [
            (&["You are the coder. Task: tea"][..], Some(("You are the coder", FirstText))),
            (&["Task: tea\nYour name is Ann\nGo"], Some(("Your name is Ann", FirstText))),
            (&["Solve it.\n\nNow act as EXECUTOR."], Some(("Now act as EXECUTOR.", FirstTextEnd))),
            (&["Ann: hello\nIt is Ben's turn."], Some(("It is Ben's turn.", FirstTextEnd))),
            (&["Topic: tea\nAnn: hello", "Speak as Ben."], Some(("Speak as Ben.", LastTextEnd))),
            (&["Now act as EXECUTOR.\nSolve 2 + 2"], None),
            (&["Tell me of tea", "You are right, thanks"], None),
        ] {
            let said = users.iter().map(|text| LazyMessage::from(&Message::text_of(Role::User, *text))).collect();
            let step =
                ObservedStep { agent: &agent, outline: Outline { messages: said, ..Outline::default() }, reply: None };
            let called = CalledAgent::read(&step);
            let found = called.as_ref().map(|called| (called.text.as_str(), called.place));
            assert_eq!(found, expected, "{users:?}");
        }
    }
}
