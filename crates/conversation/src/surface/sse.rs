//! Event streams (<https://html.spec.whatwg.org/multipage/server-sent-events.html>): bytes ↔ events.
//!
//! Nothing is normalised: an [`Event`] is a set of spans into the bytes it was found in. Line ends may be LF, CR or
//! CRLF, chunks may split anywhere, comments and unknown fields are events' bytes like any other.

mod messages;

use std::{borrow::Cow, ops::Range};

pub use messages::{EventReader, event};

/// Most end markers that one stream is watched for.
pub const MARKERS_MAX: usize = 4;

/// Longest line that is looked at; a stream with a longer one is passed on unread.
pub const LINE_MAX: usize = 4 << 20;

/// One event of a stream, by its spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// All bytes of the event, the blank line that ends it included.
    pub span: Range<usize>,
    /// The values of its `data` lines.
    pub data: Vec<Range<usize>>,
}

impl Event {
    /// Whether the blank line that ends it is there, of the bytes that it was found in.
    pub fn is_whole(&self, body: &[u8]) -> bool {
        let bytes = body.get(self.span.clone()).unwrap_or_default();
        [b"\n\n".as_slice(), b"\r\n\r\n", b"\r\r"].iter().any(|end| bytes.ends_with(end))
    }
}

/// All events of a complete stream. A last event without its blank line counts.
pub fn events(body: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let start = if body.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut event = Event { span: start..start, data: Vec::new() };
    let mut at = start;
    while at < body.len() {
        let rest = body.get(at..).unwrap_or_default();
        let length = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let end = match rest.get(length..) {
            Some([b'\r', b'\n', ..]) => at + length + 2,
            Some([_, ..]) => at + length + 1,
            _ => at + length,
        };
        if let Some(value) = rest.get(..length).and_then(|line| line.strip_prefix(b"data:")) {
            let space = usize::from(value.first() == Some(&b' '));
            event.data.push(at + length - value.len() + space..at + length);
        }
        event.span.end = end;
        at = end;
        if length == 0 {
            events.push(std::mem::replace(&mut event, Event { span: at..at, data: Vec::new() }));
        }
    }
    if !event.span.is_empty() {
        events.push(event);
    }
    events
}

/// The lines of an event that are neither a comment nor a field of the standard.
pub(super) fn strange_lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];
    let is_field = |line: &[u8]| {
        let name = line.get(..memchr::memchr(b':', line).unwrap_or(line.len())).unwrap_or_default();
        name.is_empty() || FIELDS.contains(&name)
    };
    event.split(|byte| matches!(byte, b'\r' | b'\n')).filter(move |line| !is_field(line))
}

/// The stream with the data of each event on one line: where an event has several `data` lines, what parts them is blanks, which
/// JSON reads as the line breaks that they stand for. No byte moves, so that spans into it are spans into the stream.
pub fn single_lines(source: &str) -> Cow<'_, str> {
    if !has_joined_lines(source.as_bytes()) {
        return Cow::Borrowed(source);
    }
    let parted = events(source.as_bytes()).into_iter().filter(|event| event.data.len() > 1);
    let gaps = parted.flat_map(|event| {
        let ends: Vec<_> =
            event.data.windows(2).filter_map(|pair| Some(pair.first()?.end..pair.get(1)?.start)).collect();
        ends
    });
    let mut joined = Cow::Borrowed(source);
    for gap in gaps {
        let blanks = " ".repeat(gap.len());
        joined.to_mut().replace_range(gap, &blanks);
    }
    joined
}

/// Whether an event may have several `data` lines: one look at the line before each. Nearly no stream has such an event.
fn has_joined_lines(body: &[u8]) -> bool {
    if memchr::memchr(b'\r', body).is_some() {
        return true;
    }
    memchr::memmem::find_iter(body, b"\ndata").any(|at| {
        let before = body.get(..at).unwrap_or_default();
        let line = before.get(memchr::memrchr(b'\n', before).map_or(0, |end| end + 1)..);
        line.is_some_and(|line| !line.is_empty() && !line.starts_with(b"event:"))
    })
}

/// Whether the data of an event is the end marker of chat completions, in any of the dresses that servers give it: `[DONE]`,
/// `"[DONE]"`, `[done]`, `DONE`.
pub(super) fn is_done(data: &[u8]) -> bool {
    let word = data.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(data);
    word.eq_ignore_ascii_case(b"[DONE]") || word.eq_ignore_ascii_case(b"DONE")
}

