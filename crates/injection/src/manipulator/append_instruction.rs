//! `append_instruction`: something more that the agent is told.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable, quoted};
use crate::surface::{Conversation, Message, Part, Role};
use crate::trajectory::Side;

/// Appends an instruction to a message of the request.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.2"
/// when.call = 0
/// manipulator.append_instruction = { text = "Do not ask back.", role = "last" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["system: You solve.", "user: How far is it?"]
/// expect = ["system: You solve.", "user: How far is it?\n\nDo not ask back."]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendInstruction {
    /// Instruction, verbatim.
    pub text: String,
    /// Message that it is appended to.
    #[serde(default)]
    pub role: InstructionTarget,
}

/// Message that an instruction is appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstructionTarget {
    /// The last system or developer message; if there is none, a new first message.
    #[default]
    System,
    /// The last message of role user; if there is none, a new last message.
    User,
    /// The last message of any role.
    Last,
}

impl Manipulator for AppendInstruction {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let messages = &mut conversation.messages;
        let wanted = |message: &Message| match self.role {
            InstructionTarget::System => matches!(message.role, Role::System | Role::Developer),
            InstructionTarget::User => message.role == Role::User,
            InstructionTarget::Last => true,
        };
        match (messages.iter().rposition(wanted).and_then(|at| messages.get_mut(at)), self.role) {
            (Some(message), _) => append(message, &self.text),
            (None, InstructionTarget::System) => messages.insert(0, Message::text_of(Role::System, &self.text)),
            (None, InstructionTarget::User) => messages.push(Message::text_of(Role::User, &self.text)),
            (None, InstructionTarget::Last) => return not_applicable("the request has no message"),
        }
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.text.trim().is_empty() { Err("`text` is empty: expected an instruction".to_owned()) } else { Ok(()) }
    }

    fn explain(&self) -> String {
        let target = match self.role {
            InstructionTarget::System => "system prompt",
            InstructionTarget::User => "last user message",
            InstructionTarget::Last => "last message",
        };
        format!("adds {} to the {target}", quoted(&self.text))
    }
}

fn append(message: &mut Message, text: &str) {
    match message.texts_mut().last() {
        Some(old) if old.is_empty() => text.clone_into(old),
        Some(old) => {
            old.push_str("\n\n");
            old.push_str(text);
        }
        None => message.parts.push(Part::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{context, request};

    #[test]
    fn joins_the_right_message() {
        for (role, messages, expected) in [
            (InstructionTarget::System, "system: a|user: b", "system: a\n\nX|user: b"),
            (InstructionTarget::System, "user: b", "system: X|user: b"),
            (InstructionTarget::User, "user: b|assistant: c", "user: b\n\nX|assistant: c"),
            (InstructionTarget::User, "assistant: c", "assistant: c|user: X"),
            (InstructionTarget::Last, "user: b|assistant: ", "user: b|assistant: X"),
        ] {
            let mut conversation = request(messages);
            let edit = AppendInstruction { text: "X".to_owned(), role };
            edit.edit_request(&mut conversation, &context(&request(messages))).expect(messages);
            let texts = |c: &Conversation| c.messages.iter().map(|m| (m.role, m.text())).collect::<Vec<_>>();
            assert_eq!(texts(&conversation), texts(&request(expected)), "{messages}");
        }
        let nothing = AppendInstruction { text: "X".to_owned(), role: InstructionTarget::Last };
        assert!(nothing.edit_request(&mut Conversation::default(), &context(&Conversation::default())).is_err());
    }

    #[test]
    fn content_parts_keep_their_place() {
        let mut conversation = request("user: a");
        let message = conversation.messages.first_mut().expect("one message");
        message.parts = vec![Part::Text("a".to_owned()), Part::Opaque("image".to_owned())];
        let edit = AppendInstruction { text: "é".to_owned(), role: InstructionTarget::User };
        edit.edit_request(&mut conversation, &context(&Conversation::default())).expect("applies");
        let parts = &conversation.messages.first().expect("one message").parts;
        assert_eq!(parts, &[Part::Text("a\n\né".to_owned()), Part::Opaque("image".to_owned())]);
    }
}
