//! An edited view, spliced into a whole message.

use bytes::Bytes;

use super::{block, compose, reply};
use crate::surface::{
    Reply, SurfaceError, ToolCall,
    blocks::{self, BlockChange},
    elements::{self, Element},
    fields::{self, unreadable},
    splice::{Node, Splices, encode_string, member},
    typed_events::edit_words,
};

/// Splices the edited view into a whole message.
pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, reply::EXPECTED)?;
    let root = Node::parse(body).map_err(|detail| unreadable(reply::EXPECTED, detail))?;
    let members = root.members();
    let content = member(&members, "content").ok_or_else(|| no_place("`content` is missing"))?;
    let (old, new) = fields::only_answers(before, after)?;
    let changes = blocks::compare(&block::blocks(&content), old, new);
    let (mut splices, mut elements) = (Splices::default(), Vec::new());
    if content.string().is_some() {
        // Blocks have no place in a text.
        if !changes.added.is_empty() {
            return Err(no_place("`content` is a text, and no list of blocks"));
        }
        if let Some(BlockChange::Text(text)) = changes.blocks.first() {
            splices.replace(content.span(), encode_string(text));
        }
        if let Some(reason) = &changes.finish {
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
    elements.extend(changes.added.iter().map(|block| Element::made(compose::block(block).to_string())));
    elements::write(source, &content, &elements, &mut splices);
    if let Some(reason) = &changes.finish {
        edit_stop(&root, reason, &mut splices);
    }
    Ok(splices.apply(body))
}

/// Edits the reason, in the words of chat completions, in the object that says it. What stopped the old text did not stop the new one.
pub(super) fn edit_stop(object: &Node<'_>, reason: &str, splices: &mut Splices) {
    let members = object.members();
    fields::set(object, &members, "stop_reason", &encode_string(block::stop_reason(reason)), splices);
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
    edit_words(node, "id", &call.id, splices);
    edit_words(node, "name", &call.name, splices);
    let members = node.members();
    let Some(input) = member(&members, "input").filter(|input| input.raw() != call.arguments) else { return Ok(()) };
    // The API holds them as JSON: what is none has no place in a whole message.
    Node::parse(call.arguments.as_bytes()).map_err(|_| no_place("the tool's arguments are no JSON"))?;
    splices.replace(input.span(), call.arguments.clone());
    Ok(())
}

fn no_place(why: &str) -> SurfaceError {
    SurfaceError::NoPlace(why.to_owned())
}
