//! What an edited answer changes of the items of a response, and the same written into a response object.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    compose,
    item::{self, Item, ItemEdit, ItemKind},
};
use crate::surface::{
    Answer, Part, Reply,
    elements::{self, Element},
    fields, is_root,
    splice::{Node, Splices, encode_string, member},
};

/// What becomes of a response.
#[derive(Debug, Default)]
pub(super) struct ResponseChanges {
    /// For each item: its edit, or nothing where it goes.
    pub(super) items: Vec<Option<ItemEdit>>,
    /// New items, after the others.
    pub(super) added: Vec<Value>,
    /// How it ends now, if otherwise than before.
    pub(super) end: Option<ResponseEnd>,
    /// All text that it says now.
    text: String,
}

/// How a response ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResponseEnd {
    /// By itself.
    Completed,
    /// Early, for this reason.
    Incomplete(String),
}

impl ResponseEnd {
    fn from_finish(finish: Option<&str>) -> Self {
        match finish {
            Some(Answer::CUT) => ResponseEnd::Incomplete("max_output_tokens".to_owned()),
            Some(reason @ "content_filter") => ResponseEnd::Incomplete(reason.to_owned()),
            _ => ResponseEnd::Completed,
        }
    }

    /// The `status` of the response; with `response.` before it, the type of the event that ends the stream.
    pub(super) fn status(&self) -> &'static str {
        match self {
            ResponseEnd::Completed => "completed",
            ResponseEnd::Incomplete(_) => "incomplete",
        }
    }
}

/// Compares two views of the answer that these items make. `reply` is the old view: new ids are made from its id, and where it is
/// narrowed to one agent of a team, the items of the others stay.
pub(super) fn compare(items: &[Item], old: &Answer, new: &Answer, reply: &Reply) -> ResponseChanges {
    let speaker = reply.speaker.as_deref();
    let mut texts = fields::new_texts(&old.message.parts, &new.message.parts).into_iter();
    let (mut calls, placed) = (0, fields::by_origin(&new.message.tool_calls));
    let mut changes = ResponseChanges { text: joined(&new.message.parts), ..ResponseChanges::default() };
    for item in items {
        let mut edit = ItemEdit::default();
        let mut stays = true;
        if speaker.is_some_and(|speaker| !item.is_of(speaker)) {
            changes.items.push(Some(edit));
            continue;
        }
        match &item.kind {
            ItemKind::Message { parts, .. } | ItemKind::Result { parts, .. } => {
                let fresh = texts.by_ref().take(parts.len()).enumerate();
                edit.texts = fresh.filter_map(|(at, text)| Some((at, text?))).collect::<BTreeMap<_, _>>();
            }
            ItemKind::Call { .. } => {
                let call = placed.get(&calls).copied();
                edit.call = call.filter(|call| old.message.tool_calls.get(calls) != Some(*call)).cloned();
                stays = call.is_some();
                calls += 1;
            }
            ItemKind::Reasoning | ItemKind::Other(_) => drop(texts.next()),
        }
        changes.items.push(stays.then_some(edit));
    }
    let speechless = !old.message.parts.iter().any(|part| part.as_text().is_some());
    if speechless && !changes.text.is_empty() {
        changes.added.push(compose::message_item(&made_id(&reply.id), &changes.text, "completed"));
    }
    let fresh = new.message.tool_calls.iter().filter(|call| call.origin.is_none_or(|origin| origin >= calls));
    changes.added.extend(fresh.map(compose::called));
    if let Some(speaker) = speaker {
        changes.among_others(items, speaker);
    }
    // A response ends as the root of its team does.
    if speaker.is_none_or(is_root) {
        changes.end_as(items, old, new, speaker);
    }
    changes
}

fn joined(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}

/// An id of our own, as long as the upstream's and always the same.
fn made_id(response: &str) -> String {
    let length = response.split_once('_').map_or(24, |(_, serial)| serial.len()).clamp(8, 64);
    let digits: String = blake3::hash(response.as_bytes()).to_hex().chars().take(length).collect();
    format!("msg_{digits}")
}

impl ResponseChanges {
    fn end_as(&mut self, items: &[Item], old: &Answer, new: &Answer, speaker: Option<&str>) {
        let end = ResponseEnd::from_finish(new.finish_reason.as_deref());
        if new.finish_reason.is_none() || end == ResponseEnd::from_finish(old.finish_reason.as_deref()) {
            return;
        }
        let is_own = |item: &Item| speaker.is_none_or(|speaker| item.is_of(speaker));
        let last = items.iter().rposition(|item| matches!(item.kind, ItemKind::Message { .. }) && is_own(item));
        if let Some(Some(edit)) = last.and_then(|last| self.items.get_mut(last)) {
            edit.status = Some(end.status());
        }
        self.end = Some(end);
    }

    /// What is one agent's of a team: its new items name it, and all text is that of all agents.
    fn among_others(&mut self, items: &[Item], speaker: &str) {
        for added in self.added.iter_mut().filter_map(Value::as_object_mut) {
            added.insert("agent".to_owned(), serde_json::json!({"agent_name": speaker}));
        }
        let mut text = String::new();
        for (item, edit) in items.iter().zip(&self.items) {
            let (ItemKind::Message { parts, .. }, Some(edit)) = (&item.kind, edit) else { continue };
            let said = parts.iter().enumerate();
            text.extend(said.filter_map(|(at, part)| edit.texts.get(&at).map(String::as_str).or(part.as_text())));
        }
        let added = self.added.iter().filter_map(|added| added.pointer("/content/0/text")?.as_str());
        text.extend(added);
        self.text = text;
    }

    /// Whether items come or go.
    pub(super) fn is_structural(&self) -> bool {
        !self.added.is_empty() || self.items.iter().any(Option::is_none)
    }

    /// Writes everything into a response object. `items` are those that the changes are about.
    pub(super) fn write(&self, source: &str, response: &Node<'_>, items: &[Item], splices: &mut Splices) {
        let members = response.members();
        if let Some(output) = member(&members, "output").filter(Node::is_array) {
            let nodes = output.elements();
            // Some servers end a stream without repeating its items.
            if nodes.len() == items.len() {
                elements::write(source, &output, &self.elements(&nodes), splices);
            }
        }
        let repeated = member(&members, "output_text").and_then(|place| Some((place, place.string()?)));
        if let Some((place, _)) = repeated.filter(|(_, text)| *text != self.text) {
            splices.replace(place.span(), encode_string(&self.text));
        }
        if let Some(end) = &self.end {
            let details = match end {
                ResponseEnd::Completed => "null".to_owned(),
                ResponseEnd::Incomplete(reason) => serde_json::json!({"reason": reason}).to_string(),
            };
            fields::set(response, &members, "status", &encode_string(end.status()), splices);
            fields::set(response, &members, "incomplete_details", &details, splices);
        }
    }

    fn elements(&self, nodes: &[Node<'_>]) -> Vec<Element> {
        let kept = nodes.iter().zip(&self.items).enumerate().filter_map(|(at, (node, edit))| {
            let mut splices = Splices::default();
            item::edit(node, edit.as_ref()?, &mut splices);
            Some(Element::retained(at, splices))
        });
        kept.chain(self.added.iter().map(|item| Element::from_json(item.to_string()))).collect()
    }
}
