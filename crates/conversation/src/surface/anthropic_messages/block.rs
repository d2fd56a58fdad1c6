//! One content block.

use crate::surface::{
    Answer, ToolCall,
    blocks::Block,
    fields::{self, text},
    splice::{Node, member},
};

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
