//! Content blocks: what APIs have in common whose messages are lists of pieces, calls and results among them.
//!
//! Messages calls such a piece a block, Gemini a part. Both are read into [`Block`], and edited by what it says.

pub(super) mod edit;

use std::ops::Range;

use super::{Answer, Message, Part, Role, ToolCall, fields};

/// A block, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// Text.
    Text(String),
    /// A call of a tool that the caller runs. Its arguments are JSON, as it is written.
    Call(ToolCall),
    /// The result of one.
    Result {
        /// The call.
        call_id: String,
        /// What the tool said.
        parts: Vec<Part>,
    },
    /// Any other block, by its type: what a model thinks, images, documents, calls that the upstream runs itself.
    Other(String),
}

/// What blocks of one speaker say as one message. `origin` is the message's.
pub(super) fn message<'b>(role: Role, blocks: impl Iterator<Item = &'b Block>, origin: usize) -> Message {
    let mut message = Message { parts: Vec::new(), origin: Some(origin), ..Message::text_of(role, String::new()) };
    for block in blocks {
        match block {
            Block::Text(text) => message.parts.push(Part::Text(text.clone())),
            Block::Call(call) => {
                let origin = Some(message.tool_calls.len());
                message.tool_calls.push(ToolCall { origin, ..call.clone() });
            }
            Block::Result { call_id, parts } => {
                message.role = Role::Tool;
                message.answers_call = Some(call_id.clone());
                message.parts.extend(parts.iter().cloned());
            }
            Block::Other(kind) => message.parts.push(Part::Opaque(kind.clone())),
        }
    }
    message
}

/// The blocks that say an answer of ours: its text, then its calls.
pub(super) fn of_answer(answer: &Answer) -> Vec<Block> {
    let text = Some(answer.message.text()).filter(|text| !text.is_empty()).map(Block::Text);
    text.into_iter().chain(answer.message.tool_calls.iter().cloned().map(Block::Call)).collect()
}

/// Runs of blocks that are one message: a tool result by itself, the blocks between results together.
pub(super) fn groups(blocks: &[Block]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (at, block) in blocks.iter().enumerate() {
        let result = matches!(block, Block::Result { .. });
        match groups.last_mut() {
            Some(last) if open && !result => last.end = at + 1,
            _ => groups.push(at..at + 1),
        }
        open = !result;
    }
    if groups.is_empty() {
        groups.push(0..0);
    }
    groups
}

/// What becomes of a block.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BlockChange {
    /// Its bytes stay.
    Keep,
    /// It says this.
    Text(String),
    /// It calls this, in this way.
    Call(ToolCall),
    /// It goes.
    Drop,
}

/// What becomes of an answer.
#[derive(Debug, Default)]
pub(super) struct BlockChanges {
    /// For each block.
    pub(super) blocks: Vec<BlockChange>,
    /// New blocks, after the others: texts and calls.
    pub(super) added: Vec<Block>,
    /// Why it stopped, if now for another reason, in the words of chat completions.
    pub(super) finish: Option<String>,
}

/// Compares two views of the answer that these blocks make.
pub(super) fn compare(blocks: &[Block], old: &Answer, new: &Answer) -> BlockChanges {
    let mut texts = fields::new_texts(&old.message.parts, &new.message.parts).into_iter();
    let (mut calls, placed) = (0, fields::by_origin(&new.message.tool_calls));
    let mut changes = BlockChanges::default();
    for block in blocks {
        changes.blocks.push(match block {
            Block::Call(_) => {
                calls += 1;
                match placed.get(&(calls - 1)).copied() {
                    None => BlockChange::Drop,
                    Some(call) if old.message.tool_calls.get(calls - 1) == Some(call) => BlockChange::Keep,
                    Some(call) => BlockChange::Call(call.clone()),
                }
            }
            _ => texts.next().flatten().map_or(BlockChange::Keep, BlockChange::Text),
        });
    }
    let text: String = new.message.parts.iter().filter_map(Part::as_text).collect();
    if !text.is_empty() && !old.message.parts.iter().any(|part| part.as_text().is_some()) {
        changes.added.push(Block::Text(text));
    }
    let fresh = new.message.tool_calls.iter().filter(|call| call.origin.is_none_or(|origin| origin >= calls));
    changes.added.extend(fresh.cloned().map(Block::Call));
    changes.finish = new.finish_reason.clone().filter(|_| old.finish_reason != new.finish_reason);
    changes
}
