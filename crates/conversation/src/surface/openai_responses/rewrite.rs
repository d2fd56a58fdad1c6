//! An edited view, spliced into the events of a streamed response.
//!
//! A text changes in all five places that say it. Items that go take their events along, new ones bring theirs; the
//! events are then numbered again, without gaps. No other byte moves.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    changes::{self, ResponseChanges},
    compose,
    item::{self, Item, ItemEdit},
    stream::{EXPECTED, ResponseEvents, ResponseFrame, SpokenText, take_apart},
};
use crate::surface::{
    Reply, SurfaceError,
    fields::{self, number},
    pieces::{Piece, spread},
    splice::{Splices, encode_string, member},
    sse,
};

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = &*sse::single_lines(fields::source(body, EXPECTED)?);
    let events = take_apart(source)?;
    let (old, new) = before.only_answers(after)?;
    let items = events.items();
    let changes = changes::compare(&items, old, new, before);
    let mut rewrite =
        ResponseRewrite { source, splices: Splices::default(), dropped: HashSet::new(), inserted: BTreeMap::new() };
    rewrite.items(&events, &changes);
    rewrite.ended(&events, &changes, &items);
    rewrite.number(&events.frames);
    Ok(rewrite.splices.apply(body))
}

/// Edits of a stream under way.
struct ResponseRewrite<'a> {
    source: &'a str,
    splices: Splices,
    /// Numbers of the frames that go.
    dropped: HashSet<usize>,
    /// New events, before the frame of each number.
    inserted: BTreeMap<usize, Vec<Value>>,
}

