//! The chunks of a body: kept, joined, and made of a body of ours.

use std::collections::VecDeque;

use bytes::Bytes;

use super::upstream::ReceivedBody;
use crate::surface::sse;

/// One of many chunks below this is copied: as it came, it keeps a whole read buffer alive, and there are hundreds.
const SMALL: usize = 4 << 10;

/// A chunk as it may be kept for a while. `alone`: it may be all that comes.
pub(super) fn owned_chunk(chunk: &Bytes, alone: bool) -> Bytes {
    if !alone && chunk.len() < SMALL { Bytes::copy_from_slice(chunk) } else { chunk.clone() }
}

/// The chunks in one piece.
pub(super) fn joined(mut chunks: VecDeque<Bytes>) -> Bytes {
    match chunks.len() {
        1 => chunks.pop_front().unwrap_or_default(),
        _ => chunks.into_iter().flatten().collect(),
    }
}

/// A body of ours: event streams go out frame by frame, as they came.
pub(super) fn composed(body: Bytes, streamed: bool) -> ReceivedBody {
    if !streamed {
        return ReceivedBody::Made(VecDeque::from([body]));
    }
    let events = sse::events(&body);
    // What stands before the first event, as a byte order mark does, goes out with it.
    let starts = std::iter::once(0).chain(events.iter().skip(1).map(|event| event.span.start));
    ReceivedBody::Made(starts.zip(&events).map(|(start, event)| body.slice(start..event.span.end)).collect())
}
