//! An edited request view, spliced into its body.

use std::{collections::HashSet, ops::Range};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    item::{self, Item, ItemKind},
    request::{EXPECTED, PARAMETERS, groups},
};
use crate::surface::{
    Conversation, Message, Part, Role, SurfaceError, ToolCall, ToolChoice,
    elements::{self, Element},
    fields,
    request_edit::RequestEdit,
    splice::{Node, Splices, encode_string, member},
};

pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let mut edit = RequestEdit::open(body, EXPECTED, before, after)?;
    if before.messages != after.messages {
        write_messages(&mut edit);
    }
    if after.tools.is_empty() && !before.tools.is_empty() {
        edit.remove(&["tools", "tool_choice", "parallel_tool_calls"]);
    } else {
        if before.tools != after.tools {
            edit.write_tools(|tool| json!({"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters, "strict": false}));
        }
        if before.tool_choice != after.tool_choice {
            edit.set("tool_choice", &choice_text(&after.tool_choice));
        }
    }
    PARAMETERS.write(&edit.root, &edit.members, before, after, &mut edit.splices)?;
    Ok(edit.apply())
}

fn choice_text(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => "\"auto\"".to_owned(),
        ToolChoice::None => "\"none\"".to_owned(),
        ToolChoice::Required => "\"required\"".to_owned(),
        ToolChoice::Named(name) => json!({"type": "function", "name": name}).to_string(),
    }
}

fn write_messages(edit: &mut RequestEdit<'_, '_>) {
    let (before, mut rest) = (&edit.before.messages, edit.after.messages.as_slice());
    let instructions = member(&edit.members, "instructions").filter(|node| node.string().is_some());
    if let Some(place) = &instructions {
        match rest.split_first() {
            Some((first, others)) if first.origin == Some(0) => {
                rest = others;
                if before.first() != Some(first) {
                    edit.splices.replace(place.span(), encode_string(&first.text()));
                }
            }
            _ => edit.splices.replace(place.span(), "null"),
        }
    }
    let offset = usize::from(instructions.is_some());
    let Some(input) = member(&edit.members, "input").filter(|input| !input.is_null()) else {
        if !rest.is_empty() {
            edit.set("input", &list(rest));
        }
        return;
    };
    if input.is_array() {
        let elements = planned(&input, offset, before, rest);
        return elements::write(edit.source, &input, &elements, &mut edit.splices);
    }
    match rest {
        [only] if only.origin == Some(offset) && only.role == Role::User => {
            if before.get(offset) != Some(only) {
                edit.splices.replace(input.span(), encode_string(&only.text()));
            }
        }
        // A text cannot hold two messages: the list can.
        several => edit.splices.replace(input.span(), list(several)),
    }
}

fn list(messages: &[Message]) -> String {
    let items: Value = messages.iter().flat_map(make).collect();
    items.to_string()
}

/// The elements of the edited `input`.
fn planned(input: &Node<'_>, offset: usize, before: &[Message], rest: &[Message]) -> Vec<Element> {
    let nodes = input.elements();
    let items: Vec<Item> = nodes.iter().map(item::read).collect();
    let groups = groups(&items);
    let mut used = HashSet::new();
    let mut elements = Vec::new();
    for message in rest {
        let place = message.origin.filter(|origin| used.insert(*origin));
        let group = place.and_then(|origin| Some((origin, groups.get(origin.checked_sub(offset)?)?)));
        match group.and_then(|(origin, group)| Some((group, before.get(origin)?))) {
            Some((group, old)) => elements.extend(edited(group.clone(), &nodes, &items, old, message)),
            // A second copy of a message is made anew: an id may stand once.
            None => elements.extend(make(message).map(|item| Element::from_json(item.to_string()))),
        }
    }
    elements
}

/// The elements of one message, edited.
fn edited(group: Range<usize>, nodes: &[Node<'_>], items: &[Item], old: &Message, new: &Message) -> Vec<Element> {
    let mut elements = Vec::new();
    // Calls so far; whether an item says the text; whether anything but reasoning stays.
    let (mut calls, mut said, mut words) = (0, false, false);
    let placed = fields::by_origin(&new.tool_calls);
    for at in group {
        let (Some(node), Some(item)) = (nodes.get(at), items.get(at)) else { continue };
        let mut splices = Splices::default();
        match &item.kind {
            ItemKind::Call { .. } => {
                calls += 1;
                let Some(call) = placed.get(&(calls - 1)).copied() else { continue };
                if old.tool_calls.get(calls - 1) != Some(call) {
                    item::edit(node, &item::ItemEdit::of_call(call), &mut splices);
                }
                words = true;
            }
            ItemKind::Message { .. } | ItemKind::Result { .. } => {
                edit_speaker(node, item, old, new, &mut splices);
                (said, words) = (true, true);
            }
            ItemKind::Reasoning => {}
            ItemKind::Other(_) => words = true,
        }
        elements.push(Element::retained(at, splices));
    }
    // Reasoning is bound to what follows it: it goes with it.
    if !words && calls > 0 {
        elements.clear();
    }
    let made = Message {
        parts: if said {
            Vec::new()
        } else {
            new.parts.iter().filter(|part| part.as_text().is_some()).cloned().collect()
        },
        tool_calls: new
            .tool_calls
            .iter()
            .filter(|call| call.origin.is_none_or(|origin| origin >= calls))
            .cloned()
            .collect(),
        ..new.clone()
    };
    if !made.parts.is_empty() || !made.tool_calls.is_empty() {
        elements.extend(make(&made).map(|item| Element::from_json(item.to_string())));
    }
    elements
}

/// Edits who says what in a message or result item.
fn edit_speaker(node: &Node<'_>, item: &Item, old: &Message, new: &Message, splices: &mut Splices) {
    let members = node.members();
    let key = if matches!(item.kind, ItemKind::Result { .. }) { "output" } else { "content" };
    // Reasoning before it is part of the message, not of this item.
    let own = |parts: &[Part]| -> Vec<_> {
        parts.iter().filter(|part| !matches!(part, Part::Opaque(kind) if kind == item::REASONING)).cloned().collect()
    };
    if old.parts != new.parts {
        fields::edit_parts(node, &members, key, &own(&old.parts), &own(&new.parts), "\"\"", splices);
    }
    if old.role != new.role && new.role != Role::Tool {
        fields::set(node, &members, "role", &encode_string(fields::role_name(new.role)), splices);
    }
    if let (true, Some(id)) = (old.answers_call != new.answers_call, &new.answers_call) {
        fields::set(node, &members, "call_id", &encode_string(id), splices);
    }
}

/// The items that say a message of ours. What is opaque cannot be made.
fn make(message: &Message) -> impl Iterator<Item = Value> {
    let text = message.text();
    let said = match &message.answers_call {
        Some(id) => Some(json!({"type": "function_call_output", "call_id": id, "output": text})),
        None if text.is_empty() && (message.role == Role::Other || !message.tool_calls.is_empty()) => None,
        None => Some(json!({"role": fields::role_name(message.role), "content": text})),
    };
    let call = |call: &ToolCall| json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments});
    let calls: Vec<_> = message.tool_calls.iter().map(call).collect();
    said.into_iter().chain(calls)
}