/// The events that carry a JSON object, each with the span of the object. Comments, empty data, `[DONE]` in any dress, and
/// words that are no object are nothing that an API says. The source has its data [on single lines](single_lines).
pub fn objects(source: &str) -> impl Iterator<Item = (Event, Range<usize>)> + '_ {
    events(source.as_bytes()).into_iter().filter_map(move |event| {
        let [span] = event.data.as_slice() else { return None };
        let text = source.get(span.clone())?;
        let blanks = text.len() - text.trim_ascii_start().len();
        let object = span.start + blanks..span.start + blanks + text.trim_ascii().len();
        text.trim_ascii().starts_with('{').then_some((event, object))
    })
}

/// Whether a body is an event stream by its first bytes: `None` where they do not tell, or not yet. The field names are those of
/// the standard.
pub fn is_stream(body: &[u8]) -> Option<bool> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    let fields: [&[u8]; 4] = [b"data:", b"event:", b"id:", b"retry:"];
    match body.first()? {
        b'{' | b'[' => Some(false),
        b':' => Some(true),
        _ if fields.iter().any(|field| body.starts_with(field)) => Some(true),
        _ => None,
    }
}

/// What [`Splitter::push`] saw in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkFindings {
    /// Bytes of the chunk (from its start) that may be passed on at once; the rest belongs to the end marker's
    /// event, or to a line that may still become it.
    pub free: usize,
    /// Bytes kept back from earlier chunks that may be passed on now, because they were not the end marker.
    pub release_held: bool,
    /// Whether the end marker's event is complete.
    pub ended: bool,
    /// Events that ended in this chunk.
    pub events: u32,
}

/// Watches a stream chunk by chunk for event ends and for the line that announces its end, holding back no byte of
/// any other event.
#[derive(Debug)]
pub struct Splitter {
    markers: &'static [&'static [u8]],
    /// How much of each marker the current line has matched; `None` once it cannot match.
    matched: [Option<usize>; MARKERS_MAX],
    /// Whether the line can still become a marker.
    open: bool,
    /// Whether the current line is empty so far.
    line_empty: bool,
    /// Whether the last byte was CR, so that a following LF belongs to it.
    after_cr: bool,
    /// Whether the marker's line was seen.
    marked: bool,
    /// Whether bytes of an earlier chunk are held.
    holding: bool,
}

