//! `reorder_history`: the agent reads what was said in another order.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, history, not_applicable};
use crate::surface::Conversation;

/// Reorders the messages of the request.
///
/// System prompts stay first and the last message stays last; a tool call and its results stay together.
///
/// ```toml
/// [[injection]]
/// agent = "critic"
/// failure_mode = "FM-1.4"
/// when.call = 0
/// manipulator.reorder_history = { how = "reverse" }
///
/// [[check]]
/// agent = "critic"
/// messages = ["system: judge", "user: A", "assistant: B", "user: C", "user: Your verdict?"]
/// expect = ["system: judge", "user: C", "assistant: B", "user: A", "user: Your verdict?"]
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderHistory {
    /// New order.
    #[serde(default)]
    pub how: HistoryOrder,
}

/// New order of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryOrder {
    /// Drawn, and different from the original.
    #[default]
    Shuffle,
    /// Latest first.
    Reverse,
    /// First message last.
    Rotate,
}

impl Manipulator for ReorderHistory {
    fn edit_request(&self, conversation: &mut Conversation, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let (system, mut pieces) = history::pieces(std::mem::take(&mut conversation.messages));
        let last = pieces.pop();
        if pieces.len() < 2 {
            return not_applicable("the request has no two messages before its last that could change places");
        }
        match self.how {
            HistoryOrder::Reverse => pieces.reverse(),
            HistoryOrder::Rotate => pieces.rotate_left(1),
            HistoryOrder::Shuffle => {
                // A draw per position; the rotation keeps the order from being the one it was.
                let mut draw = context.draw;
                for position in (1..pieces.len()).rev() {
                    let sides = position as u64 + 1;
                    pieces.swap(position, usize::try_from(draw % sides).unwrap_or_default());
                    draw /= sides;
                }
                let origins: Vec<_> = pieces.iter().filter_map(|piece| piece.first()?.origin).collect();
                if origins.is_sorted() {
                    pieces.rotate_left(1);
                }
            }
        }
        conversation.messages = system.into_iter().chain(pieces.into_iter().flatten()).chain(last.into_iter().flatten()).collect();
        Ok(())
    }

    fn explain(&self) -> String {
        match self.how {
            HistoryOrder::Shuffle => "shuffles the messages before the last",
            HistoryOrder::Reverse => "reverses the messages before the last",
            HistoryOrder::Rotate => "moves the first message before the last",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{context, edit, lines, request};

    #[test]
    fn orders_keep_the_ends_and_tool_loops() {
        let messages = "system: s|user: A|assistant: calls f|tool: f= 1|user: é|user: Z";
        for (how, expected) in [
            (HistoryOrder::Reverse, "system: s|user: é|assistant: calls f|tool: f= 1|user: A|user: Z"),
            (HistoryOrder::Rotate, "system: s|assistant: calls f|tool: f= 1|user: é|user: A|user: Z"),
        ] {
            assert_eq!(edit(&ReorderHistory { how }, messages, &[]).as_deref(), Ok(expected));
        }
        for short in ["", "user: A", "system: s|user: A|user: Z"] {
            assert!(edit(&ReorderHistory::default(), short, &[]).is_err(), "{short}");
        }
    }

    #[test]
    fn a_shuffle_is_never_the_old_order_and_equal_for_equal_draws() {
        let mut before = request("user: A|user: B|user: C|user: Z");
        for (at, message) in before.messages.iter_mut().enumerate() {
            message.origin = Some(at);
        }
        for draw in 0..12 {
            let shuffled = || {
                let mut after = before.clone();
                let context = Context { draw, ..context(&before) };
                ReorderHistory::default().edit_request(&mut after, &context).expect("applies");
                lines(&after)
            };
            assert_ne!(shuffled(), lines(&before), "{draw}");
            assert_eq!(shuffled(), shuffled());
            assert!(shuffled().ends_with("|user: Z"));
        }
    }
}
