//! `drop_history`: the agent no longer sees what came before.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::surface::{Conversation, Message, Role};

/// Keeps only the last messages of a request.
///
/// A tool call and its results are never parted: where the cut would fall between them, it moves before the call.
///
/// ```toml
/// [[injection]]
/// agent = "planner"
/// failure_mode = "FM-1.4"
/// when.call = 2
/// manipulator.drop_history = { keep_last = 1 }
///
/// [[check]]
/// agent = "planner"
/// call = 2
/// messages = ["system: plan", "user: A", "assistant: B", "user: C"]
/// expect = ["system: plan", "user: C"]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropHistory {
    /// How many messages are kept, system prompts not counted; at least 1.
    pub keep_last: NonZeroU32,
    /// Whether system prompts stay.
    #[serde(default = "stay")]
    pub keep_system: bool,
}

fn stay() -> bool {
    true
}

impl Manipulator for DropHistory {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let keep = usize::try_from(self.keep_last.get()).unwrap_or(usize::MAX);
        let (system, mut rest): (Vec<Message>, Vec<Message>) =
            std::mem::take(&mut conversation.messages).into_iter().partition(is_system);
        let mut cut = rest.len().saturating_sub(keep);
        while cut > 0 && rest.get(cut).is_some_and(|message| message.role == Role::Tool) {
            cut -= 1;
        }
        if cut == 0 && (self.keep_system || system.is_empty()) {
            return not_applicable(format!("the request has only {} messages that could be dropped", rest.len()));
        }
        let kept = rest.split_off(cut);
        conversation.messages = if self.keep_system { system } else { Vec::new() };
        conversation.messages.extend(kept);
        Ok(())
    }

    fn explain(&self) -> String {
        let system = if self.keep_system { " and the system prompt" } else { "" };
        format!("drops all but the last {} message(s){system}", self.keep_last)
    }
}

fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::edit;

    #[test]
    fn keeps_the_tail_and_whole_tool_loops() {
        let two_results = "system: s|user: A|assistant: calls f|tool: f= 1|tool: f= 2";
        for (keep_last, keep_system, messages, expected) in [
            (1, true, "system: s|user: A|assistant: B|user: C", Some("system: s|user: C")),
            (1, false, "system: s|user: A|assistant: B|user: C", Some("user: C")),
            (2, true, "user: A|assistant: B|user: é", Some("assistant: B|user: é")),
            (1, true, two_results, Some("system: s|assistant: calls f|tool: f= 1|tool: f= 2")),
            (9, true, "user: A|assistant: B", None),
            (9, false, "system: s|user: A", Some("user: A")),
            (1, true, "system: s|assistant: calls f|tool: f= 1", None),
            (1, true, "", None),
        ] {
            let keep_last = NonZeroU32::new(keep_last).expect("not zero");
            let edited = edit(&DropHistory { keep_last, keep_system }, messages, &[]).ok();
            assert_eq!(edited.as_deref(), expected, "{messages}");
        }
    }
}
