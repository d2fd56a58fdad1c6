//! What is rewritten: a message's text, or an answer with its tool calls, and the shape that it must keep.

use crate::surface::{Answer, Conversation, RequiredFormat, Message, Tool, ToolCall};

/// Characters that any edit may have beyond a multiple of the original's.
const SLACK: usize = 1200;
/// How many times the original's length an edit may have, the slack not counted.
const GROWTH: usize = 3;
/// The least part of the original that an edit must keep, as its inverse: an answer may be cut, not emptied.
const SHRINK: usize = 12;

/// What is rewritten.
#[derive(Debug)]
pub(super) struct Subject {
    /// The text.
    pub(super) text: String,
    /// Tool calls of an answer.
    pub(super) calls: Vec<ToolCall>,
    /// The tools that may be called.
    pub(super) tools: Vec<Tool>,
    /// The shape that the text must have.
    pub(super) format: RequiredFormat,
}

impl Subject {
    /// A message of a request: its text keeps its own shape.
    pub(super) fn of_message(message: &Message) -> Self {
        Self { text: message.text(), calls: Vec::new(), tools: Vec::new(), format: RequiredFormat::Text }
    }

    /// An answer to a conversation.
    pub(super) fn of_answer(answer: &Answer, conversation: &Conversation) -> Self {
        Self {
            text: answer.message.text(),
            calls: answer.message.tool_calls.clone(),
            tools: conversation.tools.clone(),
            format: conversation.format.clone(),
        }
    }

    /// Whether there is nothing to rewrite.
    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty()
    }

    /// Shortest and longest edit, in characters.
    pub(super) fn bounds(&self) -> (usize, usize) {
        let length = self.length();
        let least = if self.calls.is_empty() { (length / SHRINK).max(1) } else { 0 };
        (least, length * GROWTH + SLACK)
    }

    /// The longest answer that is asked for, in tokens: the edit in its JSON, and a reason. A token has seldom less
    /// than two characters.
    pub(super) fn max_tokens(&self) -> u64 {
        let (_, most) = self.bounds();
        (most / 2 + 300) as u64
    }

    fn length(&self) -> usize {
        let calls: usize = self.calls.iter().map(|call| call.arguments.chars().count()).sum();
        self.text.chars().count() + calls
    }
}
