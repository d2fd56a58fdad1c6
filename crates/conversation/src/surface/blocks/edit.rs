//! An edited list of messages, spliced into a request whose messages are lists of blocks.

use std::{collections::HashSet, ops::Range};

use serde_json::Value;

use super::{Block, groups};
use crate::surface::{
    Conversation, Message, Part, Role, SurfaceError, ToolCall,
    elements::{self, Element},
    fields,
    splice::{Listed, Node, Splices, encode_string, member},
};

/// How an API of blocks writes them.
pub(in crate::surface) trait BlockForm {
    /// The member of a message that holds its blocks.
    fn content(&self) -> &'static str;

    /// The role of that name.
    fn role(&self, name: &str) -> Role;

    /// The name of a role; a tool's result is said by the user.
    fn role_name(&self, role: Role) -> &'static str;

    /// The blocks of a message's content.
    fn blocks(&self, content: &Node<'_>) -> Vec<Block>;

    /// One block.
    fn block(&self, node: &Node<'_>) -> Block;

    /// Content that is no list, saying this.
    fn plain_content(&self, text: &str) -> String;

    /// Writes another text into a block.
    fn edit_text(&self, block: &Node<'_>, text: &str, splices: &mut Splices);

    /// Writes another call into a block.
    fn edit_call(
        &self,
        block: &Node<'_>,
        old: &ToolCall,
        new: &ToolCall,
        splices: &mut Splices,
    ) -> Result<(), SurfaceError>;

    /// Writes another result into a block.
    fn edit_result(&self, block: &Node<'_>, old: &Message, new: &Message, splices: &mut Splices);

    /// A new block that says this text.
    fn text(&self, text: &str) -> Value;

    /// A new block that makes this call.
    fn call(&self, call: &ToolCall) -> Value;

    /// A new block that is the result of a call.
    fn result(&self, call_id: &str, text: &str) -> Value;

    /// A new block; `null` for one that cannot be made.
    fn new_block(&self, block: &Block) -> Value {
        match block {
            Block::Text(text) => self.text(text),
            Block::Call(call) => self.call(call),
            Block::Result { .. } | Block::Other(_) => Value::Null,
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
    /// The new text of a message whose content is no list.
    text: Option<String>,
}

/// The list of messages of a request, and how they are written.
pub(in crate::surface) struct MessageList<'a, 'f> {
    /// The body.
    pub(in crate::surface) source: &'a str,
    /// The list.
    pub(in crate::surface) list: Node<'a>,
    /// How many messages of the view stand before those of the list: prompts.
    pub(in crate::surface) offset: usize,
    /// How blocks are written.
    pub(in crate::surface) form: &'f dyn BlockForm,
}

impl<'a> MessageList<'a, '_> {
    /// Writes these messages of an edited view into the list that `before` was read from.
    ///
    /// # Errors
    /// [`SurfaceError::NoPlace`] when an edit cannot be expressed.
    pub(in crate::surface) fn write(
        &self,
        before: &Conversation,
        edited: &[&Message],
        splices: &mut Splices,
    ) -> Result<(), SurfaceError> {
        let nodes = self.list.elements();
        let places = self.places(&nodes);
        let mut used = HashSet::new();
        let mut entries: Vec<EditedEntry> = Vec::new();
        let (mut taken, mut opened) = (HashSet::new(), None::<(usize, Listed<'a>)>);
        for message in edited {
            let origin = message.origin.filter(|origin| used.insert(*origin));
            let place = origin
                .and_then(|origin| Some((places.get(origin.checked_sub(self.offset)?)?, before.messages.get(origin)?)));
            let Some(((element, range), old)) = place.map(|(place, old)| (place.clone(), old)) else {
                self.add(&mut entries, message);
                continue;
            };
            let goes_on = entries.last().is_some_and(|entry| entry.element == Some(element));
            if !goes_on && taken.contains(&element) {
                self.add(&mut entries, message);
                continue;
            }
            // One element may hold many messages, one after another.
            if opened.as_ref().is_none_or(|(of, _)| *of != element) {
                let content = nodes.get(element).and_then(|node| node.get(self.form.content()));
                opened = content.map(|content| (element, content.listed()));
            }
            let Some((_, Listed { array: content, elements: blocks })) = &opened else { continue };
            if !goes_on {
                taken.insert(element);
                let (element, blocks) = (Some(element), Vec::new());
                entries.push(EditedEntry { element, role: message.role, blocks, text: None });
            }
            let Some(entry) = entries.last_mut() else { continue };
            if content.is_array() {
                entry.blocks.extend(self.edited(range, blocks, old, message)?);
            } else if old.parts != message.parts {
                entry.text = Some(message.text());
            }
            if message.role != Role::Tool {
                entry.role = message.role;
            }
        }
        let elements: Vec<Element> = entries.into_iter().map(|entry| self.element(entry, &nodes)).collect();
        elements::write(self.source, &self.list, &elements, splices);
        Ok(())
    }

    /// The places of all messages of the list, in the order of the view.
    fn places(&self, nodes: &[Node<'_>]) -> Vec<ViewPlace> {
        let mut places = Vec::new();
        for (element, node) in nodes.iter().enumerate() {
            let content = node.get(self.form.content());
            let blocks = content.map(|content| self.form.blocks(&content)).unwrap_or_default();
            places.extend(groups(&blocks).into_iter().map(|range| (element, range)));
        }
        places
    }

    /// Adds a message of ours: a tool's result joins the user's message before it, anything else is a message.
    fn add(&self, entries: &mut Vec<EditedEntry>, message: &Message) {
        let role = if message.role == Role::Assistant { Role::Assistant } else { Role::User };
        let blocks = self.make(message).into_iter().map(|block| Element::from_json(block.to_string()));
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

    /// The blocks of one message, edited. No text block is left empty beside others: APIs refuse one.
    fn edited(
        &self,
        range: Range<usize>,
        nodes: &[Node<'_>],
        old: &Message,
        new: &Message,
    ) -> Result<Vec<Element>, SurfaceError> {
        let mut texts = fields::new_texts(&old.parts, &new.parts).into_iter();
        let (mut elements, mut calls, placed) = (Vec::new(), 0, fields::by_origin(&new.tool_calls));
        let alone = range.len() == 1;
        for at in range {
            let Some(node) = nodes.get(at) else { continue };
            let mut splices = Splices::default();
            match self.form.block(node) {
                Block::Call(_) => {
                    calls += 1;
                    let Some(call) = placed.get(&(calls - 1)).copied() else { continue };
                    if let Some(old) = old.tool_calls.get(calls - 1).filter(|old| *old != call) {
                        self.form.edit_call(node, old, call, &mut splices)?;
                    }
                }
                Block::Result { .. } => self.form.edit_result(node, old, new, &mut splices),
                _ => match texts.next().flatten() {
                    Some(text) if text.is_empty() && !alone => continue,
                    Some(text) => self.form.edit_text(node, &text, &mut splices),
                    None => {}
                },
            }
            elements.push(Element::retained(at, splices));
        }
        let said = new.text();
        if !said.is_empty() && !old.parts.iter().any(|part| part.as_text().is_some()) && old.answers_call.is_none() {
            elements.push(Element::from_json(self.form.text(&said).to_string()));
        }
        let fresh = new.tool_calls.iter().filter(|call| call.origin.is_none_or(|origin| origin >= calls));
        elements.extend(fresh.map(|call| Element::from_json(self.form.call(call).to_string())));
        Ok(elements)
    }

    /// The blocks of a message of ours. What is opaque cannot be made.
    fn make(&self, message: &Message) -> Vec<Value> {
        let text = message.text();
        if let Some(id) = &message.answers_call {
            return vec![self.form.result(id, &text)];
        }
        let opaque = !message.parts.is_empty() && !message.parts.iter().any(|part| matches!(part, Part::Text(_)));
        let is_said = !opaque && (!text.is_empty() || message.tool_calls.is_empty());
        let said = is_said.then(|| self.form.text(&text));
        said.into_iter().chain(message.tool_calls.iter().map(|call| self.form.call(call))).collect()
    }

    fn element(&self, entry: EditedEntry, nodes: &[Node<'_>]) -> Element {
        let (role, key) = (entry.role, self.form.content());
        let name = encode_string(self.form.role_name(if role == Role::Tool { Role::User } else { role }));
        let Some((origin, node)) = entry.element.and_then(|at| Some((at, nodes.get(at)?))) else {
            let mut blocks = Splices::default();
            if let Ok(empty) = Node::parse(b"[]") {
                elements::write("[]", &empty, &entry.blocks, &mut blocks);
            }
            let content = String::from_utf8_lossy(&blocks.apply(b"[]")).into_owned();
            return Element::from_json(format!("{{\"role\":{name},\"{key}\":{content}}}"));
        };
        let (members, mut splices) = (node.members(), Splices::default());
        let differs = |old: &str| self.form.role(old) != role && role != Role::Tool;
        if fields::string(&members, "role").is_some_and(|old| differs(&old)) {
            fields::set(node, &members, "role", &name, &mut splices);
        }
        match (member(&members, key), entry.text) {
            (Some(content), Some(text)) => splices.replace(content.span(), self.form.plain_content(&text)),
            (Some(content), None) if content.is_array() => {
                elements::write(self.source, &content, &entry.blocks, &mut splices);
            }
            _ => {}
        }
        Element::retained(origin, splices)
    }
}
