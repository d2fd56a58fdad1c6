//! Which agents an injection aims at.

use std::fmt;

use regex::Regex;

use crate::trajectory::{AgentName, IdError, PEERS, PrincipalKind, TOOLS};

/// One or more patterns; any of them may match.
#[derive(Debug, Clone)]
pub struct Agents(pub Vec<AgentPattern>);

/// An agent's name, or a glob: `*` stands for any characters, `?` for one.
///
/// A helper of an agent, `planner/selector`, is matched by its exact name only, never by a glob. An agent that the upstream names,
/// `/root/solver`, is matched by its name or by a glob that begins as such names do, `/root/*`.
#[derive(Debug, Clone)]
pub struct AgentPattern {
    text: AgentName,
    glob: Option<Regex>,
    kind: PrincipalKind,
}

impl Agents {
    /// Whether it aims at agents, not at tools or peers.
    pub fn are_agents(&self) -> bool {
        self.0.iter().all(|pattern| pattern.kind == PrincipalKind::Agent)
    }

    /// Whether it is one name, and no pattern of several.
    pub fn is_single(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only.glob.is_none())
    }

    /// Whether any pattern can only be the name of an agent that the upstream names: those begin with a slash.
    pub fn names_upstream(&self) -> bool {
        self.0.iter().any(AgentPattern::is_upstream)
    }

    /// Whether any pattern matches.
    pub fn matches(&self, agent: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(agent))
    }
}

impl AgentPattern {
    /// Checks the pattern.
    ///
    /// # Errors
    /// [`IdError::Agent`] when it could not be an agent's name.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let name = AgentName::parse(text)?;
        let translated = regex::escape(name.as_str()).replace(r"\*", "[^/]*").replace(r"\?", "[^/]");
        let is_glob = name.as_str().contains(['*', '?']);
        let glob = is_glob.then(|| Regex::new(&format!("(?s)^{translated}$")).ok()).flatten();
        Ok(Self { text: name, glob, kind: PrincipalKind::Agent })
    }

    /// The pattern of a tool of a server: `search` of any, or `web/search`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn of_tool(text: &str) -> Result<Self, IdError> {
        let text = AgentName::parse(text)?;
        let of_any = if text.as_str().contains('/') { "" } else { "*/" };
        Ok(Self { kind: PrincipalKind::Tool, ..Self::parse(&format!("{TOOLS}{of_any}{text}"))? })
    }

    /// The pattern of a peer.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn of_peer(text: &str) -> Result<Self, IdError> {
        let text = AgentName::parse(text)?;
        Ok(Self { kind: PrincipalKind::Peer, ..Self::parse(&format!("{PEERS}{text}"))? })
    }

    /// Whether it matches this agent.
    pub fn matches(&self, agent: &str) -> bool {
        let may_glob = self.is_upstream() || self.kind != PrincipalKind::Agent || !agent.contains('/');
        agent == self.text.as_str() || (may_glob && self.glob.as_ref().is_some_and(|glob| glob.is_match(agent)))
    }

    fn is_upstream(&self) -> bool {
        self.text.as_str().starts_with('/')
    }
}

impl fmt::Display for AgentPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.as_str();
        match self.kind {
            PrincipalKind::Agent => formatter.write_str(text),
            PrincipalKind::Tool => {
                let named = text.strip_prefix(TOOLS).unwrap_or(text);
                write!(formatter, "tool {}", named.strip_prefix("*/").unwrap_or(named))
            }
            PrincipalKind::Peer => write!(formatter, "peer {}", text.strip_prefix(PEERS).unwrap_or(text)),
        }
    }
}

impl fmt::Display for Agents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, pattern) in self.0.iter().enumerate() {
            write!(formatter, "{}`{pattern}`", if number > 0 { " or " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_globs_and_helpers() {
        for (pattern, agent, expected) in [
            ("solver", "solver", true),
            ("solver", "solver-2", false),
            ("debater-*", "debater-12", true),
            ("debater-?", "debater-12", false),
            ("*", "Zoë Ω", true),
            ("*", "planner/selector", false),
            ("planner/*", "planner/selector", false),
            ("planner/selector", "planner/selector", true),
            ("a.c", "abc", false),
            ("[ab]", "a", false),
            ("/root/solver", "/root/solver", true),
            ("/root/*", "/root/solver", true),
            ("/root/*", "/root/solver/checker", false),
            ("*", "/root", false),
            ("*", "mcp/calc/add", false),
        ] {
            let pattern = AgentPattern::parse(pattern).expect("a pattern");
            assert_eq!(pattern.matches(agent), expected, "{pattern} {agent}");
        }
        for (pattern, tool, expected) in [
            ("add", "mcp/calc/add", true),
            ("add", "mcp/other/add", true),
            ("add", "mcp/calc/add_all", false),
            ("add", "add", false),
            ("calc/add", "mcp/calc/add", true),
            ("calc/add", "mcp/other/add", false),
            ("calc/*", "mcp/calc/add", true),
            ("*", "mcp/calc", false),
            ("*", "planner", false),
        ] {
            let pattern = AgentPattern::of_tool(pattern).expect("a pattern");
            assert_eq!(pattern.matches(tool), expected, "{pattern} {tool}");
        }
        assert!(
            AgentPattern::of_peer("weather").is_ok_and(|peer| peer.matches("a2a/weather") && !peer.matches("weather"))
        );
        assert!(AgentPattern::parse(" ").is_err());
        assert!(AgentPattern::parse("a\u{202e}").is_err());
    }
}
