//! Event streams: each event as its difference from the one before.

use std::ops::Range;

use bytes::Bytes;

use super::{record::Segment, share};

/// One event of a stream (or what is left of one at the stream's end).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// When its last byte came, in µs.
    at: u64,
    /// What it has in common with the start of the event before.
    prefix: usize,
    /// What it has in common with the end of the event before.
    suffix: usize,
    /// Where the rest lies in the stream.
    middle: Range<usize>,
}

impl Frame {
    /// Where it stands in the stream.
    pub(super) fn range(&self) -> Range<usize> {
        self.middle.start - self.prefix..self.middle.end + self.suffix
    }

    /// How many bytes it has in common with the start of the event before.
    pub(super) fn shared_start(&self) -> usize {
        self.prefix
    }

    /// How many bytes it has in common with the end of the event before.
    pub(super) fn shared_end(&self) -> usize {
        self.suffix
    }

    /// Its record.
    pub(super) fn record<'a>(&self, stream: &'a [u8]) -> (u64, u64, u64, Segment<'a>) {
        let middle = stream.get(self.middle.clone()).unwrap_or_default();
        (self.at, self.prefix as u64, self.suffix as u64, Segment::literal(middle))
    }
}

/// Cuts a stream behind each empty line; pieces say when which bytes came.
pub(super) fn split(stream: &[u8], pieces: &[(Bytes, u64)]) -> Vec<Frame> {
    let mut frames = Vec::with_capacity(pieces.len() + 1);
    let mut before: &[u8] = &[];
    let mut arrivals = pieces.iter();
    let (mut arrived, mut at) = (0, 0);
    for range in events(stream) {
        while arrived < range.end
            && let Some((piece, time)) = arrivals.next()
        {
            arrived += piece.len();
            at = *time;
        }
        let event = stream.get(range.clone()).unwrap_or_default();
        let prefix = share::prefix(event, before);
        let rest = |bytes: &'_ [u8]| bytes.len() - prefix;
        let suffix = share::suffix(
            event.get(event.len() - rest(event)..).unwrap_or_default(),
            before.get(before.len() - rest(before)..).unwrap_or_default(),
        );
        frames.push(Frame { at, prefix, suffix, middle: range.start + prefix..range.end - suffix });
        before = event;
    }
    frames
}

/// Whether a body begins like an event stream.
pub(super) fn is_stream(body: &[u8]) -> bool {
    [b"data:".as_slice(), b"event:", b":", b"id:", b"retry:"].iter().any(|start| body.starts_with(start))
}

/// The events of a stream, each with the empty line that ends it; what is left at the end is the last.
fn events(stream: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = stream.get(start..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr_iter(b'\n', rest).find_map(|at| match rest.get(at + 1..)? {
            [b'\n', ..] => Some(at + 2),
            [b'\r', b'\n', ..] => Some(at + 3),
            _ => None,
        });
        let range = start..start + length.unwrap_or(rest.len());
        start = range.end;
        Some(range)
    })
}