impl ResponseRewrite<'_> {
    fn items(&mut self, events: &ResponseEvents<'_>, changes: &ResponseChanges) {
        let mut places = HashMap::new();
        for ((index, track), change) in events.tracks.iter().zip(&changes.items) {
            match change {
                None => self.dropped.extend(events.frames_of(*index)),
                Some(edit) => {
                    places.insert(*index, places.len());
                    if !edit.is_empty() {
                        self.edit(events, *index, edit);
                        for node in [&track.added, &track.done].into_iter().flatten() {
                            item::edit(node, edit, &mut self.splices);
                        }
                    }
                }
            }
        }
        if !changes.is_structural() {
            return;
        }
        for frame in &events.frames {
            let (Some(index), Some(node)) = (frame.index, frame.index_place) else { continue };
            // An index that had no gaps before has none after.
            if let Some(place) = places.get(&index).filter(|place| **place as u64 != index) {
                self.splices.replace(node.span(), place.to_string());
            }
        }
        let at = events.ended.as_ref().map_or(events.frames.len(), |(number, _)| *number);
        for (added, item) in changes.added.iter().enumerate() {
            self.inserted.entry(at).or_default().extend(compose::item_events(places.len() + added, item));
        }
    }

    /// Edits what the events of one item say.
    fn edit(&mut self, events: &ResponseEvents<'_>, index: u64, edit: &ItemEdit) {
        let Some(track) = events.tracks.get(&index) else { return };
        for (at, text) in &edit.texts {
            let Some(spoken) = track.parts.get(&(*at as u64)) else { continue };
            self.say(spoken, text, |delta| {
                json!({
                    "type": "response.output_text.delta", "item_id": track.id(), "output_index": index,
                    "content_index": at, "delta": delta, "logprobs": [],
                })
            });
        }
        if let Some(call) = &edit.call {
            let kind = track.arguments.kind.as_deref().unwrap_or("response.function_call_arguments.delta");
            self.say(
                &track.arguments,
                &call.arguments,
                |delta| json!({"type": kind, "item_id": track.id(), "output_index": index, "delta": delta}),
            );
        }
        for number in events.frames_of(index) {
            if let Some(frame) = events.frames.get(*number) {
                self.edit_frame(*number, frame, edit);
            }
        }
    }

    /// Says a text in the place of another: in the deltas, and where the whole is repeated.
    fn say(&mut self, spoken: &SpokenText, text: &str, delta: impl Fn(&str) -> Value) {
        if spoken.text().as_deref() == Some(text) {
            return;
        }
        if spoken.deltas.is_empty() {
            // Nothing was said so far: it is now, in one piece, before the event that ends it.
            let at = spoken.done.as_ref().map(|(number, _)| *number).filter(|_| !text.is_empty());
            if let Some(at) = at {
                self.inserted.entry(at).or_default().push(delta(text));
            }
        } else {
            spread(&spoken.deltas, text, &mut self.splices);
        }
        if let Some((_, Piece { span, .. })) = &spoken.done {
            self.splices.replace(span.clone(), encode_string(text));
        }
    }

    /// Edits what one event says besides text: the part that it ends, tokens, notes on the text, the tool's name.
    fn edit_frame(&mut self, at: usize, frame: &ResponseFrame<'_>, edit: &ItemEdit) {
        let members = frame.root.members();
        let part = number(&members, "content_index").and_then(|part| usize::try_from(part).ok()).unwrap_or_default();
        let text = edit.texts.get(&part);
        match (frame.kind.as_str(), text, &edit.call) {
            ("response.output_text.annotation.added", Some(_), _) => {
                self.dropped.insert(at);
            }
            ("response.content_part.done", Some(text), _) => {
                if let Some(part) = member(&members, "part") {
                    item::edit_part(&part, text, &mut self.splices);
                }
            }
            ("response.output_text.delta" | "response.output_text.done", Some(_), _) => {
                if let Some(list) = member(&members, "logprobs").filter(|list| !list.elements().is_empty()) {
                    self.splices.replace(list.span(), "[]");
                }
            }
            ("response.function_call_arguments.done", _, Some(call)) => {
                if let Some(name) = member(&members, "name").filter(|name| name.string().as_deref() != Some(&call.name))
                {
                    self.splices.replace(name.span(), encode_string(&call.name));
                }
            }
            _ => {}
        }
    }

    /// Edits the event that ends the stream.
    fn ended(&mut self, events: &ResponseEvents<'_>, changes: &ResponseChanges, items: &[Item]) {
        let Some((number, response)) = &events.ended else { return };
        changes.write(self.source, response, items, &mut self.splices);
        let (Some(end), Some(frame)) = (&changes.end, events.frames.get(*number)) else { return };
        let kind = format!("response.{}", end.status());
        if let Some(place) = frame.root.get("type") {
            self.splices.replace(place.span(), encode_string(&kind));
        }
        let before_data = frame.span.start..frame.root.span().start;
        let line = self.source.get(before_data.clone()).and_then(|text| text.find(&frame.kind));
        if let Some(line) = line {
            let start = before_data.start + line;
            self.splices.replace(start..start + frame.kind.len(), kind);
        }
    }

    /// Takes out the frames that go, puts in the new ones, and numbers all again if any did.
    fn number(&mut self, frames: &[ResponseFrame<'_>]) {
        if self.dropped.is_empty() && self.inserted.is_empty() {
            return;
        }
        let numbers = || frames.iter().filter_map(|frame| frame.sequence);
        let mut next = numbers().find_map(|node| node.value::<u64>());
        let end = frames.last().map_or(self.source.len(), |frame| frame.span.end);
        for (at, frame) in frames.iter().enumerate() {
            self.insert_before(at, frame.span.start, &mut next);
            if self.dropped.contains(&at) {
                self.splices.replace(Range::clone(&frame.span), "");
                continue;
            }
            let Some(place) = frame.sequence else { continue };
            if let Some(next) = &mut next {
                if place.value() != Some(*next) {
                    self.splices.replace(place.span(), next.to_string());
                }
                *next += 1;
            }
        }
        self.insert_before(frames.len(), end, &mut next);
    }

    fn insert_before(&mut self, frame: usize, place: usize, next: &mut Option<u64>) {
        let mut text = String::new();
        for event in self.inserted.get(&frame).into_iter().flatten() {
            text += &compose::frame(event.clone(), *next);
            *next = next.map(|next| next + 1);
        }
        if !text.is_empty() {
            self.splices.replace(place..place, text);
        }
    }
}
