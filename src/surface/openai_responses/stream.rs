//! A streamed response: assembling it from its events.
//!
//! An event says the same text up to five times: in deltas, when the text, the part and the item are done, and in the
//! response that ends the stream.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    item::{self, Item, Kind},
    reply,
};
use crate::surface::{
    Part, Reply, SurfaceError,
    fields::{self, number, string, text, unreadable},
    pieces::{Piece, joined, piece},
    splice::{Member, Node, member},
    sse,
};

const EXPECTED: &str = "a response stream";

/// All that the events say of one text: of a content part, or of a call's arguments.
#[derive(Debug, Default)]
struct Spoken {
    deltas: Vec<Piece>,
    /// The whole text, as an event that ends it says it.
    done: Option<Piece>,
    /// The type of the content part, where it is one.
    kind: Option<String>,
}

/// All that the events say of one item.
#[derive(Debug, Default)]
struct Track<'a> {
    added: Option<Node<'a>>,
    done: Option<Node<'a>>,
    parts: BTreeMap<u64, Spoken>,
    arguments: Spoken,
}

/// The events of a stream, taken apart.
#[derive(Debug, Default)]
struct Events<'a> {
    /// Items by `output_index`.
    tracks: BTreeMap<u64, Track<'a>>,
    /// The response as the stream began, and as it ended.
    began: Option<Node<'a>>,
    ended: Option<Node<'a>>,
    failed: bool,
}

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let events = take_apart(fields::source(body, EXPECTED)?)?;
    let ended = events.ended.as_ref().and_then(reply::of);
    let finish = events.ended.as_ref().and_then(item::finish);
    let finish = finish.or_else(|| events.failed.then(|| "error".into()));
    let mut reply = ended.or_else(|| events.began.as_ref().and_then(reply::of)).unwrap_or_default();
    let items: Vec<Item> = events.tracks.values().map(Track::item).collect();
    if !items.is_empty() {
        reply.items = items.iter().filter_map(|item| item.id.clone()).collect();
        reply.answers = vec![item::answer(&items, finish)];
    } else if reply.answers.is_empty() {
        reply.answers = vec![item::answer(&[], finish)];
    }
    Ok(reply)
}

pub(super) fn write(_: &[u8], _: &Reply, _: &Reply) -> Result<Bytes, SurfaceError> {
    Err(SurfaceError::NoPlace("a response stream is only read".to_owned()))
}

fn take_apart(source: &str) -> Result<Events<'_>, SurfaceError> {
    let mut events = Events::default();
    let mut seen = false;
    for event in sse::events(source.as_bytes()) {
        let [span] = event.data.as_slice() else { continue };
        if source.get(span.clone()) == Some("[DONE]") {
            continue;
        }
        let root = Node::parse_at(source, span.clone()).map_err(|detail| unreadable(EXPECTED, detail))?;
        let members = root.members();
        let Some(kind) = string(&members, "type") else { continue };
        seen |= kind.starts_with("response.") || kind == "error";
        events.take(&kind, &members);
    }
    if seen { Ok(events) } else { Err(unreadable(EXPECTED, "no event has a `type` of this API")) }
}

impl<'a> Events<'a> {
    fn take(&mut self, kind: &str, members: &[Member<'a>]) {
        let response = || member(members, "response");
        match kind {
            "response.created" => self.began = response(),
            "response.completed" | "response.incomplete" | "response.failed" => self.ended = response(),
            "error" => self.failed = true,
            _ => {
                let Some(index) = number(members, "output_index") else { return };
                self.tracks.entry(index).or_default().take(kind, members);
            }
        }
    }
}

impl<'a> Track<'a> {
    fn take(&mut self, kind: &str, members: &[Member<'a>]) {
        let part = number(members, "content_index").unwrap_or_default();
        let literal = |key: &str| member(members, key).and_then(|node| piece(&node));
        match kind {
            "response.output_item.added" => self.added = member(members, "item"),
            "response.output_item.done" => self.done = member(members, "item"),
            "response.content_part.added" => {
                let kind = member(members, "part").map(|part| text(&part.members(), "type"));
                self.parts.entry(part).or_default().kind = kind;
            }
            "response.output_text.delta" => self.parts.entry(part).or_default().deltas.extend(literal("delta")),
            "response.output_text.done" => self.parts.entry(part).or_default().done = literal("text"),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.arguments.deltas.extend(literal("delta"));
            }
            "response.function_call_arguments.done" => self.arguments.done = literal("arguments"),
            "response.custom_tool_call_input.done" => self.arguments.done = literal("input"),
            _ => {}
        }
    }

    /// The item that the events make.
    fn item(&self) -> Item {
        let mut item = self.done.or(self.added).as_ref().map_or_else(Item::unsaid, item::read);
        match &mut item.kind {
            Kind::Message { parts, .. } => {
                for (index, spoken) in &self.parts {
                    let at = usize::try_from(*index).unwrap_or(usize::MAX).min(parts.len());
                    match (parts.get_mut(at), spoken.part()) {
                        (Some(part @ Part::Text(_)), said) => *part = said,
                        (None, said) => parts.push(said),
                        _ => {}
                    }
                }
            }
            Kind::Call { arguments, .. } => {
                if let Some(said) = self.arguments.text() {
                    *arguments = said;
                }
            }
            _ => {}
        }
        item
    }
}

impl Spoken {
    /// What was said, if anything was.
    fn text(&self) -> Option<String> {
        let done = || self.done.as_ref().map(|done| done.text.clone());
        if self.deltas.is_empty() { done() } else { Some(joined(&self.deltas)) }
    }

    fn part(&self) -> Part {
        match self.kind.as_deref() {
            None | Some("output_text" | "text") => Part::Text(self.text().unwrap_or_default()),
            Some(other) => Part::Opaque(other.to_owned()),
        }
    }
}

impl Item {
    /// An item of which no event says what it is.
    fn unsaid() -> Self {
        Self { id: None, kind: Kind::Message { role: crate::surface::Role::Assistant, parts: Vec::new() } }
    }
}
