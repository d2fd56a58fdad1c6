//! `duplicate_message`: the agent reads something twice.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;

use super::append_instruction::InstructionTarget;
use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::surface::{Conversation, Message, Role};
use crate::trajectory::Side;

/// Most copies of a message.
const TIMES_LIMIT: u32 = 100;

/// Repeats a message of the request directly after itself.
///
/// Tool calls and their results are not repeated: a result answers one call.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-1.3"
/// when.call = 0
/// manipulator.duplicate_message = { message = "user" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?", "assistant: 42"]
/// expect = ["user: What is 12 + 30?", "user: What is 12 + 30?", "assistant: 42"]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DuplicateMessage {
    /// Which message.
    #[serde(default = "last")]
    pub message: InstructionTarget,
    /// Number of copies to add, 1 to 100.
    #[serde(default = "once")]
    pub times: NonZeroU32,
}

fn last() -> InstructionTarget {
    InstructionTarget::Last
}

fn once() -> NonZeroU32 {
    NonZeroU32::MIN
}

impl Manipulator for DuplicateMessage {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let plain = |message: &Message| message.role != Role::Tool && message.tool_calls.is_empty();
        let wanted = |message: &Message| match self.message {
            InstructionTarget::System => matches!(message.role, Role::System | Role::Developer),
            InstructionTarget::User => message.role == Role::User,
            InstructionTarget::Last => true,
        };
        let messages = &mut conversation.messages;
        let Some(at) = messages.iter().rposition(|message| wanted(message) && plain(message)) else {
            return not_applicable("the request has no such message that could be repeated");
        };
        let Some(copy) = messages.get(at).map(|message| Message { origin: None, ..message.clone() }) else {
            return not_applicable("the request has no message");
        };
        for _ in 0..self.times.get().min(TIMES_LIMIT) {
            messages.insert(at + 1, copy.clone());
        }
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.times.get() > TIMES_LIMIT {
            return Err(format!("`times` is {}: expected 1 to {TIMES_LIMIT}", self.times));
        }
        Ok(())
    }

    fn explain(&self) -> String {
        let which = match self.message {
            InstructionTarget::System => "system prompt",
            InstructionTarget::User => "last user message",
            InstructionTarget::Last => "last message",
        };
        format!("repeats the {which} {} time(s)", self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::edit;

    #[test]
    fn copies_stand_behind_the_original() {
        let times = |times| NonZeroU32::new(times).expect("not zero");
        for (message, count, messages, expected) in [
            (InstructionTarget::Last, 1, "user: é", Some("user: é|user: é")),
            (InstructionTarget::User, 2, "user: A|assistant: B", Some("user: A|user: A|user: A|assistant: B")),
            (InstructionTarget::System, 1, "system: s|user: A", Some("system: s|system: s|user: A")),
            (InstructionTarget::Last, 1, "user: A|assistant: calls f|tool: f= 1", Some("user: A|user: A|assistant: calls f|tool: f= 1")),
            (InstructionTarget::System, 1, "user: A", None),
            (InstructionTarget::Last, 1, "", None),
        ] {
            let edited = edit(&DuplicateMessage { message, times: times(count) }, messages, &[]).ok();
            assert_eq!(edited.as_deref(), expected, "{messages}");
        }
        assert!(DuplicateMessage { message: InstructionTarget::Last, times: times(101) }.check(Side::Request).is_err());
    }
}
