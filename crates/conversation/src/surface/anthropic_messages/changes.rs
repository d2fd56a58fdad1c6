//! What an edited answer changes of the blocks of a message, and the same spliced into a whole message.

use bytes::Bytes;
use serde_json::Value;

use super::{
    block::{self, Block},
    compose, reply,
};
use crate::surface::{
    Answer, Part, Reply, SurfaceError, ToolCall,
    elements::{self, Element},
    fields::{self, unreadable},
    splice::{Node, Splices, encode_string, member},
};

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

/// What becomes of a message.
#[derive(Debug, Default)]
pub(super) struct MessageChanges {
    /// For each block.
    pub(super) blocks: Vec<BlockChange>,
    /// New blocks, after the others.
    pub(super) added: Vec<Value>,
    /// Why it stopped, if now for another reason.
    pub(super) stop_reason: Option<String>,
}

/// Compares two views of the answer that these blocks make.
pub(super) fn compare(blocks: &[Block], old: &Answer, new: &Answer) -> MessageChanges {
    let mut texts = fields::new_texts(&old.message.parts, &new.message.parts).into_iter();
    let (mut calls, placed) = (0, fields::by_origin(&new.message.tool_calls));
    let mut changes = MessageChanges::default();
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
        changes.added.push(compose::text_block(&text));
    }
    let fresh = new.message.tool_calls.iter().filter(|call| call.origin.is_none_or(|origin| origin >= calls));
    changes.added.extend(fresh.map(compose::called));
    let reason = new.finish_reason.as_deref().filter(|_| old.finish_reason != new.finish_reason);
    changes.stop_reason = reason.map(|reason| block::stop_reason(reason).to_owned());
    changes
}

/// Splices the edited view into a whole message.
pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, reply::EXPECTED)?;
    let root = Node::parse(body).map_err(|detail| unreadable(reply::EXPECTED, detail))?;
    let members = root.members();
    let content = member(&members, "content").ok_or_else(|| no_place("`content` is missing"))?;
    let (Some(old), Some(new)) = (before.answers.first(), after.answers.first()) else {
        return Err(no_place("the message has no answer"));
    };
    let changes = compare(&block::blocks(&content), old, new);
    let (mut splices, mut elements) = (Splices::default(), Vec::new());
    if content.string().is_some() {
        // Blocks have no place in a text.
        if !changes.added.is_empty() {
            return Err(no_place("`content` is a text, and no list of blocks"));
        }
        if let Some(BlockChange::Text(text)) = changes.blocks.first() {
            splices.replace(content.span(), encode_string(text));
        }
        if let Some(reason) = &changes.stop_reason {
            edit_stop(&root, reason, &mut splices);
        }
        return Ok(splices.apply(body));
    }
    for (at, (node, change)) in content.elements().iter().zip(&changes.blocks).enumerate() {
        let mut inside = Splices::default();
        match change {
            BlockChange::Keep => {}
            BlockChange::Text(text) => edit_text(node, text, &mut inside),
            BlockChange::Call(call) => edit_call(node, call, &mut inside)?,
            BlockChange::Drop => continue,
        }
        elements.push(Element::retained(at, inside));
    }
    elements.extend(changes.added.iter().map(|block| Element::made(block.to_string())));
    elements::write(source, &content, &elements, &mut splices);
    if let Some(reason) = &changes.stop_reason {
        edit_stop(&root, reason, &mut splices);
    }
    Ok(splices.apply(body))
}

/// Edits the reason in the object that says it. What stopped the old text did not stop the new one.
pub(super) fn edit_stop(object: &Node<'_>, reason: &str, splices: &mut Splices) {
    let members = object.members();
    fields::set(object, &members, "stop_reason", &encode_string(reason), splices);
    if let Some(place) = member(&members, "stop_sequence").filter(|place| !place.is_null()) {
        splices.replace(place.span(), "null");
    }
}

/// Edits a text block. Citations of the old text go.
pub(super) fn edit_text(node: &Node<'_>, text: &str, splices: &mut Splices) {
    let members = node.members();
    fields::set(node, &members, "text", &encode_string(text), splices);
    if let Some(list) = member(&members, "citations").filter(|list| !list.elements().is_empty()) {
        splices.replace(list.span(), "[]");
    }
}

/// Edits a tool use block.
pub(super) fn edit_call(node: &Node<'_>, call: &ToolCall, splices: &mut Splices) -> Result<(), SurfaceError> {
    edit_called(node, call, splices);
    let members = node.members();
    let Some(input) = member(&members, "input").filter(|input| input.raw() != call.arguments) else { return Ok(()) };
    // The API holds them as JSON: what is none has no place in a whole message.
    Node::parse(call.arguments.as_bytes()).map_err(|_| no_place("the tool's arguments are no JSON"))?;
    splices.replace(input.span(), call.arguments.clone());
    Ok(())
}

/// Edits what a tool use block says besides its input.
pub(super) fn edit_called(node: &Node<'_>, call: &ToolCall, splices: &mut Splices) {
    let members = node.members();
    for (key, new) in [("id", &call.id), ("name", &call.name)] {
        if let Some(place) = member(&members, key).filter(|place| place.string().as_deref() != Some(new)) {
            splices.replace(place.span(), encode_string(new));
        }
    }
}

fn no_place(why: &str) -> SurfaceError {
    SurfaceError::NoPlace(why.to_owned())
}
