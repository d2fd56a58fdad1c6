//! An edited view, spliced into the events of a streamed reply. Thoughts and their signatures stay.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::json;

use super::{
    compose, reply, step,
    stream::{EXPECTED, StepEvents, StepTrack, take_apart},
};
use crate::surface::{
    Reply, SurfaceError,
    blocks::{self, BlockChange, BlockChanges},
    fields,
    pieces::spread,
    splice::{Node, Splices, encode_string},
    sse,
};

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED)?);
    let events = take_apart(&source)?;
    let (Some(old), Some(new)) = (before.answers.first(), after.answers.first()) else {
        return Err(SurfaceError::NoPlace("the stream has no answer".to_owned()));
    };
    let changes = blocks::compare(&events.blocks(), old, new);
    reply::has_status(&changes)?;
    let mut rewrite = StepRewrite { events: &events, splices: Splices::default() };
    rewrite.steps(&changes)?;
    rewrite.status(&changes);
    if let Some(ended) = &events.ended {
        let members = ended.members();
        if reply::steps(&members).is_some() {
            reply::edit(&source, ended, (old, new), &mut rewrite.splices)?;
        } else {
            reply::edit_end(&members, &changes, new, &mut rewrite.splices);
        }
    }
    Ok(rewrite.splices.apply(body))
}

/// Edits of a stream under way.
struct StepRewrite<'e, 'a> {
    events: &'e StepEvents<'a>,
    splices: Splices,
}

impl StepRewrite<'_, '_> {
    fn steps(&mut self, changes: &BlockChanges) -> Result<(), SurfaceError> {
        let mut places = HashMap::new();
        for ((index, track), change) in self.events.tracks.iter().zip(&changes.blocks) {
            match change {
                BlockChange::Keep => {}
                BlockChange::Text(text) => {
                    self.drop_frames(*index, |delta| delta == "text_annotation_delta");
                    spread(&track.pieces, text, &mut self.splices);
                }
                BlockChange::Call(call) => {
                    step::edit_called(&track.step, call, &mut self.splices);
                    self.arguments(*index, track, &call.arguments)?;
                }
                BlockChange::Drop => {
                    self.drop_frames(*index, |_| true);
                    continue;
                }
            }
            places.insert(*index, places.len());
        }
        if changes.added.is_empty() && places.len() == changes.blocks.len() {
            return Ok(());
        }
        for (index, node) in self.events.frames.iter().filter_map(|frame| frame.index) {
            if let Some(place) = places.get(&index).filter(|place| **place as u64 != index) {
                self.splices.replace(node.span(), place.to_string());
            }
        }
        let added = changes.added.iter().enumerate();
        let events = added.flat_map(|(at, block)| compose::step_events(places.len() + at, block));
        let text: String = events.map(|event| compose::frame(&event)).collect();
        self.insert(&text);
        Ok(())
    }

    /// Writes other arguments in the place of those that pieces say, or that the step starts with.
    fn arguments(&mut self, index: u64, track: &StepTrack<'_>, arguments: &str) -> Result<(), SurfaceError> {
        if !track.pieces.is_empty() {
            spread(&track.pieces, arguments, &mut self.splices);
            return Ok(());
        }
        if step::call(&track.step).arguments == arguments {
            return Ok(());
        }
        if track.step.get("arguments").is_some_and(|start| !start.members().is_empty()) {
            let object = Node::parse(arguments.as_bytes()).ok().filter(Node::is_object);
            let object =
                object.ok_or_else(|| SurfaceError::NoPlace("the tool's arguments are no JSON object".to_owned()))?;
            fields::set(&track.step, &track.step.members(), "arguments", object.raw(), &mut self.splices);
            return Ok(());
        }
        // Nothing was said so far: it is now, in one piece, before the step ends.
        let delta = json!({"event_type": "step.delta", "index": index, "delta": {"type": "arguments_delta", "arguments": arguments}});
        if let Some(frame) = self.events.frames_of(index).find(|frame| frame.kind == "step.stop") {
            let at = frame.span.start;
            self.splices.replace(at..at, compose::frame(&delta));
        }
        Ok(())
    }

    /// Takes out the events about a step, those whose delta has such a type.
    fn drop_frames(&mut self, index: u64, such: impl Fn(&str) -> bool) {
        for frame in self.events.frames_of(index).filter(|frame| such(&frame.delta)) {
            self.splices.replace(frame.span.clone(), "");
        }
    }

    /// Puts events behind the last that is about a step, or before the one that ends the interaction.
    fn insert(&mut self, text: &str) {
        let frames = &self.events.frames;
        let behind = frames.iter().rfind(|frame| frame.index.is_some()).map(|frame| frame.span.end);
        let before = || {
            let end = frames.iter().find(|frame| frame.kind == "interaction.completed").map(|frame| frame.span.start);
            end.or_else(|| frames.last().map(|frame| frame.span.end))
        };
        if let Some(at) = behind.or_else(before) {
            self.splices.replace(at..at, text);
        }
    }

    /// Writes another status wherever the last one stands, but in the interaction that ends the stream.
    fn status(&mut self, changes: &BlockChanges) {
        let Some(finish) = &changes.finish else { return };
        let ended = self.events.ended.map(|ended| ended.span()).unwrap_or_default();
        let Some(last) = self.events.statuses.last() else { return };
        let same = self.events.statuses.iter().filter(|status| status.text == last.text);
        for status in same.filter(|status| !ended.contains(&status.span.start)) {
            self.splices.replace(status.span.clone(), encode_string(step::status(finish)));
        }
    }
}
