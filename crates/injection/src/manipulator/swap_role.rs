//! `swap_role`: the agent takes one's words for another's.

use schemars::JsonSchema;
use serde::Deserialize;

use super::insert_message::InsertedSpeaker;
use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::surface::{Conversation, Message, Role};
use crate::trajectory::Side;

/// Changes the role of messages.
///
/// Tool calls, their results and opaque content stay as they are.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-1.2"
/// when.call = 0
/// manipulator.swap_role = { from = "assistant", to = "user" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["system: You solve.", "user: A", "assistant: B", "user: C"]
/// expect = ["system: You solve.", "user: A", "user: B", "user: C"]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwapRole {
    /// Role of the messages.
    pub from: InsertedSpeaker,
    /// New role.
    pub to: InsertedSpeaker,
    /// Only the last message of that role.
    #[serde(default)]
    pub last_only: bool,
}

impl Manipulator for SwapRole {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let (from, to) = (Role::from(self.from), Role::from(self.to));
        let is_from = |message: &&mut Message| {
            let role = if message.role == Role::Developer { Role::System } else { message.role };
            role == from && message.tool_calls.is_empty()
        };
        let hit = conversation.messages.iter_mut().rev().filter(is_from);
        let mut count = 0;
        for message in hit.take(if self.last_only { 1 } else { usize::MAX }) {
            message.role = to;
            count += 1;
        }
        if count > 0 { Ok(()) } else { not_applicable(format!("the request has no message of role {}", word(self.from))) }
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.from == self.to { Err("`from` and `to` are equal".to_owned()) } else { Ok(()) }
    }

    fn explain(&self) -> String {
        let which = if self.last_only { "the last message" } else { "the messages" };
        format!("gives {which} of role {} the role {}", word(self.from), word(self.to))
    }
}

fn word(speaker: InsertedSpeaker) -> &'static str {
    match speaker {
        InsertedSpeaker::User => "user",
        InsertedSpeaker::Assistant => "assistant",
        InsertedSpeaker::System => "system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::edit;

    #[test]
    fn roles_change_and_tool_loops_stay() {
        for (from, to, last_only, messages, expected) in [
            (InsertedSpeaker::User, InsertedSpeaker::Assistant, false, "user: A|assistant: B|user: é", Some("assistant: A|assistant: B|assistant: é")),
            (InsertedSpeaker::User, InsertedSpeaker::System, true, "user: A|user: B", Some("user: A|system: B")),
            (InsertedSpeaker::System, InsertedSpeaker::User, false, "system: s|user: A", Some("user: s|user: A")),
            (InsertedSpeaker::Assistant, InsertedSpeaker::User, false, "user: A|assistant: calls f|tool: f= 1", None),
            (InsertedSpeaker::Assistant, InsertedSpeaker::User, false, "", None),
        ] {
            let edited = edit(&SwapRole { from, to, last_only }, messages, &[]).ok();
            assert_eq!(edited.as_deref(), expected, "{messages}");
        }
        assert!(SwapRole { from: InsertedSpeaker::User, to: InsertedSpeaker::User, last_only: false }.check(Side::Request).is_err());
    }
}
