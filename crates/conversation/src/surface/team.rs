//! Agents that the upstream runs and names: whose words a reply holds.
//!
//! A request of one agent may be answered by a team that runs at the upstream (Responses, `multi_agent`). Its reply then holds
//! items of several agents, each with a name.

use std::collections::BTreeSet;

use super::{Answer, Message, OpenaiResponses, Reply, Role, Surface, ToolCall, door};

impl Reply {
    /// The agents that the upstream names in this reply, each once, in the order of their names.
    pub fn named_agents(&self) -> BTreeSet<&str> {
        self.utterances.iter().filter_map(|utterance| utterance.agent.as_deref()).collect()
    }

    /// The agents that the upstream names, where the reply is not that of its caller alone: it holds the words of several
    /// agents, or of one below the root of a team. `None` for any other reply.
    pub fn team(&self) -> Option<Vec<&str>> {
        let agents = self.named_agents();
        let is_callers = agents.len() < 2 && agents.iter().all(|agent| is_root(agent));
        (!is_callers).then(|| agents.into_iter().collect())
    }

    /// The view of what one agent says in the reply, in one answer. An edit of it leaves the words of all others. The reply ends as
    /// the root does: below it, an answer has no reason to stop.
    #[must_use]
    pub fn of_speaker(&self, agent: &str) -> Self {
        let mut message = Message::text_of(Role::Assistant, String::new());
        message.parts.clear();
        message.origin = Some(0);
        for uttered in self.utterances.iter().filter(|uttered| uttered.is_of(agent)) {
            message.parts.extend(uttered.message.parts.iter().cloned());
            for call in &uttered.message.tool_calls {
                message.tool_calls.push(ToolCall { origin: Some(message.tool_calls.len()), ..call.clone() });
            }
        }
        let answers = self.answers.iter().take(1).map(|answer| Answer {
            index: answer.index,
            message: message.clone(),
            finish_reason: answer.finish_reason.clone().filter(|_| is_root(agent)),
        });
        Self { answers: answers.collect(), speaker: Some(agent.to_owned()), ..self.clone() }
    }
}

/// Whether an agent is the root of its team: the one for which the asking agent asks.
pub fn is_root(agent: &str) -> bool {
    !agent.trim_start_matches('/').contains('/')
}

/// Whether a request asks for the reply of a team. It is told from the bytes: most requests say nothing of it.
pub fn asks_for_team(surface: &dyn Surface, body: &[u8]) -> bool {
    may_name_agents(surface) && memchr::memmem::find(body, b"\"multi_agent\"").is_some()
}

/// Whether the upstream can name agents in replies of this API.
pub fn may_name_agents(surface: &dyn Surface) -> bool {
    surface.name() == OpenaiResponses.name()
}

/// What a body says of agents that the upstream names. It is read only where it may name some: `None` where it names none, or
/// cannot be read.
pub fn team_reply(surface: &dyn Surface, body: &[u8], streamed: bool) -> Option<Reply> {
    if !may_name_agents(surface) {
        return None;
    }
    let plain = door::without_codings(body);
    let names = |key: &str| memchr::memmem::find(&plain, key.as_bytes()).is_some();
    if !names("\"agent_name\"") && !names("\"agent_message\"") {
        return None;
    }
    door::reply(surface, &plain, streamed).ok().filter(|reply| !reply.utterances.is_empty())
}

/// Whether a reply body is one of several agents; see [`Reply::team`].
pub fn is_of_team(surface: &dyn Surface, body: &[u8], streamed: bool) -> bool {
    team_reply(surface, body, streamed).is_some_and(|reply| reply.team().is_some())
}
