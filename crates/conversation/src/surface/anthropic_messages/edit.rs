//! An edited request view, spliced into its body.

use std::{collections::HashSet, ops::Range};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    block::{self, Block},
    changes, compose,
    request::{EXPECTED, PARAMETERS, groups},
};
use crate::surface::{
    Conversation, Message, Part, Role, SurfaceError, Tool, ToolChoice,
    elements::{self, Element},
    fields::{self, string},
    splice::{Listed, Member, Node, Splices, encode_string, member},
};

pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, EXPECTED)?;
    let root = Node::parsed_before(source);
    let members = root.members();
    let mut splices = Splices::default();
    if before.messages != after.messages {
        let (prompts, rest) = parted(&members, &after.messages);
        write_system(&root, &members, before, &prompts, &mut splices);
        let list = member(&members, "messages");
        let list = list.ok_or_else(|| SurfaceError::NoPlace("`messages` is missing".to_owned()))?;
        write_messages(source, &list, &members, before, &rest, &mut splices)?;
    }
    if after.tools.is_empty() && !before.tools.is_empty() {
        fields::remove_members(source, &root, &members, &["tools", "tool_choice"], &mut splices);
    } else {
        if before.tools != after.tools {
            write_tools(source, &root, &members, before, after, &mut splices);
        }
        if before.tool_choice != after.tool_choice {
            fields::set(&root, &members, "tool_choice", &choice_text(&members, &after.tool_choice), &mut splices);
        }
    }
    PARAMETERS.write(&root, &members, (before, after), &mut splices)?;
    Ok(splices.apply(body))
}

/// A tool choice that goes on to say whether calls may be made side by side.
fn choice_text(members: &[Member<'_>], choice: &ToolChoice) -> String {
    let mut said = match choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => return json!({"type": "none"}).to_string(),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
    };
    let key = "disable_parallel_tool_use";
    let single = member(members, "tool_choice").and_then(|choice| choice.get(key)?.value::<bool>());
    if let (Some(single), Some(said)) = (single, said.as_object_mut()) {
        said.insert(key.to_owned(), single.into());
    }
    said.to_string()
}

/// The prompt of the request, if it has one.
fn system<'a>(members: &[Member<'a>]) -> Option<Node<'a>> {
    member(members, "system").filter(|system| !system.is_null())
}

/// What belongs to the one prompt, and what to the messages. Prompts that an edit made have no other place.
fn parted<'m>(members: &[Member<'_>], messages: &'m [Message]) -> (Vec<&'m Message>, Vec<&'m Message>) {
    let prompt = system(members).map(|_| 0);
    messages.iter().partition(|message| {
        let new = message.origin.is_none() && matches!(message.role, Role::System | Role::Developer);
        new || (prompt.is_some() && message.origin == prompt)
    })
}

