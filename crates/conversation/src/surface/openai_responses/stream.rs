//! A streamed response: assembling it from its events.
//!
//! An event says the same text up to five times: in deltas, when the text, the part and the item are done, and in the
//! response that ends the stream.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
};

use super::{
    item::{self, Item, ItemKind},
    reply,
};
use crate::surface::{
    Part, Reply, Role, SurfaceError,
    fields::{self, number, string, text, unreadable},
    pieces::{Piece, joined, piece},
    splice::{Member, Node, member},
    sse,
};

pub(super) const EXPECTED: &str = "a response stream";

/// One event.
#[derive(Debug)]
pub(super) struct ResponseFrame<'a> {
    /// All its bytes.
    pub(super) span: Range<usize>,
    /// Its data.
    pub(super) root: Node<'a>,
    /// Its type.
    pub(super) kind: String,
    /// The item that it is about, by the number of its track.
    pub(super) index: Option<u64>,
    /// Where it states that number.
    pub(super) index_place: Option<Node<'a>>,
    /// Its number.
    pub(super) sequence: Option<Node<'a>>,
}

/// All that the events say of one text: of a content part, or of a call's arguments.
#[derive(Debug, Default)]
pub(super) struct SpokenText {
    /// Piece by piece.
    pub(super) deltas: Vec<Piece>,
    /// The whole, as the event of that number that ends it says it.
    pub(super) done: Option<(usize, Piece)>,
    /// The type of the content part, or of the deltas of arguments.
    pub(super) kind: Option<String>,
}

/// All that the events say of one item.
#[derive(Debug, Default)]
pub(super) struct ItemTrack<'a> {
    /// As it came.
    pub(super) added: Option<Node<'a>>,
    /// As it ended.
    pub(super) done: Option<Node<'a>>,
    /// Its content parts, by `content_index`.
    pub(super) parts: BTreeMap<u64, SpokenText>,
    /// Its arguments.
    pub(super) arguments: SpokenText,
    /// Its id, as far as it is known.
    known_as: Option<String>,
}

/// The events of a stream, taken apart.
#[derive(Debug, Default)]
pub(super) struct ResponseEvents<'a> {
    /// All of them.
    pub(super) frames: Vec<ResponseFrame<'a>>,
    /// Items by `output_index`.
    pub(super) tracks: BTreeMap<u64, ItemTrack<'a>>,
    /// The numbers of the events about each item.
    by_item: HashMap<u64, Vec<usize>>,
    /// The items of each id.
    ids: HashMap<String, BTreeSet<u64>>,
    began: Option<Node<'a>>,
    /// The response as the stream ended, and the number of the event that says it.
    pub(super) ended: Option<(usize, Node<'a>)>,
    failed: bool,
}

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED)?);
    let events = take_apart(&source)?;
    let ended = events.ended.as_ref().map(|(_, response)| response);
    let finish = ended.and_then(item::finish).or_else(|| events.failed.then(|| "error".into()));
    let head = ended.and_then(reply::read_response).or_else(|| events.began.as_ref().and_then(reply::read_response));
    let items = events.items();
    Ok(Reply {
        items: items.iter().filter_map(|item| item.id.clone()).collect(),
        answers: vec![item::answer(&items, finish)],
        utterances: item::utterances(&items),
        ..head.unwrap_or_default()
    })
}

/// Takes a stream apart.
pub(super) fn take_apart(source: &str) -> Result<ResponseEvents<'_>, SurfaceError> {
    let mut events = ResponseEvents::default();
    let mut seen = false;
    for (event, span) in sse::objects(source) {
        let root = Node::parse_at(source, span).map_err(|detail| unreadable(EXPECTED, detail))?;
        let members = root.members();
        let Some(kind) = string(&members, "type") else { continue };
        seen |= kind.starts_with("response.") || kind == "error";
        let index_place = member(&members, "output_index").filter(|node| node.value::<u64>().is_some());
        let index = index_place.and_then(|node| node.value()).or_else(|| events.index_of(&kind, &members));
        let sequence = member(&members, "sequence_number");
        events.take(&kind, index, &members);
        if let Some(index) = index {
            events.by_item.entry(index).or_default().push(events.frames.len());
        }
        events.frames.push(ResponseFrame { span: event.span, root, kind, index, index_place, sequence });
    }
    if seen { Ok(events) } else { Err(unreadable(EXPECTED, "no event has a `type` of this API")) }
}

impl<'a> ResponseEvents<'a> {
    fn take(&mut self, kind: &str, index: Option<u64>, members: &[Member<'a>]) {
        let response = || member(members, "response");
        let number = self.frames.len();
        match kind {
            "response.created" => self.began = response(),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.ended = response().map(|response| (number, response));
            }
            "error" => self.failed = true,
            _ => {
                if let Some(index) = index {
                    let track = self.tracks.entry(index).or_default();
                    track.take(kind, number, members);
                    if track.known_as.is_none() || kind.starts_with("response.output_item.") {
                        let id = track.id();
                        if let Some(former) = track.known_as.replace(id.clone()) {
                            self.ids.entry(former).or_default().remove(&index);
                        }
                        self.ids.entry(id).or_default().insert(index);
                    }
                }
            }
        }
    }

