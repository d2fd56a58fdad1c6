//! Edited blocks, spliced into the events of a stream. What signs a block and the order of blocks stay.

use std::collections::HashMap;

use super::{BlockTrack, PieceForm, TypedEvents, edit_words};
use crate::surface::{
    blocks::{Block, BlockChange, BlockChanges},
    fields,
    pieces::spread,
    splice::{Node, Splices},
};

/// Writes what becomes of the blocks of a stream into its events.
pub(in crate::surface) fn write(events: &TypedEvents<'_>, changes: &BlockChanges, splices: &mut Splices) {
    let mut edit = EventEdit { events, splices };
    let mut places = HashMap::new();
    for ((block, track), change) in events.tracks.iter().zip(&changes.blocks) {
        match change {
            BlockChange::Keep => {}
            BlockChange::Text(text) => {
                edit.drop_frames(*block, |kind| kind == events.form.note);
                edit.write_words(*block, &track.pieces, &events.form.text, text);
            }
            BlockChange::Call(call) => {
                edit_words(&track.start, "id", &call.id, edit.splices);
                edit_words(&track.start, "name", &call.name, edit.splices);
                edit.write_arguments(*block, track, &call.arguments);
            }
            BlockChange::Drop => {
                edit.drop_frames(*block, |_| true);
                continue;
            }
        }
        places.insert(*block, places.len() as u64);
    }
    if !changes.added.is_empty() || places.len() < changes.blocks.len() {
        edit.number(&places);
        edit.add(places.len() as u64, &changes.added);
    }
}

/// Edits of a stream under way.
struct EventEdit<'e, 'a, 's> {
    events: &'e TypedEvents<'a>,
    splices: &'s mut Splices,
}

impl EventEdit<'_, '_, '_> {
    /// Writes other arguments in the place of those that pieces say, or that the block starts with.
    fn write_arguments(&mut self, block: u64, track: &BlockTrack<'_>, arguments: &str) {
        let form = self.events.form;
        if track.pieces.is_empty() {
            let is_same = matches!((form.read)(&track.start, false), Block::Call(call) if call.arguments == arguments);
            if is_same {
                return;
            }
            let starts_with_some = track.start.get(form.input).is_some_and(|input| !input.members().is_empty());
            let object = Node::parse(arguments.as_bytes()).ok().filter(Node::is_object);
            if let Some(object) = object.filter(|_| starts_with_some) {
                let members = track.start.members();
                return fields::set(&track.start, &members, form.input, object.raw(), self.splices);
            }
        }
        self.write_words(block, &track.pieces, &form.arguments, arguments);
    }

    /// Writes other words in the place of pieces. Where there are none, they come in one piece, before the block ends.
    fn write_words(&mut self, block: u64, pieces: &[crate::surface::pieces::Piece], form: &PieceForm, words: &str) {
        if !pieces.is_empty() {
            return spread(pieces, words, self.splices);
        }
        let stop = self.events.frames_of(block).find(|frame| frame.kind == self.events.form.stop);
        if let Some(stop) = stop {
            let index = stop.index.and_then(|index| index.value()).unwrap_or(block);
            let delta = self.events.form.delta_event(index, form, words);
            self.splices.replace(stop.span.start..stop.span.start, self.events.form.frame(&delta));
        }
    }

    /// Takes out the events about a block, those whose piece has such a type.
    fn drop_frames(&mut self, block: u64, such: impl Fn(&str) -> bool) {
        for frame in self.events.frames_of(block) {
            let kind = frame.delta.and_then(|delta| delta.get("type")?.string()).unwrap_or_default();
            if such(&kind) {
                self.splices.replace(frame.span.clone(), "");
            }
        }
    }

    /// Numbers the blocks that stay anew, without gaps.
    fn number(&mut self, places: &HashMap<u64, u64>) {
        for frame in &self.events.frames {
            let place = frame.block.and_then(|block| places.get(&block));
            if let (Some(place), Some(index)) = (place, frame.index.filter(|index| index.value() != place.copied())) {
                self.splices.replace(index.span(), place.to_string());
            }
        }
    }

    /// Puts new blocks before the events that end the answer: behind the last event about a block, where there is one.
    fn add(&mut self, first: u64, blocks: &[Block]) {
        let form = self.events.form;
        let events = (first..).zip(blocks).flat_map(|(index, block)| form.block_events(index, block));
        let text: String = events.map(|event| form.frame(&event)).collect();
        let frames = &self.events.frames;
        let last = frames.iter().rposition(|frame| frame.block.is_some()).map_or(0, |last| last + 1);
        let rest = frames.get(last..).unwrap_or_default();
        let end = rest.iter().find(|frame| form.ends.contains(&frame.kind.as_str())).map(|frame| frame.span.start);
        if let Some(at) = end.or_else(|| frames.last().map(|frame| frame.span.end)) {
            self.splices.replace(at..at, text);
        }
    }
}
