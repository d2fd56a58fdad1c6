//! An edited view, spliced into the events of a streamed reply. Signed thinking and the order of blocks stay.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    changes, compose,
    stream::{BlockTrack, EXPECTED, MessageEvents, take_apart},
};
use crate::surface::{
    Reply, SurfaceError,
    blocks::{self, BlockChange, BlockChanges},
    fields,
    pieces::spread,
    splice::Splices,
    sse,
};

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED)?);
    let events = take_apart(&source)?;
    let (Some(old), Some(new)) = (before.answers.first(), after.answers.first()) else {
        return Err(SurfaceError::NoPlace("the stream has no answer".to_owned()));
    };
    let changes = blocks::compare(&events.blocks(), old, new);
    let mut rewrite = MessageRewrite { events: &events, splices: Splices::default() };
    rewrite.blocks(&changes);
    rewrite.end(&changes);
    Ok(rewrite.splices.apply(body))
}

/// Edits of a stream under way.
struct MessageRewrite<'e, 'a> {
    events: &'e MessageEvents<'a>,
    splices: Splices,
}

impl MessageRewrite<'_, '_> {
    fn blocks(&mut self, changes: &BlockChanges) {
        let mut places = HashMap::new();
        for ((index, track), change) in self.events.tracks.iter().zip(&changes.blocks) {
            match change {
                BlockChange::Keep => {}
                BlockChange::Text(text) => self.say(*index, track, text, "text_delta", "text"),
                BlockChange::Call(call) => {
                    changes::edit_called(&track.block, call, &mut self.splices);
                    self.say(*index, track, &call.arguments, "input_json_delta", "partial_json");
                }
                BlockChange::Drop => {
                    self.drop_frames(*index, |_| true);
                    continue;
                }
            }
            places.insert(*index, places.len());
        }
        if changes.added.is_empty() && places.len() == changes.blocks.len() {
            return;
        }
        for (index, node) in self.events.frames.iter().filter_map(|frame| frame.index) {
            if let Some(place) = places.get(&index).filter(|place| **place as u64 != index) {
                self.splices.replace(node.span(), place.to_string());
            }
        }
        let added = changes.added.iter().enumerate();
        let events = added.flat_map(|(at, block)| compose::block_events(places.len() + at, compose::block(block)));
        let text: String = events.map(|event| compose::frame(&event)).collect();
        self.insert(|kind| matches!(kind, "message_delta" | "message_stop"), &text);
    }

    /// Says a text, or the JSON text of a tool's input, in the place of another.
    fn say(&mut self, index: u64, track: &BlockTrack<'_>, text: &str, kind: &str, key: &str) {
        if kind == "text_delta" {
            self.drop_frames(index, |delta| delta == "citations_delta");
        }
        if !track.pieces.is_empty() {
            return spread(&track.pieces, text, &mut self.splices);
        }
        if track.block.get("input").is_some_and(|input| input.raw() == text) {
            return;
        }
        // Nothing was said so far: it is now, in one piece, before the block ends.
        let delta: Value = json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: text}});
        if let Some(frame) = self.events.frames_of(index).find(|frame| frame.kind == "content_block_stop") {
            let at = frame.span.start;
            self.splices.replace(at..at, compose::frame(&delta));
        }
    }

    /// Takes out the events about a block, those whose delta has such a type.
    fn drop_frames(&mut self, index: u64, such: impl Fn(&str) -> bool) {
        for frame in self.events.frames_of(index) {
            let kind = frame.delta.and_then(|delta| delta.get("type")?.string()).unwrap_or_default();
            if such(&kind) {
                self.splices.replace(frame.span.clone(), "");
            }
        }
    }

    /// Puts events before the first of such a type, or at the end.
    fn insert(&mut self, before: impl Fn(&str) -> bool, text: &str) {
        let frames = &self.events.frames;
        let place = frames.iter().find(|frame| before(&frame.kind)).map(|frame| frame.span.start);
        if let Some(at) = place.or_else(|| frames.last().map(|frame| frame.span.end)) {
            self.splices.replace(at..at, text);
        }
    }

    fn end(&mut self, changes: &BlockChanges) {
        let deltas = self.events.frames.iter().filter(|frame| frame.kind == "message_delta");
        let last = deltas.filter_map(|frame| frame.delta).rfind(|delta| delta.get("stop_reason").is_some());
        if let (Some(reason), Some(delta)) = (&changes.finish, last) {
            changes::edit_stop(&delta, reason, &mut self.splices);
        }
    }
}
