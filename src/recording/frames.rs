//! Event streams: each event as its difference from the one before, and secrets that are spread over events.

use std::ops::Range;

use bytes::Bytes;

use super::{record::Segment, redact::Redactor, share};

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
    /// Where it begins in the stream.
    fn start(&self) -> usize {
        self.middle.start - self.prefix
    }

    /// Where it ends in the stream.
    fn end(&self) -> usize {
        self.middle.end + self.suffix
    }

    /// Its record.
    pub(super) fn record<'a>(&self, stream: &'a [u8]) -> (u64, u64, u64, Segment<'a>) {
        let middle = stream.get(self.middle.clone()).unwrap_or_default();
        (self.at, self.prefix as u64, self.suffix as u64, Segment::of(middle))
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

/// Secrets of a stream whose parts came in several events, as spans of the stream: what changes from event to event
/// is read as one text.
pub(super) fn secrets(stream: &[u8], frames: &[Frame], redactor: &Redactor) -> Vec<Range<usize>> {
    let mut text = Vec::with_capacity(frames.len() * 8);
    let mut parts: Vec<(usize, Range<usize>)> = Vec::with_capacity(frames.len());
    let mut last = 0;
    for frame in frames {
        let event = stream.get(frame.start()..frame.end()).unwrap_or_default();
        // An event that is equal to the one before says the same at the same place again.
        let place = if frame.prefix == event.len() { last } else { frame.prefix };
        last = place;
        let Some(value) = value_at(event, place) else { continue };
        parts.push((text.len(), frame.start() + value.start..frame.start() + value.end));
        text.extend_from_slice(event.get(value).unwrap_or_default());
    }
    let mut spans = Vec::new();
    for secret in redactor.find(&text, 0..text.len()) {
        for (offset, part) in &parts {
            let from = secret.start.max(*offset);
            let to = secret.end.min(offset + part.len());
            if from < to {
                spans.push(part.start + from - offset..part.start + to - offset);
            }
        }
    }
    spans
}

/// The JSON string value that a place in an event lies in; from a key, the value that follows.
fn value_at(event: &[u8], place: usize) -> Option<Range<usize>> {
    let start = memchr::memrchr(b'"', event.get(..place)?)? + 1;
    let end = super::strings::end_of_string(event, start);
    match event.get(end + 1..)? {
        [b':', b'"', ..] => Some(end + 3..super::strings::end_of_string(event, end + 3)),
        [b':', b' ', b'"', ..] => Some(end + 4..super::strings::end_of_string(event, end + 4)),
        [b':', ..] => None,
        _ => Some(start..end),
    }
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
