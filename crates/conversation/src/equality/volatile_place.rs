//! A place in the instructions of an agent whose value changes although the agent is asked the same: a clock, a counter, the name
//! of a place to work in that no declared rule knows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::trajectory::AgentName;

/// The longest value, in bytes.
const VALUE_MAX: usize = 200;
/// How much of a line is shown on either side of its value, in characters.
const SHOWN_MAX: usize = 40;
/// How many places are learned.
pub(super) const PLACES_MAX: usize = 32;

/// A value in a line of an agent's instructions that says nothing of what is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VolatilePlace {
    /// The agent in whose requests it was seen.
    pub agent: AgentName,
    /// The line of its message, from 1.
    pub line: usize,
    /// What the line begins with.
    pub before: String,
    /// What it ends with.
    pub after: String,
}

impl VolatilePlace {
    /// The value in a line, if the line is this one.
    pub fn value<'a>(&self, line: &'a str) -> Option<&'a str> {
        let value = line.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        Some(value).filter(|value| is_value(value))
    }

    /// Whether lines of one are lines of the other.
    pub(super) fn is_same_line(&self, other: &Self) -> bool {
        (&self.before, &self.after) == (&other.before, &other.after)
    }

    /// Puts a name in the place of the value, in each line that is this one.
    pub(super) fn mask(&self, text: &mut String) {
        if text.contains(&self.before) && text.split('\n').any(|line| self.value(line).is_some()) {
            let masked = |line: &str| match self.value(line) {
                Some(_) => format!("{}<volatile>{}", self.before, self.after),
                None => line.to_owned(),
            };
            *text = text.split('\n').map(masked).collect::<Vec<_>>().join("\n");
        }
    }
}

impl fmt::Display for VolatilePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, line, before, after } = self;
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let before: Vec<char> = before.chars().map(shown).collect();
        let begins = if before.len() > SHOWN_MAX { "…" } else { "" };
        let before: String = before.iter().skip(before.len().saturating_sub(SHOWN_MAX)).collect();
        let ends = if after.chars().count() > SHOWN_MAX { "…" } else { "" };
        let after: String = after.chars().map(shown).take(SHOWN_MAX).collect();
        write!(formatter, "{agent} line {line}, \"{begins}{before} … {after}{ends}\"")
    }
}

/// Whether a text between two others is one word.
pub(super) fn is_value(text: &str) -> bool {
    text.len() <= VALUE_MAX && text.split_whitespace().count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_masked_in_its_line_alone() {
        let agent = AgentName::parse("planner").expect("a name");
        let place = VolatilePlace { agent, line: 2, before: "Uptime:".to_owned(), after: "s".to_owned() };
        let mut text = "You plan.\nUptime: 532 s\nThe Uptime: 532 s is long".to_owned();
        place.mask(&mut text);
        assert_eq!(text, "You plan.\nUptime:<volatile>s\nThe Uptime: 532 s is long");
        assert_eq!(place.to_string(), "planner line 2, \"Uptime: … s\"");
        let long = VolatilePlace { before: "x".repeat(50) + "\u{1b}[2J:", after: "y".repeat(50), ..place };
        assert_eq!(long.to_string(), format!("planner line 2, \"…{} [2J: … {}…\"", "x".repeat(35), "y".repeat(40)));
    }
}