fn write_system(
    root: &Node<'_>,
    members: &[Member<'_>],
    before: &Conversation,
    prompts: &[&Message],
    splices: &mut Splices,
) {
    match (system(members), prompts) {
        (None, []) => {}
        (Some(place), []) => splices.replace(place.span(), "[]"),
        (Some(_), [only]) if only.origin == Some(0) => {
            let old = before.messages.first().map(|message| message.parts.as_slice()).unwrap_or_default();
            if old != only.parts.as_slice() {
                fields::edit_parts(root, members, "system", (old, &only.parts), "\"\"", splices);
            }
        }
        (_, several) => {
            let texts: Vec<_> = several.iter().map(|message| message.text()).collect();
            fields::set(root, members, "system", &encode_string(&texts.join("\n\n")), splices);
        }
    }
}

/// Where a message of the view stands: in which element, in which of its blocks.
type ViewPlace = (usize, Range<usize>);

/// One message of the edited list under way.
struct EditedEntry {
    /// The element that it was.
    element: Option<usize>,
    role: Role,
    blocks: Vec<Element>,
    /// The new text of a message whose content is a plain text.
    text: Option<String>,
}

fn write_messages(
    source: &str,
    list: &Node<'_>,
    members: &[Member<'_>],
    before: &Conversation,
    rest: &[&Message],
    splices: &mut Splices,
) -> Result<(), SurfaceError> {
    let nodes = list.elements();
    let offset = usize::from(system(members).is_some());
    let places = places(&nodes);
    let mut used = HashSet::new();
    let mut entries: Vec<EditedEntry> = Vec::new();
    let (mut taken, mut opened) = (HashSet::new(), None::<(usize, Listed<'_>)>);
    for message in rest {
        let origin = message.origin.filter(|origin| used.insert(*origin));
        let place =
            origin.and_then(|origin| Some((places.get(origin.checked_sub(offset)?)?, before.messages.get(origin)?)));
        let Some(((element, range), old)) = place.map(|(place, old)| (place.clone(), old)) else {
            add(&mut entries, message);
            continue;
        };
        let goes_on = entries.last().is_some_and(|entry| entry.element == Some(element));
        if !goes_on && taken.contains(&element) {
            add(&mut entries, message);
            continue;
        }
        // One element may hold many messages, one after another.
        if opened.as_ref().is_none_or(|(of, _)| *of != element) {
            let content = nodes.get(element).and_then(|node| node.get("content"));
            opened = content.map(|content| (element, content.listed()));
        }
        let Some((_, Listed { array: content, elements: blocks })) = &opened else { continue };
        if !goes_on {
            taken.insert(element);
            entries.push(EditedEntry { element: Some(element), role: message.role, blocks: Vec::new(), text: None });
        }
        let Some(entry) = entries.last_mut() else { continue };
        if content.is_array() {
            entry.blocks.extend(edited(range, blocks, old, message)?);
        } else if old.parts != message.parts {
            entry.text = Some(message.text());
        }
        if message.role != Role::Tool {
            entry.role = message.role;
        }
    }
    let elements: Vec<Element> = entries.into_iter().map(|entry| entry.element(source, &nodes)).collect();
    elements::write(source, list, &elements, splices);
    Ok(())
}

/// The places of all messages of the list, in the order of the view.
fn places(nodes: &[Node<'_>]) -> Vec<ViewPlace> {
    let mut places = Vec::new();
    for (element, node) in nodes.iter().enumerate() {
        let blocks = node.get("content").map(|content| block::blocks(&content)).unwrap_or_default();
        places.extend(groups(&blocks).into_iter().map(|range| (element, range)));
    }
    places
}

/// Adds a message of ours: a tool's result joins the user's message before it, anything else is a message.
fn add(entries: &mut Vec<EditedEntry>, message: &Message) {
    let role = if message.role == Role::Assistant { Role::Assistant } else { Role::User };
    let blocks = make(message).into_iter().map(|block| Element::made(block.to_string()));
    match entries.last_mut() {
        Some(last)
            if message.answers_call.is_some()
                && last.role != Role::Assistant
                && last.text.is_none()
                && !last.blocks.is_empty() =>
        {
            last.blocks.extend(blocks);
        }
        _ => entries.push(EditedEntry { element: None, role, blocks: blocks.collect(), text: None }),
    }
}

/// The blocks of one message, edited. No text block is left empty beside others: the API refuses one.
fn edited(range: Range<usize>, nodes: &[Node<'_>], old: &Message, new: &Message) -> Result<Vec<Element>, SurfaceError> {
    let mut texts = fields::new_texts(&old.parts, &new.parts).into_iter();
    let (mut elements, mut calls, placed) = (Vec::new(), 0, fields::by_origin(&new.tool_calls));
    let alone = range.len() == 1;
    for at in range {
        let Some(node) = nodes.get(at) else { continue };
        let mut splices = Splices::default();
        match block::read(node) {
            Block::Call(_) => {
                calls += 1;
                let Some(call) = placed.get(&(calls - 1)).copied() else { continue };
                if old.tool_calls.get(calls - 1) != Some(call) {
                    changes::edit_call(node, call, &mut splices)?;
                }
            }
            Block::Result { .. } => edit_result(node, old, new, &mut splices),
            _ => match texts.next().flatten() {
                Some(text) if text.is_empty() && !alone => continue,
                Some(text) => changes::edit_text(node, &text, &mut splices),
                None => {}
            },
        }
        elements.push(Element::retained(at, splices));
    }
    let said = new.text();
    if !said.is_empty() && !old.parts.iter().any(|part| part.as_text().is_some()) && old.answers_call.is_none() {
        elements.push(Element::made(compose::text_block(&said).to_string()));
    }
    let fresh = new.tool_calls.iter().filter(|call| call.origin.is_none_or(|origin| origin >= calls));
    elements.extend(fresh.map(|call| Element::made(compose::called(call).to_string())));
    Ok(elements)
}

fn edit_result(node: &Node<'_>, old: &Message, new: &Message, splices: &mut Splices) {
    let members = node.members();
    if old.parts != new.parts {
        fields::edit_parts(node, &members, "content", (&old.parts, &new.parts), "\"\"", splices);
    }
    if let (true, Some(id)) = (old.answers_call != new.answers_call, &new.answers_call) {
        fields::set(node, &members, "tool_use_id", &encode_string(id), splices);
    }
}

/// The blocks of a message of ours. What is opaque cannot be made.
fn make(message: &Message) -> Vec<Value> {
    let text = message.text();
    if let Some(id) = &message.answers_call {
        return vec![json!({"type": "tool_result", "tool_use_id": id, "content": text})];
    }
    let opaque = !message.parts.is_empty() && !message.parts.iter().any(|part| matches!(part, Part::Text(_)));
    let said = !opaque && (!text.is_empty() || message.tool_calls.is_empty());
    said.then(|| compose::text_block(&text)).into_iter().chain(message.tool_calls.iter().map(compose::called)).collect()
}

impl EditedEntry {
    fn element(self, source: &str, nodes: &[Node<'_>]) -> Element {
        let role = encode_string(fields::role_name(if self.role == Role::Tool { Role::User } else { self.role }));
        let Some((origin, node)) = self.element.and_then(|at| Some((at, nodes.get(at)?))) else {
            let mut blocks = Splices::default();
            if let Ok(empty) = Node::parse(b"[]") {
                elements::write("[]", &empty, &self.blocks, &mut blocks);
            }
            let content = String::from_utf8_lossy(&blocks.apply(b"[]")).into_owned();
            return Element::made(format!("{{\"role\":{role},\"content\":{content}}}"));
        };
        let (members, mut splices) = (node.members(), Splices::default());
        if string(&members, "role").is_some_and(|old| fields::role(Some(&old)) != self.role && self.role != Role::Tool)
        {
            fields::set(node, &members, "role", &role, &mut splices);
        }
        match (member(&members, "content"), self.text) {
            (Some(content), Some(text)) => splices.replace(content.span(), encode_string(&text)),
            (Some(content), None) if content.is_array() => {
                elements::write(source, &content, &self.blocks, &mut splices);
            }
            _ => {}
        }
        Element::retained(origin, splices)
    }
}

fn write_tools(
    source: &str,
    root: &Node<'_>,
    members: &[Member<'_>],
    before: &Conversation,
    after: &Conversation,
    splices: &mut Splices,
) {
    let make =
        |tool: &Tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters});
    let Some(array) = member(members, "tools").filter(Node::is_array) else {
        let tools: Value = after.tools.iter().map(make).collect();
        return fields::set(root, members, "tools", &tools.to_string(), splices);
    };
    let nodes = array.elements();
    let elements = elements::tools(&nodes, &before.tools, &after.tools, |node| Some(*node), make);
    elements::write(source, &array, &elements, splices);
}
