//! `drop_history`: the agent no longer sees what came before.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, history, not_applicable};
use crate::surface::{Conversation, Message};
use crate::trajectory::Side;

/// Keeps only the last or the first messages of a request.
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
    /// Number of latest messages to keep, without system prompts.
    pub keep_last: Option<NonZeroU32>,
    /// Number of earliest messages to keep, without system prompts.
    pub keep_first: Option<NonZeroU32>,
    /// Whether system prompts are kept.
    #[serde(default = "stay")]
    pub keep_system: bool,
}

fn stay() -> bool {
    true
}

impl Manipulator for DropHistory {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let (system, pieces) = history::pieces(std::mem::take(&mut conversation.messages));
        let count: usize = pieces.iter().map(Vec::len).sum();
        let (first, last) = (size(self.keep_first), size(self.keep_last));
        let mut at = 0;
        let kept = pieces.into_iter().filter(|piece| {
            let (from, to) = (at, at + piece.len());
            at = to;
            from < first || to > count.saturating_sub(last)
        });
        let kept: Vec<Message> = kept.flatten().collect();
        if kept.len() == count && (self.keep_system || system.is_empty()) {
            return not_applicable(format!("the request has only {count} messages that could be dropped"));
        }
        conversation.messages = if self.keep_system { system } else { Vec::new() };
        conversation.messages.extend(kept);
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.keep_last.is_none() && self.keep_first.is_none() {
            return Err("expected `keep_last` or `keep_first`: at least one message is kept".to_owned());
        }
        Ok(())
    }

    fn explain(&self) -> String {
        let system = if self.keep_system { " and the system prompt" } else { "" };
        let kept = match (self.keep_first, self.keep_last) {
            (None, last) => format!("the last {}", size(last)),
            (Some(first), None) => format!("the first {first}"),
            (Some(first), Some(last)) => format!("the first {first} and the last {last}"),
        };
        format!("drops all but {kept} message(s){system}")
    }
}

fn size(count: Option<NonZeroU32>) -> usize {
    count.map_or(0, |count| usize::try_from(count.get()).unwrap_or(usize::MAX))
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
            let edited = edit(&DropHistory { keep_last: NonZeroU32::new(keep_last), keep_first: None, keep_system }, messages, &[]).ok();
            assert_eq!(edited.as_deref(), expected, "{messages}");
        }
        for (keep_first, keep_last, messages, expected) in [
            (1, 0, "system: s|user: A|assistant: B|user: C", Some("system: s|user: A")),
            (1, 1, "user: A|assistant: B|user: C", Some("user: A|user: C")),
            (2, 0, two_results, Some(two_results)),
            (1, 0, "user: A", None),
        ] {
            let drop = DropHistory {
                keep_last: NonZeroU32::new(keep_last),
                keep_first: NonZeroU32::new(keep_first),
                keep_system: true,
            };
            let edited = edit(&drop, messages, &[]).ok();
            assert_eq!(edited.as_deref(), expected.filter(|expected| *expected != messages), "{messages}");
        }
        assert!(DropHistory { keep_last: None, keep_first: None, keep_system: true }.check(Side::Request).is_err());
    }
}
