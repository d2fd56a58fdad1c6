//! One content block.

use crate::surface::{
    Answer, Message, Part, Role, ToolCall,
    fields::{self, text},
    splice::{Node, member},
};

/// A block, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// Text.
    Text(String),
    /// A call of a tool that the caller runs. Its arguments are the JSON of `input`, as it is written.
    Call(ToolCall),
    /// The result of one.
    Result {
        /// The call.
        call_id: String,
        /// What the tool said.
        parts: Vec<Part>,
    },
    /// Any other block, by its type: signed thinking, images, documents, calls that the upstream runs itself.
    Other(String),
}

/// Reads a block object.
pub(super) fn read(node: &Node<'_>) -> Block {
    let members = node.members();
    match text(&members, "type").as_str() {
        "text" => Block::Text(text(&members, "text")),
        "tool_use" => Block::Call(ToolCall {
            id: text(&members, "id"),
            name: text(&members, "name"),
            arguments: member(&members, "input").map(|input| input.raw().to_owned()).unwrap_or_default(),
            origin: None,
        }),
        "tool_result" => Block::Result {
            call_id: text(&members, "tool_use_id"),
            parts: member(&members, "content").map(|content| fields::parts(&content)).unwrap_or_default(),
        },
        other => Block::Other(other.to_owned()),
    }
}

/// Reads a message's or prompt's content: a text, or a list of blocks.
pub(super) fn blocks(content: &Node<'_>) -> Vec<Block> {
    match content.string() {
        Some(text) => vec![Block::Text(text.into_owned())],
        None => content.elements().iter().map(read).collect(),
    }
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

/// Why a message stopped, in the words of chat completions; words of this API alone stay as they are.
pub(super) fn finish(stop_reason: &str) -> &str {
    match stop_reason {
        "end_turn" | "stop_sequence" => Answer::STOPPED,
        "max_tokens" => Answer::CUT,
        "tool_use" => Answer::CALLS,
        "refusal" => "content_filter",
        other => other,
    }
}

/// The same in this API's words.
pub(super) fn stop_reason(finish: &str) -> &str {
    match finish {
        Answer::STOPPED => "end_turn",
        Answer::CUT => "max_tokens",
        Answer::CALLS => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}
