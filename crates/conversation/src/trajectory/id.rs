//! Ids and indices, each checked once where it enters.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};

/// Longest run id, in bytes.
const RUN_ID_MAX: usize = 64;
/// Longest agent name, in characters.
const AGENT_NAME_MAX: usize = 128;

/// Why an id was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The run id is not `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
    #[error(
        "run id `{}` is not allowed: expected 1 to 64 of A-Z a-z 0-9 . _ -, not starting with . _ or -",
        .0.escape_debug()
    )]
    Run(String),
    /// The agent name is empty, too long or holds a control or bidirectional-override character.
    #[error("agent name `{}` is not allowed: expected 1 to 128 printable characters", .0.escape_debug())]
    Agent(String),
}

/// Names one execution of a multi-agent system: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, so it is always safe as a
/// directory name and as a path segment of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))]
pub struct RunId(Box<str>);

impl RunId {
    /// Checks the raw text (never a percent-decoded one).
    ///
    /// # Errors
    /// [`IdError::Run`] when it has another form.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bytes = text.as_bytes();
        let allowed = bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.len() <= RUN_ID_MAX
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte));
        if allowed { Ok(Self(text.into())) } else { Err(IdError::Run(text.chars().take(80).collect())) }
    }

    /// An opaque id of our own: a prefix (ASCII letters and digits) and 16 hex digits of a hash.
    pub fn hashed(prefix: &str, of: &[u8]) -> Self {
        let hex = blake3::hash(of).to_hex();
        Self(format!("{prefix}-{}", hex.get(..16).unwrap_or_default()).into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for RunId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0.into()
    }
}

/// How the names of tools and their servers begin: `mcp/<server>/<tool>`, `mcp/<server>`.
pub const TOOLS: &str = "mcp/";
/// How the names of peers begin: `a2a/<peer>`.
pub const PEERS: &str = "a2a/";

/// How the names of agents begin that nothing names.
const UNNAMED: &str = "agent-";

/// What a name in a run is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// An agent, for which a model answers.
    #[default]
    Agent,
    /// A tool, or the server of tools.
    Tool,
    /// Another system, which is asked as one.
    Peer,
}

impl PrincipalKind {
    /// Its name, as files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Tool => "tool",
            Self::Peer => "peer",
        }
    }
}

/// Names an agent. Free text, because frameworks name agents `Senior Researcher`; never empty, never with
/// characters that could steer a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", extend("minLength" = 1, "maxLength" = 128))]
pub struct AgentName(Arc<str>);

impl AgentName {
    /// Checks the text.
    ///
    /// # Errors
    /// [`IdError::Agent`] when it is empty, over 128 characters, or holds control or bidi characters.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        // U+FFFD stands where bytes were no UTF-8.
        let hostile = |c: char| {
            c.is_control()
                || matches!(c, '\u{fffd}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let allowed = !text.trim().is_empty() && text.chars().count() <= AGENT_NAME_MAX && !text.chars().any(hostile);
        if allowed { Ok(Self(text.trim().into())) } else { Err(IdError::Agent(text.chars().take(140).collect())) }
    }

    /// The stable name of an agent that nothing names: `agent-<8 hex>` of what its requests look like.
    pub fn unnamed(hash: u32) -> Self {
        Self(format!("{UNNAMED}{hash:08x}").into())
    }

    /// The hash in the name of an agent that nothing names; `None` where something does.
    pub fn hash_of_unnamed(&self) -> Option<u32> {
        let hex = self.0.strip_prefix(UNNAMED)?;
        let is_hash = hex.len() == 8 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        u32::from_str_radix(hex, 16).ok().filter(|_| is_hash)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it is the name of.
    pub fn kind(&self) -> PrincipalKind {
        if self.0.starts_with(TOOLS) {
            PrincipalKind::Tool
        } else if self.0.starts_with(PEERS) {
            PrincipalKind::Peer
        } else {
            PrincipalKind::Agent
        }
    }

    /// Whether it is an agent's, not that of a tool or a peer.
    pub fn is_agent(&self) -> bool {
        self.kind() == PrincipalKind::Agent
    }

    /// The name of one of several equal agents: `debater`, `debater#1`, `debater#2`.
    pub fn numbered(&self, instance: u32) -> String {
        if instance == 0 { self.to_string() } else { format!("{self}#{instance}") }
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for AgentName {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.as_str().to_owned()
    }
}

impl Serialize for AgentName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One model call of a run, 0-based, in arrival order.
pub type StepIndex = u32;

/// The agent's own number of a model call, 0-based, per agent instance.
pub type Call = u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids() {
        for good in ["a", "run-1", "A.b_c-9", &"x".repeat(64)] {
            assert!(RunId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-a", "_a", "a/b", "a%2e", "a b", "é", "a\0", "../x", &"x".repeat(65)] {
            assert!(RunId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn agent_names() {
        for good in ["planner", "Senior Researcher", "Zoë", "a/selector", &"é".repeat(128)] {
            assert!(AgentName::parse(good).is_ok(), "{good}");
        }
        // Nothing that steers a terminal, turns the direction of text or stands for bytes that were none.
        let hostile = ["\u{fffd}", "\u{200e}", "\u{200f}", "\u{2028}", "\u{202e}", "\u{2066}", "\u{2069}", "\u{7f}"];
        let hostile = hostile.map(|c| format!("a{c}b"));
        let bad = ["", "  ", "a\nb", "\u{1b}[31m", &"x".repeat(129)];
        for bad in bad.into_iter().chain(hostile.iter().map(String::as_str)) {
            assert!(AgentName::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(AgentName::unnamed(0xab).hash_of_unnamed(), Some(0xab));
        for named in ["agent-smith", "agent-", "agent-+0000000", "agent-000000ab1", "planner"] {
            assert_eq!(AgentName::parse(named).expect("a name").hash_of_unnamed(), None, "{named}");
        }
        assert_eq!(AgentName::parse(" solver ").map(String::from), Ok("solver".to_owned()));
    }

    #[test]
    fn ids_are_written_as_they_read() {
        let (run, agent) = (RunId::parse("run-1").expect("an id"), AgentName::parse("Zoë").expect("a name"));
        assert_eq!(
            (run.to_string(), run.as_str(), String::from(run.clone())),
            ("run-1".into(), "run-1", "run-1".into())
        );
        assert_eq!((agent.to_string(), agent.as_str()), ("Zoë".into(), "Zoë"));
        let json = serde_json::to_string(&(&run, &agent)).expect("serialises");
        assert_eq!(json, r#"["run-1","Zoë"]"#);
        assert_eq!(serde_json::from_str::<(RunId, AgentName)>(&json).expect("reads"), (run, agent));
        assert!(
            serde_json::from_str::<RunId>("\"../x\"").is_err() && serde_json::from_str::<AgentName>("\"\"").is_err()
        );
    }

    #[test]
    fn names_of_our_own_are_allowed_and_always_the_same() {
        // blake3 of nothing begins with af1349b9f5f9a1a6.
        let run = RunId::hashed("run", b"");
        assert_eq!(run.as_str(), "run-af1349b9f5f9a1a6");
        assert_eq!(RunId::parse(run.as_str()), Ok(run));
        assert_ne!(RunId::hashed("run", b"a"), RunId::hashed("run", b"b"));
        assert_eq!(AgentName::unnamed(0xab).as_str(), "agent-000000ab");
    }
}
