//! One content block: reading, editing and making it.

use serde_json::{Value, json};

use crate::surface::{
    Answer, Message, Role, SurfaceError, ToolCall,
    blocks::{Block, edit::BlockForm},
    fields::{self, text},
    splice::{Node, Splices, encode_string, member},
    typed_events::edit_words,
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

/// How this API writes blocks.
pub(super) struct MessageBlocks;

impl BlockForm for MessageBlocks {
    fn content(&self) -> &'static str {
        "content"
    }

    fn role(&self, name: &str) -> Role {
        fields::role(Some(name))
    }

    fn role_name(&self, role: Role) -> &'static str {
        fields::role_name(role)
    }

    fn blocks(&self, content: &Node<'_>) -> Vec<Block> {
        blocks(content)
    }

    fn block(&self, node: &Node<'_>) -> Block {
        read(node)
    }

    fn plain_content(&self, text: &str) -> String {
        encode_string(text)
    }

    /// Citations of the old text go.
    fn edit_text(&self, block: &Node<'_>, text: &str, splices: &mut Splices) {
        let members = block.members();
        fields::set(block, &members, "text", &encode_string(text), splices);
        if let Some(list) = member(&members, "citations").filter(|list| !list.elements().is_empty()) {
            splices.replace(list.span(), "[]");
        }
    }

    fn edit_call(
        &self,
        block: &Node<'_>,
        _: &ToolCall,
        call: &ToolCall,
        splices: &mut Splices,
    ) -> Result<(), SurfaceError> {
        edit_words(block, "id", &call.id, splices);
        edit_words(block, "name", &call.name, splices);
        let members = block.members();
        let Some(input) = member(&members, "input").filter(|input| input.raw() != call.arguments) else {
            return Ok(());
        };
        // The API holds them as JSON: what is none has no place in a whole message.
        let no_place = |_| SurfaceError::NoPlace("the tool's arguments are no JSON".to_owned());
        Node::parse(call.arguments.as_bytes()).map_err(no_place)?;
        splices.replace(input.span(), call.arguments.clone());
        Ok(())
    }

    fn edit_result(&self, block: &Node<'_>, old: &Message, new: &Message, splices: &mut Splices) {
        let members = block.members();
        if old.parts != new.parts {
            fields::edit_parts(block, &members, "content", &old.parts, &new.parts, "\"\"", splices);
        }
        if let (true, Some(id)) = (old.answers_call != new.answers_call, &new.answers_call) {
            fields::set(block, &members, "tool_use_id", &encode_string(id), splices);
        }
    }

    fn text(&self, text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    /// Arguments that are no JSON become an empty object: the API has no other place for them.
    fn call(&self, call: &ToolCall) -> Value {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    }

    fn result(&self, call_id: &str, text: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": call_id, "content": text})
    }
}
