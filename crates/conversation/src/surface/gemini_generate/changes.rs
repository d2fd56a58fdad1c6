//! An edited view, spliced into the chunks of a reply. Thoughts and signatures keep their bytes.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    part,
    reply::{self, CandidateChunk, CandidateTrack, EXPECTED, PartTrack},
    spelling::{listed, named, present, spelled},
};
use crate::surface::{
    Reply, SurfaceError,
    blocks::{self, Block, BlockChange, BlockChanges},
    elements::{self, Element},
    fields,
    pieces::spread,
    splice::{Node, Splices, encode_string, member},
    sse,
};

/// Members of a candidate that quote its text, token by token or place by place.
const QUOTES: &[&str] =
    &["avgLogprobs", "avg_logprobs", "citationMetadata", "citation_metadata", "logprobsResult", "logprobs_result"];

pub(super) fn write(body: &[u8], is_stream: bool, before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, EXPECTED)?;
    let source = if is_stream { sse::single_lines(source) } else { source.into() };
    let taken = reply::take_apart(&source, is_stream)?;
    let mut splices = Splices::default();
    for (old, new) in before.answers.iter().zip(&after.answers).filter(|(old, new)| old != new) {
        let track = taken.candidates.get(&old.index);
        let track = track.ok_or_else(|| SurfaceError::NoPlace("the reply has no such candidate".to_owned()))?;
        let changes = blocks::compare(&track.blocks(), old, new);
        CandidateEdit { source: &source, track, changes: &changes }.write(&mut splices)?;
    }
    Ok(splices.apply(body))
}

/// The edit of one candidate under way.
struct CandidateEdit<'e, 'a> {
    source: &'a str,
    track: &'e CandidateTrack<'a>,
    changes: &'e BlockChanges,
}

impl CandidateEdit<'_, '_> {
    fn write(&self, splices: &mut Splices) -> Result<(), SurfaceError> {
        let mut says_else = false;
        for (track, change) in self.track.parts.iter().zip(&self.changes.blocks) {
            if let BlockChange::Text(text) = change {
                spread(&track.pieces, text, splices);
                says_else = true;
            }
        }
        let last = self.track.chunks.iter().rposition(|chunk| parts(&chunk.node).is_some_and(|parts| parts.is_array()));
        for (number, chunk) in self.track.chunks.iter().enumerate() {
            let is_last = last == Some(number);
            self.write_parts(chunk, is_last, splices)?;
            if says_else {
                drop_quotes(self.source, &chunk.node, splices);
            }
        }
        if let (true, None, Some(chunk)) = (!self.changes.added.is_empty(), last, self.track.chunks.last()) {
            let content = json!({"parts": self.added(), "role": "model"});
            fields::set(&chunk.node, &chunk.node.members(), "content", &content.to_string(), splices);
        }
        self.write_finish(splices);
        Ok(())
    }

    fn added(&self) -> Vec<Value> {
        let made = |block: &Block| match block {
            Block::Call(call) => part::call_part(call),
            Block::Text(text) => part::text_part(text),
            Block::Result { .. } | Block::Other(_) => Value::Null,
        };
        self.changes.added.iter().map(made).collect()
    }

    /// Writes calls that change or go, and, in the last chunk, what is new.
    fn write_parts(
        &self,
        chunk: &CandidateChunk<'_>,
        is_last: bool,
        splices: &mut Splices,
    ) -> Result<(), SurfaceError> {
        let Some(parts) = parts(&chunk.node) else { return Ok(()) };
        let mut elements = Vec::new();
        for (at, (node, track)) in listed(&parts).iter().zip(&chunk.tracks).enumerate() {
            let mut inside = Splices::default();
            let place = track.and_then(|track| Some((self.changes.blocks.get(track)?, self.track.parts.get(track)?)));
            match place.map(|(change, part)| (change, &part.block, part)) {
                Some((BlockChange::Drop, ..)) => continue,
                // A call that came in pieces comes whole, where it began.
                Some((BlockChange::Call(_), _, part)) if part.at != node.span().start => continue,
                Some((BlockChange::Call(new), _, PartTrack { partial: Some(_), .. })) => {
                    part::write_call(node, new, &mut inside)?;
                }
                Some((BlockChange::Call(new), Block::Call(old), _)) => part::edit_call(node, old, new, &mut inside)?,
                _ => {}
            }
            elements.push(Element::retained(at, inside));
        }
        if is_last {
            elements.extend(self.added().iter().map(|part| Element::from_json(part.to_string())));
        }
        if parts.is_array() {
            elements::write(self.source, &parts, &elements, splices);
        }
        Ok(())
    }

    fn write_finish(&self, splices: &mut Splices) {
        let Some(finish) = &self.changes.finish else { return };
        let reason = encode_string(part::finish_reason(finish));
        match (&self.track.finish, self.track.chunks.last()) {
            (Some(place), _) if encode_string(&place.text) != reason => splices.replace(place.span.clone(), reason),
            (None, Some(chunk)) => {
                let members = chunk.node.members();
                fields::set(&chunk.node, &members, &spelled(&members, "finishReason", &members), &reason, splices);
            }
            _ => {}
        }
    }
}

/// The parts of a candidate.
fn parts<'a>(candidate: &Node<'a>) -> Option<Node<'a>> {
    candidate.get("content")?.get("parts")
}

/// Takes out what quotes the text that a candidate no longer says.
fn drop_quotes(source: &str, candidate: &Node<'_>, splices: &mut Splices) {
    let members = candidate.members();
    if QUOTES.iter().any(|key| member(&members, key).is_some()) {
        fields::remove_members(source, candidate, &members, QUOTES, splices);
    }
    let Some(grounding) = present(&members, "groundingMetadata") else { return };
    let members = grounding.members();
    if named(&members, "groundingSupports").is_some() {
        let key = spelled(&members, "groundingSupports", &members);
        fields::remove_members(source, &grounding, &members, &[&key], splices);
    }
}
