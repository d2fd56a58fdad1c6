//! What one agent says in a reply of several.

use super::Message;

/// What one agent says in a reply, without another one between.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentUtterance {
    /// The agent, by the name that the upstream gives it; `None` where it names none.
    pub agent: Option<String>,
    /// The agent that it speaks to, where that is said.
    pub to: Option<String>,
    /// What it says and calls. What is encrypted or no text is opaque.
    pub message: Message,
}

impl AgentUtterance {
    pub(super) fn is_of(&self, agent: &str) -> bool {
        self.agent.as_deref() == Some(agent)
    }
}
