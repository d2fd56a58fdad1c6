//! Answers of tool servers whose stream ended before they came: the client reads on by a `GET` with the id of the last event that
//! it got (MCP 2025-11-25, *Transports*, "Resumability and Redelivery"). That is another attempt of the step, so the answer is
//! recorded there, and edited as any other.

use std::collections::VecDeque;

use bytes::Bytes;
use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};

use super::arrival::ModelCall;
use crate::surface;

/// The event after which a client reads on.
pub(super) static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The session that a message belongs to.
static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Broken streams that a run remembers.
const STREAMS_MAX: usize = 64;
/// Ids of a broken stream's last events that are remembered: a client may have lost some of them.
const EVENTS_MAX: usize = 256;
/// The longest message whose answer is looked for on another stream, in bytes.
const MESSAGE_MAX: usize = 1 << 20;

/// A message to a tool server, as far as it is needed to read its answer on another stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PostedMessage {
    path: String,
    session: Option<HeaderValue>,
    pub(super) body: Bytes,
}

/// The broken streams of a run, oldest first: the ids of each one's last events, and the message that it was to answer.
#[derive(Debug, Default)]
pub(super) struct BrokenStreams(VecDeque<BrokenStream>);

#[derive(Debug)]
struct BrokenStream {
    events: Vec<Vec<u8>>,
    message: PostedMessage,
}

impl PostedMessage {
    /// The message that a call is, where a tool server is to answer it.
    pub(super) fn from_call(call: &ModelCall) -> Option<Self> {
        let is_of_server = call.kind.surface().is_some_and(|surface| surface::is_of_server(surface.name()));
        (is_of_server && call.body.len() <= MESSAGE_MAX).then(|| Self {
            path: call.parts.uri.path().to_owned(),
            session: call.parts.headers.get(&SESSION).cloned(),
            body: call.unpacked.plain.clone(),
        })
    }

    fn is_of(&self, path: &str, headers: &HeaderMap) -> bool {
        self.path == path && self.session.as_ref() == headers.get(&SESSION)
    }
}

impl BrokenStreams {
    /// Remembers a stream that ended without its answer, where its events have ids.
    pub(super) fn add(&mut self, stream: &[u8], message: PostedMessage) {
        let events = event_ids(stream);
        if events.is_empty() {
            return;
        }
        if self.0.len() >= STREAMS_MAX {
            self.0.pop_front();
        }
        let events = events.iter().rev().take(EVENTS_MAX).map(|id| id.to_vec()).collect();
        self.0.push_back(BrokenStream { events, message });
    }

    /// The message whose answer a request reads on for.
    pub(super) fn take(&mut self, path: &str, headers: &HeaderMap) -> Option<PostedMessage> {
        let last = headers.get(&LAST_EVENT_ID)?.as_bytes();
        let holds = |stream: &BrokenStream| {
            stream.message.is_of(path, headers) && stream.events.iter().any(|id| id.as_slice() == last)
        };
        let at = self.0.iter().rposition(holds)?;
        self.0.remove(at).map(|stream| stream.message)
    }
}

/// Whether the stream can be read on elsewhere: its events have ids.
pub(super) fn has_event_ids(stream: &[u8]) -> bool {
    !event_ids(stream).is_empty()
}

/// The ids of a stream's events, in order.
fn event_ids(stream: &[u8]) -> Vec<&[u8]> {
    let lines = stream.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.filter_map(|line| Some(line.strip_prefix(b"id:")?.trim_ascii())).filter(|id| !id.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_stream_is_found_by_each_of_its_events_in_its_session() {
        let message = |body: &'static str| PostedMessage {
            path: "/mcp/calc".to_owned(),
            session: Some(HeaderValue::from_static("s1")),
            body: Bytes::from_static(body.as_bytes()),
        };
        let mut streams = BrokenStreams::default();
        streams.add(b"id: 1_a\ndata: \n\nid:2_a\nevent: message\ndata: {}\n\n", message("one"));
        streams.add(b"id: 1_b\ndata:\n\n", message("two"));
        streams.add(b"data: {}\n\n", message("no ids"));
        let found = |streams: &mut BrokenStreams, path: &str, session: &'static str, id: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(&SESSION, HeaderValue::from_static(session));
            headers.insert(&LAST_EVENT_ID, HeaderValue::from_static(id));
            streams.take(path, &headers).map(|message| message.body)
        };
        assert_eq!(found(&mut streams, "/mcp/other", "s1", "1_a"), None);
        assert_eq!(found(&mut streams, "/mcp/calc", "s2", "1_a"), None);
        assert_eq!(found(&mut streams, "/mcp/calc", "s1", "3_a"), None);
        assert_eq!(found(&mut streams, "/mcp/calc", "s1", "1_a").as_deref(), Some(&b"one"[..]));
        assert_eq!(found(&mut streams, "/mcp/calc", "s1", "2_a"), None, "once");
        assert_eq!(found(&mut streams, "/mcp/calc", "s1", "1_b").as_deref(), Some(&b"two"[..]));
        (0..=STREAMS_MAX).for_each(|at| streams.add(format!("id: {at}\n").as_bytes(), message("many")));
        assert_eq!((found(&mut streams, "/mcp/calc", "s1", "0"), streams.0.len()), (None, STREAMS_MAX));
    }
}
