//! Agents and their conversations.

use std::io::Write;

use super::ExampleError;

/// An agent: its name is for people only; the model sees the prompt.
#[derive(Debug)]
pub(super) struct Agent {
    /// The name in the transcript.
    pub(super) name: &'static str,
    /// The system prompt.
    pub(super) prompt: &'static str,
}

/// A message: the role as the API spells it, and the text.
pub(super) type ChatMessage = (&'static str, String);

/// Something that answers conversations.
pub(super) trait Model {
    /// The reply to a conversation.
    async fn ask(&self, messages: &[ChatMessage]) -> Result<String, ExampleError>;
}

/// One agent's conversation.
#[derive(Debug)]
pub(super) struct Chat {
    agent: &'static Agent,
    messages: Vec<ChatMessage>,
}

impl Chat {
    /// A new conversation of an agent.
    pub(super) fn new(agent: &'static Agent) -> Self {
        Self { agent, messages: vec![("system", agent.prompt.to_owned())] }
    }

    /// Tells the agent something and returns its answer; both stay in the conversation.
    pub(super) async fn say(
        &mut self,
        model: &impl Model,
        text: String,
        talk: &mut (dyn Write + Send),
    ) -> Result<String, ExampleError> {
        self.messages.push(("user", text));
        let reply = model.ask(&self.messages).await?;
        writeln!(talk, "[{}] {reply}", self.agent.name).map_err(ExampleError::Output)?;
        self.messages.push(("assistant", reply.clone()));
        Ok(reply)
    }
}

/// The value of the last line that starts with `ANSWER:`.
pub(super) fn answer_line(text: &str) -> Option<String> {
    let values = text.lines().rev().filter_map(|line| line.trim().strip_prefix("ANSWER:"));
    values.map(|value| value.trim().trim_end_matches('.').to_owned()).find(|value| !value.is_empty())
}