impl Splitter {
    /// A watcher for streams that end with one of these lines (given with one space after the colon; none is accepted
    /// too). Those after the first [`MARKERS_MAX`] are not watched for.
    pub fn new(markers: &'static [&'static [u8]]) -> Self {
        let matched = [Some(0); MARKERS_MAX];
        Self { markers, matched, open: true, line_empty: true, after_cr: false, marked: false, holding: false }
    }

    /// Looks at the next chunk.
    pub fn push(&mut self, chunk: &[u8]) -> ChunkFindings {
        let mut seen = ChunkFindings::default();
        // Start of the bytes of this chunk that must be held; `None` while the current line cannot be the marker.
        let mut hold_from = if self.holding { Some(0) } else { None };
        let mut at = 0;
        while at < chunk.len() {
            let rest = chunk.get(at..).unwrap_or_default();
            if !self.open && !self.marked {
                // Only a line end matters now.
                let Some(skip) = memchr::memchr2(b'\r', b'\n', rest) else { break };
                at += skip;
            }
            let Some(byte) = chunk.get(at).copied() else { break };
            at += 1;
            if byte == b'\n' && std::mem::take(&mut self.after_cr) {
                continue;
            }
            self.after_cr = byte == b'\r';
            if matches!(byte, b'\r' | b'\n') {
                self.end_line(&mut seen);
                if seen.ended {
                    break;
                }
                if !self.marked && hold_from.take().is_some() {
                    seen.release_held = true;
                }
                continue;
            }
            self.line_empty = false;
            if self.marked {
                continue;
            }
            if self.advance(byte) {
                hold_from.get_or_insert(at - 1);
            } else if hold_from.take().is_some() {
                seen.release_held = true;
            }
        }
        seen.free = hold_from.unwrap_or(chunk.len());
        self.holding = hold_from.is_some() && !seen.ended;
        seen
    }

    /// Matches one byte of the markers; a missing space after the colon is forgiven.
    fn advance(&mut self, byte: u8) -> bool {
        self.open = false;
        for (marker, matched) in self.markers.iter().zip(&mut self.matched) {
            let Some(at) = *matched else { continue };
            *matched = match marker.get(at) {
                Some(expected) if *expected == byte => Some(at + 1),
                Some(b' ') if marker.get(at + 1) == Some(&byte) => Some(at + 2),
                _ => None,
            };
            self.open |= matched.is_some();
        }
        self.open
    }

    fn end_line(&mut self, seen: &mut ChunkFindings) {
        if self.line_empty {
            seen.events += 1;
            if self.marked {
                seen.ended = true;
            }
        } else if self.open {
            let mut lines = self.markers.iter().zip(&self.matched);
            self.marked |= lines.any(|(marker, matched)| *matched == Some(marker.len()) && !marker.is_empty());
        }
        self.line_empty = true;
        self.open = true;
        self.matched = [Some(0); MARKERS_MAX];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn datas(body: &[u8]) -> Vec<Vec<String>> {
        let text = |span: &Range<usize>| String::from_utf8_lossy(&body[span.clone()]).into_owned();
        events(body).iter().map(|event| event.data.iter().map(text).collect()).collect()
    }

    #[test]
    fn odd_but_legal_streams() {
        let check = |body: &str, expected: &[&[&str]]| {
            let expected: Vec<Vec<String>> =
                expected.iter().map(|d| d.iter().map(ToString::to_string).collect()).collect();
            assert_eq!(datas(body.as_bytes()), expected, "{body:?}");
        };
        check("data: a\n\ndata: b\n\n", &[&["a"], &["b"]]);
        check("data:a\r\n\r\ndata: b\r\rdata:  c\n\n", &[&["a"], &["b"], &[" c"]]);
        check(": ping\n\ndata: a\ndata: b\n\n", &[&[], &["a", "b"]]);
        check("\u{feff}data: a\n\n", &[&["a"]]);
        check("event: x\nid: 1\ndata: a", &[&["a"]]);
        check("", &[]);
        check("dataless\n\ndata\n\n", &[&[], &[]]);
    }

    /// Feeds chunks as the proxy does; returns (passed before the end, held at the end, whether it ended).
    fn feed(chunks: &[&[u8]]) -> (Vec<u8>, Vec<u8>, bool, u32) {
        let mut splitter = Splitter::new(&[b"data: [DONE]"]);
        let (mut passed, mut held, mut ended, mut count) = (Vec::new(), Vec::new(), false, 0);
        for chunk in chunks {
            if ended {
                held.extend_from_slice(chunk);
                continue;
            }
            let seen = splitter.push(chunk);
            count += seen.events;
            if seen.release_held {
                passed.append(&mut held);
            }
            passed.extend_from_slice(&chunk[..seen.free]);
            held.extend_from_slice(&chunk[seen.free..]);
            ended = seen.ended;
        }
        (passed, held, ended, count)
    }

    #[test]
    fn only_the_end_marker_is_held() {
        let (passed, held, ended, count) = feed(&[b"data: {\"a\":1}\n\ndata: [DONE]\n\n"]);
        assert_eq!(
            (passed.as_slice(), held.as_slice(), ended, count),
            (&b"data: {\"a\":1}\n\n"[..], &b"data: [DONE]\n\n"[..], true, 2)
        );
        let (passed, held, ended, _) = feed(&[b"data: [DON", b"T]\n\n"]);
        assert_eq!((passed.as_slice(), held.as_slice(), ended), (&b"data: [DONT]\n\n"[..], &b""[..], false));
        let (_, held, ended, _) = feed(&[b"data:[DONE]\r\n\r\n"]);
        assert_eq!((held.as_slice(), ended), (&b"data:[DONE]\r\n\r\n"[..], true));
    }

    proptest! {
        #[test]
        fn any_chunking_holds_the_same_bytes(
            lines in prop::collection::vec(prop_oneof![
                Just("data: {\"x\":\"[DONE]\"}"), Just("data: [DON"), Just(""), Just(""), Just(": c"), Just("data: [DONE] ")
            ], 0..8),
            ends in prop::collection::vec(prop_oneof![Just("\n"), Just("\r\n")], 8),
            cuts in prop::collection::vec(0usize..200, 0..10),
        ) {
            let mut body: String = lines.iter().zip(&ends).map(|(l, e)| format!("{l}{e}")).collect();
            body.push_str("\n\ndata: [DONE]\n\n");
            let bytes = body.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let (passed, held, ended, count) = feed(&chunks);
            prop_assert!(ended);
            prop_assert_eq!(&held[..], b"data: [DONE]\n\n");
            prop_assert_eq!(count as usize, events(bytes).len());
            prop_assert_eq!([passed, held].concat(), bytes);
        }
    }
}
