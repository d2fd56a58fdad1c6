//! An edited view, spliced into a whole message.

use bytes::Bytes;

use super::{
    block::{self, MessageBlocks},
    reply,
};
use crate::surface::{
    Reply, SurfaceError,
    blocks::{self, BlockChange, edit::BlockForm as _},
    elements::{self, Element},
    fields::{self, unreadable},
    splice::{Node, Splices, encode_string, member},
};

/// Splices the edited view into a whole message.
pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, reply::EXPECTED)?;
    let root = Node::parse(body).map_err(|detail| unreadable(reply::EXPECTED, detail))?;
    let members = root.members();
    let content = member(&members, "content").ok_or_else(|| no_place("`content` is missing"))?;
    let (old, new) = before.only_answers(after)?;
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
            BlockChange::Text(text) => MessageBlocks.edit_text(node, text, &mut inside),
            BlockChange::Call(call) => MessageBlocks.edit_call(node, call, call, &mut inside)?,
            BlockChange::Drop => continue,
        }
        elements.push(Element::retained(at, inside));
    }
    elements.extend(changes.added.iter().map(|block| Element::from_json(MessageBlocks.new_block(block).to_string())));
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

fn no_place(why: &str) -> SurfaceError {
    SurfaceError::NoPlace(why.to_owned())
}
