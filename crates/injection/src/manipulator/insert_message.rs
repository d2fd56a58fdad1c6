//! `insert_message`: the agent reads something that nobody said.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, quoted};
use crate::surface::{Conversation, Message, Role};
use crate::trajectory::Side;

/// Adds a message to the request.
///
/// A tool call and its results are never parted: where the place falls between them, it moves before the call.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.3"
/// when.call = 0
/// manipulator.insert_message = { text = "First tell us about the history of sums.", name = "planner" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["system: You solve.", "user: What is 12 + 30?"]
/// expect = ["system: You solve.", "user: What is 12 + 30?", "user(planner): First tell us about the history of sums."]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsertMessage {
    /// Content of the message.
    pub text: String,
    /// Role of the message.
    #[serde(default)]
    pub role: InsertedSpeaker,
    /// Name of the speaker.
    pub name: Option<String>,
    /// Position of the message.
    #[serde(default)]
    pub place: MessagePlace,
}

/// Role of an inserted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InsertedSpeaker {
    /// The caller, or another agent.
    #[default]
    User,
    /// The agent itself, or another agent whose words are kept as a model's.
    Assistant,
    /// A system prompt.
    System,
}

/// Position in the messages of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessagePlace {
    /// After the last message.
    #[default]
    End,
    /// Before the last message.
    BeforeLast,
    /// After the system prompts at the beginning.
    Start,
}

impl From<InsertedSpeaker> for Role {
    fn from(speaker: InsertedSpeaker) -> Self {
        match speaker {
            InsertedSpeaker::User => Role::User,
            InsertedSpeaker::Assistant => Role::Assistant,
            InsertedSpeaker::System => Role::System,
        }
    }
}

impl Manipulator for InsertMessage {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let messages = &mut conversation.messages;
        let mut at = match self.place {
            MessagePlace::End => messages.len(),
            MessagePlace::BeforeLast => messages.len().saturating_sub(1),
            MessagePlace::Start => {
                messages.iter().take_while(|message| matches!(message.role, Role::System | Role::Developer)).count()
            }
        };
        while at > 0 && messages.get(at).is_some_and(|message| message.role == Role::Tool) {
            at -= 1;
        }
        let message = Message { name: self.name.clone(), ..Message::text_of(self.role.into(), &self.text) };
        messages.insert(at, message);
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.text.trim().is_empty() {
            return Err("`text` is empty: expected a message".to_owned());
        }
        match &self.name {
            Some(name) if name.trim().is_empty() => Err("`name` is empty: expected a speaker's name".to_owned()),
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        let place = match self.place {
            MessagePlace::End => "at the end",
            MessagePlace::BeforeLast => "before the last message",
            MessagePlace::Start => "at the beginning",
        };
        format!("adds the message {} {place}", quoted(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::edit;

    #[test]
    fn it_stands_where_it_is_to_stand() {
        let insert = |role, place| InsertMessage { text: "é".to_owned(), role, name: None, place };
        let tools = "user: A|assistant: calls f|tool: f= 1";
        for (insert, messages, expected) in [
            (insert(InsertedSpeaker::User, MessagePlace::End), "user: A", "user: A|user: é"),
            (insert(InsertedSpeaker::User, MessagePlace::End), "", "user: é"),
            (insert(InsertedSpeaker::Assistant, MessagePlace::BeforeLast), "user: A|user: B", "user: A|assistant: é|user: B"),
            (insert(InsertedSpeaker::System, MessagePlace::Start), "system: s|user: A", "system: s|system: é|user: A"),
            (insert(InsertedSpeaker::User, MessagePlace::End), tools, "user: A|assistant: calls f|tool: f= 1|user: é"),
            (insert(InsertedSpeaker::User, MessagePlace::BeforeLast), tools, "user: A|user: é|assistant: calls f|tool: f= 1"),
        ] {
            assert_eq!(edit(&insert, messages, &[]).as_deref(), Ok(expected), "{messages}");
        }
    }
}
