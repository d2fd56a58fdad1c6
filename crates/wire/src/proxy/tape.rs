//! The upstream's reply as it came, kept for the record.

use std::collections::VecDeque;

use bytes::Bytes;

use super::chunks::owned_chunk;
use crate::surface::{Surface, sse};

/// Bytes of a reply that are kept; what comes after passes and is marked as cut.
const MAX: usize = 32 << 20;
/// First bytes of a reply by which a stream is told from JSON.
const TELLING: usize = 64;

/// A reply so far.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// Each with the microseconds since the request arrived.
    chunks: Vec<(Bytes, u64)>,
    length: usize,
    is_cut: bool,
    is_stopped: bool,
    /// Bytes of the events that were [looked at](Self::has_answer).
    looked_at: usize,
}

impl Tape {
    /// Keeps a chunk.
    pub(super) fn push(&mut self, chunk: &Bytes, streamed: bool, at_us: impl FnOnce() -> u64) {
        if self.is_stopped {
            return;
        }
        if self.length + chunk.len() > MAX {
            self.is_cut = true;
            return;
        }
        self.length += chunk.len();
        let kept = owned_chunk(chunk, !streamed && self.chunks.is_empty());
        self.chunks.push((kept, at_us()));
    }

    /// Whether one of the events that have come whole since the last look is the answer that its client leaves with.
    pub(super) fn has_answer(&mut self, surface: &dyn Surface) -> bool {
        let mut skipped = self.looked_at;
        let mut fresh = Vec::new();
        for (chunk, _) in &self.chunks {
            let from = skipped.min(chunk.len());
            skipped -= from;
            fresh.extend_from_slice(chunk.get(from..).unwrap_or_default());
        }
        let whole: Vec<_> = sse::events(&fresh).into_iter().filter(|event| event.is_whole(&fresh)).collect();
        self.looked_at += whole.last().map_or(0, |event| event.span.end);
        whole.iter().any(|event| surface.is_answer(fresh.get(event.span.clone()).unwrap_or_default()))
    }

    /// What follows is no longer the upstream's.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Whether nothing follows that is kept.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Whether it is an event stream by its first bytes; `None` where they do not tell, or are not the first any more.
    pub(super) fn is_stream(&self) -> Option<bool> {
        match self.chunks.as_slice() {
            [(first, _)] => sse::is_stream(first),
            [(first, _), ..] if first.len() < TELLING && self.length < TELLING => sse::is_stream(&self.joined_bytes()),
            _ => None,
        }
    }

    /// Takes the chunks off again.
    pub(super) fn take_back(&mut self) -> VecDeque<Bytes> {
        self.length = 0;
        self.chunks.drain(..).map(|(chunk, _)| chunk).collect()
    }

    /// Takes the chunks for the record.
    pub(super) fn take(&mut self) -> Vec<(Bytes, u64)> {
        std::mem::take(&mut self.chunks)
    }

    /// The chunks so far.
    pub(super) fn chunks(&self) -> &[(Bytes, u64)] {
        &self.chunks
    }

    /// All of it in one piece.
    pub(super) fn joined_bytes(&self) -> Bytes {
        match self.chunks.as_slice() {
            [(only, _)] => only.clone(),
            chunks => chunks.iter().flat_map(|(chunk, _)| chunk.iter().copied()).collect(),
        }
    }

    /// Bytes of it so far.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Whether more passed than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }
}
