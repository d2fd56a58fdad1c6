//! Agents that the upstream runs and names: whose words a reply holds.
//!
//! A request of one agent may be answered by a team that runs at the upstream (Responses, `multi_agent`). Its reply then holds
//! items of several agents, each with a name.

use std::collections::BTreeSet;

use super::{Message, Reply, Surface, door};

/// What one agent says in a reply, without another one between.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentUtterance {
    /// The agent, by the name that the upstream gives it, for example `/root/solver`; `None` where it names none.
    pub agent: Option<String>,
    /// The agent that it speaks to, where that is said.
    pub to: Option<String>,
    /// What it says and calls. What is encrypted or no text is opaque.
    pub message: Message,
}

impl Reply {
    /// The agents that the upstream names in this reply, each once, in the order of their names.
    pub fn named_agents(&self) -> BTreeSet<&str> {
        self.utterances.iter().filter_map(|utterance| utterance.agent.as_deref()).collect()
    }

    /// The agents that the upstream names, where the reply is not that of its caller alone: it holds the words of several
    /// agents, or of one below the root of a team. `None` for any other reply.
    pub fn team(&self) -> Option<Vec<&str>> {
        let agents = self.named_agents();
        let is_root = |name: &&str| !name.trim_start_matches('/').contains('/');
        let is_callers = agents.len() < 2 && agents.iter().all(is_root);
        (!is_callers).then(|| agents.into_iter().collect())
    }
}

/// Whether a reply body is one of several agents; see [`Reply::team`]. A body that cannot be read is none. It is read only where
/// it may name agents.
pub fn is_of_team(surface: &dyn Surface, body: &[u8], streamed: bool) -> bool {
    let plain = door::plain(body);
    let may_name = ["\"agent_name\"", "\"agent_message\""]
        .iter()
        .any(|key| memchr::memmem::find(&plain, key.as_bytes()).is_some());
    may_name && door::reply(surface, &plain, streamed).is_ok_and(|reply| reply.team().is_some())
}