    /// The track of an event that states no `output_index`, as gateways write them: by the id of its item, else the item that is
    /// under way, else a new one.
    fn index_of(&self, kind: &str, members: &[Member<'_>]) -> Option<u64> {
        const SPOKEN: &[&str] =
            &["output_item", "content_part", "output_text", "function_call_arguments", "custom_tool_call_input"];
        let about = kind.strip_prefix("response.")?.split('.').next()?;
        if !SPOKEN.contains(&about) {
            return None;
        }
        let item = member(members, "item");
        let id = string(members, "item_id").or_else(|| Some(item?.get("id")?.string()?.into_owned()));
        let of_id = |id: &String| self.ids.get(id)?.last().copied();
        let last = self.tracks.iter().next_back();
        let next = || last.map_or(0, |(index, _)| index + 1);
        let known = id.as_ref().and_then(of_id);
        Some(match (known, kind) {
            (Some(index), _) => index,
            (None, "response.output_item.added") => next(),
            // An item that ends is the one under way, where that has no end and no other kind.
            (None, "response.output_item.done") => {
                let fits =
                    |(_, track): &(&u64, &ItemTrack<'_>)| track.done.is_none() && track.is_kind_of(item.as_ref());
                last.filter(fits).map_or_else(next, |(index, _)| *index)
            }
            (None, _) => {
                let fits = |(_, track): &(&u64, &ItemTrack<'_>)| {
                    track.done.is_none() && (id.is_none() || track.id().is_empty())
                };
                last.filter(fits).map_or_else(next, |(index, _)| *index)
            }
        })
    }

    /// The items, in order. A stream that says none on its way may do so when it ends.
    pub(super) fn items(&self) -> Vec<Item> {
        if !self.tracks.is_empty() {
            return self.tracks.values().map(ItemTrack::item).collect();
        }
        let output = self.ended.as_ref().and_then(|(_, response)| response.get("output"));
        output.map(|output| output.elements()).unwrap_or_default().iter().map(item::read).collect()
    }

    /// The numbers of the events about an item.
    pub(super) fn frames_of(&self, index: u64) -> &[usize] {
        self.by_item.get(&index).map(Vec::as_slice).unwrap_or_default()
    }
}

impl<'a> ItemTrack<'a> {
    fn take(&mut self, kind: &str, frame: usize, members: &[Member<'a>]) {
        let part = number(members, "content_index").unwrap_or_default();
        let literal = |key: &str| member(members, key).and_then(|node| piece(&node));
        let whole = |key: &str| literal(key).map(|piece| (frame, piece));
        match kind {
            "response.output_item.added" => self.added = member(members, "item"),
            "response.output_item.done" => self.done = member(members, "item"),
            "response.content_part.added" => {
                let kind = member(members, "part").map(|part| text(&part.members(), "type"));
                self.parts.entry(part).or_default().kind = kind;
            }
            "response.output_text.delta" => self.parts.entry(part).or_default().deltas.extend(literal("delta")),
            "response.output_text.done" => self.parts.entry(part).or_default().done = whole("text"),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.arguments.kind = Some(kind.to_owned());
                self.arguments.deltas.extend(literal("delta"));
            }
            "response.function_call_arguments.done" => self.arguments.done = whole("arguments"),
            "response.custom_tool_call_input.done" => self.arguments.done = whole("input"),
            _ => {}
        }
    }

    /// Whether an item that ends could be this one: of the same kind as it began, or as its pieces say.
    fn is_kind_of(&self, item: Option<&Node<'_>>) -> bool {
        let kind_of = |node: &Node<'_>| node.get("type").and_then(|kind| kind.string()).map(Cow::into_owned);
        match (self.added.as_ref(), item) {
            (Some(added), Some(item)) => kind_of(added) == kind_of(item),
            (None, Some(item)) => {
                let calls = kind_of(item).is_some_and(|kind| item::is_call(&kind));
                if calls { self.parts.is_empty() } else { self.arguments.deltas.is_empty() }
            }
            (_, None) => false,
        }
    }

    /// The id of the item.
    pub(super) fn id(&self) -> String {
        self.added.or(self.done).and_then(|item| item.get("id")?.string()).unwrap_or_default().into_owned()
    }

    /// The item that the events make.
    fn item(&self) -> Item {
        let unsaid =
            || Item { id: None, speaker: None, kind: ItemKind::Message { role: Role::Assistant, parts: Vec::new() } };
        let mut item = self.done.or(self.added).as_ref().map_or_else(unsaid, item::read);
        match &mut item.kind {
            ItemKind::Message { parts, .. } => {
                for (index, spoken) in &self.parts {
                    let at = usize::try_from(*index).unwrap_or(usize::MAX).min(parts.len());
                    match parts.get_mut(at) {
                        Some(part @ Part::Text(_)) => *part = spoken.part(),
                        None => parts.push(spoken.part()),
                        Some(Part::Opaque(_)) => {}
                    }
                }
            }
            ItemKind::Call { arguments, .. } => {
                if let Some(said) = self.arguments.text() {
                    *arguments = said;
                }
            }
            _ => {}
        }
        item
    }
}

impl SpokenText {
    /// What was said, if anything was.
    pub(super) fn text(&self) -> Option<String> {
        let done = || self.done.as_ref().map(|(_, done)| done.text.clone());
        if self.deltas.is_empty() { done() } else { Some(joined(&self.deltas)) }
    }

    fn part(&self) -> Part {
        match self.kind.as_deref() {
            None | Some("output_text" | "text") => Part::Text(self.text().unwrap_or_default()),
            Some(other) => Part::Opaque(other.to_owned()),
        }
    }
}
