//! One message: reading it, and splicing an edited one into its place.

use std::borrow::Cow;

use crate::surface::{
    Message, Part, ToolCall,
    fields::{edit_parts, parts, role, role_name, set, tool_calls},
    scan,
    splice::{Member, Node, Splices, encode_string, member},
};

/// Reads the message that the text begins with; what is none has no words. Gives what follows it.
pub(super) fn read(text: &[u8], origin: usize) -> Option<(Message, &[u8])> {
    read_next(text, origin).or_else(|| Some((silent(origin), scan::skip(text)?.1)))
}

fn silent(origin: usize) -> Message {
    Message { parts: Vec::new(), origin: Some(origin), ..Message::text_of(role(None), "") }
}

/// Reads the message that the text begins with, in one pass; gives what follows it. The last of equal keys counts.
pub(super) fn read_next(text: &[u8], origin: usize) -> Option<(Message, &[u8])> {
    let mut message = silent(origin);
    let owned = |value| scan::string(value).map(Cow::into_owned);
    let after = scan::object(text, |key, rest| {
        let (value, after) = scan::skip(rest)?;
        match key.as_ref() {
            b"role" => message.role = role(scan::string(value).as_deref()),
            b"name" => message.name = owned(value),
            b"content" => message.parts = content_parts(value),
            b"tool_calls" => {
                message.tool_calls = Node::parse(value).map(|calls| tool_calls(&calls)).unwrap_or_default();
            }
            b"tool_call_id" => message.answers_call = owned(value),
            _ => {}
        }
        Some(after)
    })?;
    Some((message, after))
}

/// The parts of a `content`.
fn content_parts(content: &[u8]) -> Vec<Part> {
    match scan::string(content) {
        Some(text) => vec![Part::Text(text.into_owned())],
        None => Node::parse(content).map(|content| parts(&content)).unwrap_or_default(),
    }
}

/// Splices an edited message over the one that was read from `node`.
pub(super) fn edit(source: &str, node: &Node<'_>, before: &Message, after: &Message, splices: &mut Splices) {
    if before == after {
        return;
    }
    let members = node.members();
    if before.parts != after.parts {
        edit_parts(node, &members, "content", &before.parts, &after.parts, "null", splices);
    }
    if before.role != after.role {
        set(node, &members, "role", &encode_string(role_name(after.role)), splices);
    }
    if before.name != after.name {
        let name = after.name.as_deref().map_or("null".to_owned(), encode_string);
        set(node, &members, "name", &name, splices);
    }
    if before.tool_calls != after.tool_calls {
        edit_tool_calls(source, node, &members, before, after, splices);
    }
}

/// A message of our own as JSON.
pub(super) fn make(message: &Message) -> serde_json::Value {
    let mut object = serde_json::Map::new();
    object.insert("role".to_owned(), role_name(message.role).into());
    if let Some(name) = &message.name {
        object.insert("name".to_owned(), name.as_str().into());
    }
    let silent = message.parts.is_empty() && !message.tool_calls.is_empty();
    let content = if silent { serde_json::Value::Null } else { message.text().into() };
    object.insert("content".to_owned(), content);
    if !message.tool_calls.is_empty() {
        object.insert("tool_calls".to_owned(), message.tool_calls.iter().map(make_call).collect());
    }
    if let Some(id) = &message.answers_call {
        object.insert("tool_call_id".to_owned(), id.as_str().into());
    }
    object.into()
}

/// A tool call of our own as JSON.
pub(super) fn make_call(call: &ToolCall) -> serde_json::Value {
    serde_json::json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

fn edit_tool_calls(
    source: &str,
    node: &Node<'_>,
    members: &[Member<'_>],
    before: &Message,
    after: &Message,
    splices: &mut Splices,
) {
    let Some(array) = member(members, "tool_calls").filter(Node::is_array) else {
        let calls: serde_json::Value = after.tool_calls.iter().map(make_call).collect();
        return set(node, members, "tool_calls", &calls.to_string(), splices);
    };
    if after.tool_calls.is_empty() {
        return splices.replace(array.span(), "null");
    }
    let calls = array.listed();
    let origins: Vec<_> = after.tool_calls.iter().map(|call| call.origin).collect();
    let edit = |position: usize, origin: usize, splices: &mut Splices| {
        let (Some(old), Some(new), Some(element)) =
            (before.tool_calls.get(origin), after.tool_calls.get(position), calls.elements.get(origin))
        else {
            return;
        };
        edit_call(element, old, new, splices);
    };
    let make = |position: usize| after.tool_calls.get(position).map(make_call).unwrap_or_default().to_string();
    splices.write_array(source, &calls, &origins, edit, make);
}

fn edit_call(element: &Node<'_>, old: &ToolCall, new: &ToolCall, splices: &mut Splices) {
    let inner = element.get("function").or_else(|| element.get("custom")).map(|f| f.members()).unwrap_or_default();
    let arguments = member(&inner, "arguments").or_else(|| member(&inner, "input"));
    for (changed, place, text) in [
        (old.id != new.id, element.get("id"), &new.id),
        (old.name != new.name, member(&inner, "name"), &new.name),
        (old.arguments != new.arguments, arguments, &new.arguments),
    ] {
        if let (true, Some(place)) = (changed, place) {
            splices.replace(place.span(), encode_string(text));
        }
    }
}
