//! Secrets that come in pieces: what stands at one place of each event of a stream is one text, and so are the tokens of
//! one list of log-probabilities.
//!
//! No API's field names are known here, and none has to be. A place is the path to a string, and of the objects on the
//! way each member that counts (`index`, `output_index`, …) or names a kind (`type`). Each string belongs to three texts:
//! - by its path: the tokens of a list, the pieces of one choice;
//! - by its path, and where it stands in the innermost array: the first alternative of each token;
//! - by its own name and the counts: APIs begin a text in an event of another form than the one in which it goes on.

use std::{cmp::Ordering, collections::HashMap, hash::BuildHasherDefault, ops::Range};

use super::{frames::Frame, redact::Redactor, strings::end_of_string};
use crate::surface::scan;

/// Deepest place that is looked at: no API nests as deep.
const DEEPEST: usize = 32;
/// A member whose name ends so, or is so, says which text a string belongs to.
const COUNT: &[u8] = b"index";
const KIND: &[u8] = b"type";

/// Spans of a stream that hold secrets whose pieces came in several events.
pub(super) fn in_stream(stream: &[u8], frames: &[Frame], redactor: &Redactor) -> Vec<Range<usize>> {
    let mut texts = SpreadTexts::new(stream);
    for frame in frames {
        if !texts.changed_string(frame) {
            texts.event(frame.range());
        }
    }
    texts.secrets(redactor)
}

/// Spans of a whole reply that hold secrets whose pieces stand in several values: tokens of log-probabilities, lines of
/// JSON, or elements of one array of replies.
pub(super) fn in_reply(reply: &[u8], redactor: &Redactor) -> Vec<Range<usize>> {
    let text = reply.trim_ascii_start();
    let is_several = text.starts_with(b"[")
        || memchr::memmem::find(text, b"}\n{").is_some()
        || memchr::memmem::find(text, b"}\r\n{").is_some();
    if !is_several && !has_logprobs(text) {
        return Vec::new();
    }
    let mut texts = SpreadTexts::new(reply);
    let mut at = reply.len() - text.len();
    while let Some(rest) = reply.get(at..).filter(|rest| matches!(rest.first(), Some(b'{' | b'['))) {
        let Some((_, after)) = scan::skip(rest) else { break };
        texts.value(at..reply.len() - after.len());
        at = reply.len() - after.trim_ascii_start().len();
    }
    texts.secrets(redactor)
}

/// Whether it may hold log-probabilities. Most replies of one API have the member, and nothing in it.
fn has_logprobs(text: &[u8]) -> bool {
    const NONE: [&[u8]; 2] = [b"logprobs\":null", b"logprobs\": null"];
    memchr::memmem::find_iter(text, b"logprob").any(|at| {
        let found = text.get(at..).unwrap_or_default();
        !NONE.iter().any(|none| found.starts_with(none))
    })
}

/// The texts of a stream, and the strings of its last event.
struct SpreadTexts<'a> {
    stream: &'a [u8],
    texts: Vec<SpreadText>,
    /// The text of each place.
    places: HashMap<u64, usize, BuildHasherDefault<twox_hash::XxHash3_64>>,
    /// Strings of the event that was read last, in order.
    last: Vec<StringPlace>,
    last_event: Range<usize>,
}

/// One text, by its pieces: it is put together when it is looked through, and no two are at a time.
#[derive(Default)]
struct SpreadText {
    pieces: Vec<TextPiece>,
    /// Whether its pieces differ: what each event says again is no text.
    varies: bool,
    /// The text by path that its pieces belong to, if it is one alone: where that has no others, both are equal.
    same_as: Option<usize>,
}

/// A piece of a text.
struct TextPiece {
    /// Where it stands in the stream.
    written: Range<usize>,
    /// The byte that it stands for, where it is a number.
    octet: Option<u8>,
}

/// A string of an event.
#[derive(Clone)]
struct StringPlace {
    /// Its content, without quotes.
    content: Range<usize>,
    texts: [usize; 3],
    is_kind: bool,
}

/// Where a value stands, each way as a hash.
#[derive(Clone, Copy, Default)]
struct JsonPlace {
    path: u64,
    /// The path, and the position in the innermost array.
    position: u64,
    /// The name of the innermost member.
    name: u64,
    /// What counts on the way.
    counts: u64,
    depth: usize,
    is_kind: bool,
}

impl JsonPlace {
    /// As it is for what stands in the object that a text begins with.
    fn inside(mut self, object: &[u8]) -> Self {
        for (key, value) in scan::members(object) {
            let is_number = value.first().is_some_and(u8::is_ascii_digit);
            if key.ends_with(COUNT) && is_number {
                self.counts = mixed(self.counts, value);
            } else if *key != *KIND || value.first() != Some(&b'"') {
                continue;
            }
            self.path = mixed(self.path, value);
            self.position = mixed(self.position, value);
        }
        self.depth += 1;
        self
    }

    fn member(self, key: &[u8]) -> Self {
        let (path, position) = (mixed(self.path, key), mixed(self.position, key));
        Self { path, position, name: mixed(0, key), is_kind: key == KIND, ..self }
    }

    fn element(self, position: usize) -> Self {
        let path = mixed(self.path, b"[]");
        Self { path, position: mixed(path, &position.to_le_bytes()), depth: self.depth + 1, is_kind: false, ..self }
    }

    /// The three texts that a string here belongs to.
    fn texts(&self) -> [u64; 3] {
        [self.path, !self.position, mixed(self.name, &self.counts.to_le_bytes())]
    }
}

fn mixed(hash: u64, bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(hash, bytes)
}

impl<'a> SpreadTexts<'a> {
    fn new(stream: &'a [u8]) -> Self {
        Self { stream, texts: Vec::new(), places: HashMap::default(), last: Vec::new(), last_event: 0..0 }
    }

    /// Reads an event of a stream: JSON in its `data` lines, or what stands in them as text.
    fn event(&mut self, range: Range<usize>) {
        self.last.clear();
        self.last_event = range.clone();
        let mut at = range.start;
        while at < range.end {
            let rest = self.stream.get(at..range.end).unwrap_or_default();
            let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            if rest.starts_with(b"data:") {
                let data = rest.get(5..length).unwrap_or_default();
                let start = at + 5 + (data.len() - data.trim_ascii_start().len());
                self.data(start..start + data.trim_ascii().len());
            }
            at += length;
        }
    }

    fn data(&mut self, range: Range<usize>) {
        match self.stream.get(range.start) {
            Some(b'{' | b'[') => self.value(range),
            Some(_) => self.string(range, JsonPlace::default()),
            None => {}
        }
    }

    /// Reads a JSON value.
    fn value(&mut self, range: Range<usize>) {
        let stream = self.stream;
        if let Some(text) = stream.get(range.clone()) {
            self.walk(text, range.end, JsonPlace::default());
        }
    }

    /// Reads the value that a text begins with, and gives what follows it. The text ends at `end` of the stream.
    fn walk<'t>(&mut self, text: &'t [u8], end: usize, place: JsonPlace) -> Option<&'t [u8]> {
        let text = text.trim_ascii_start();
        let start = end - text.len();
        match text.first()? {
            b'"' => {
                let (value, after) = scan::skip(text)?;
                self.string(start + 1..start + value.len() - 1, place);
                Some(after)
            }
            b'{' if place.depth < DEEPEST => {
                let inside = place.inside(text);
                scan::object(text, |key, value| self.walk(value, end, inside.member(&key)))
            }
            b'[' if place.depth < DEEPEST => {
                let (array, after) = scan::skip(text)?;
                if let Some(octets) = octets(array) {
                    self.octets(&octets, start, place);
                    return Some(after);
                }
                let mut position = 0;
                scan::array(text, |element| {
                    position += 1;
                    self.walk(element, end, place.element(position))
                })
            }
            _ => scan::skip(text).map(|(_, after)| after),
        }
    }

    /// Takes a string into its texts.
    fn string(&mut self, content: Range<usize>, place: JsonPlace) {
        let texts = self.texts_at(place);
        for text in texts {
            self.add(text, content.clone());
        }
        self.last.push(StringPlace { content, texts, is_kind: place.is_kind });
    }

    fn texts_at(&mut self, place: JsonPlace) -> [usize; 3] {
        let mut first = None;
        place.texts().map(|key| {
            let next = self.texts.len();
            let number = *self.places.entry(key).or_insert(next);
            if number == next {
                self.texts.push(SpreadText { same_as: first, ..SpreadText::default() });
            } else if let Some(text) = self.texts.get_mut(number)
                && text.same_as != first
            {
                text.same_as = None;
            }
            first = first.or(Some(number));
            number
        })
    }

    fn add(&mut self, text: usize, written: Range<usize>) {
        let stream = self.stream;
        let content = stream.get(written.clone()).unwrap_or_default();
        let Some(text) = self.texts.get_mut(text) else { return };
        if let Some(first) = text.pieces.first() {
            text.varies |= stream.get(first.written.clone()) != Some(content);
        }
        text.pieces.push(TextPiece { written, octet: None });
    }

    /// Takes the bytes of a text that is written as numbers, as log-probabilities have it.
    fn octets(&mut self, octets: &[WrittenOctet], start: usize, place: JsonPlace) {
        for text in self.texts_at(place) {
            let Some(text) = self.texts.get_mut(text) else { continue };
            text.varies = true;
            text.pieces.extend(octets.iter().map(|octet| TextPiece {
                written: start + octet.written.start..start + octet.written.end,
                octet: Some(octet.value),
            }));
        }
    }

    /// Takes an event that differs from the one before in one string alone, which most do; says whether it is one.
    fn changed_string(&mut self, frame: &Frame) -> bool {
        let (event, before) = (frame.range(), self.last_event.clone());
        let (from, to) = (before.start + frame.shared_start(), before.end.saturating_sub(frame.shared_end()));
        let holds = |place: &StringPlace| place.content.start <= from && to <= place.content.end;
        let Some(number) = self.last.iter().position(holds) else { return false };
        let Some(changed) = self.last.get(number).filter(|place| !place.is_kind).cloned() else { return false };
        let start = event.start + (changed.content.start - before.start);
        let end = event.end - (before.end - changed.content.end);
        let stream = self.stream.get(..event.end).unwrap_or_default();
        if start > end || end_of_string(stream, start) != end {
            return false;
        }
        for text in changed.texts {
            self.add(text, start..end);
        }
        let from_start = |at: usize| event.start + (at - before.start);
        let from_end = |at: usize| event.end - (before.end - at);
        for (other, place) in self.last.iter_mut().enumerate() {
            let Range { start, end } = place.content;
            place.content = match other.cmp(&number) {
                Ordering::Less => from_start(start)..from_start(end),
                Ordering::Equal => from_start(start)..from_end(end),
                Ordering::Greater => from_end(start)..from_end(end),
            };
        }
        self.last_event = event;
        true
    }

    /// Where secrets stand that are spread over several pieces.
    fn secrets(&self, redactor: &Redactor) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let pieces = |number: usize| self.texts.get(number).map(|text| text.pieces.len());
        let is_new = |text: &&SpreadText| text.same_as.and_then(pieces) != Some(text.pieces.len());
        for text in self.texts.iter().filter(|text| text.varies && text.pieces.len() > 1).filter(is_new) {
            text.secrets(self.stream, redactor, &mut spans);
        }
        spans
    }
}

impl SpreadText {
    /// Adds where its secrets stand in the stream.
    fn secrets(&self, stream: &[u8], redactor: &Redactor, spans: &mut Vec<Range<usize>>) {
        let mut text = Vec::new();
        // Where each piece ends in the text.
        let mut ends = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            match piece.octet {
                Some(octet) => text.push(octet),
                None => text.extend_from_slice(stream.get(piece.written.clone()).unwrap_or_default()),
            }
            ends.push(text.len());
        }
        for secret in redactor.find(&text, 0..text.len()) {
            let first = ends.partition_point(|end| *end <= secret.start);
            let mut start = first.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
            for (piece, end) in self.pieces.iter().zip(&ends).skip(first) {
                if start >= secret.end {
                    break;
                }
                let (from, to) = (secret.start.max(start) - start, secret.end.min(*end) - start);
                let at = piece.written.start;
                spans.push(if piece.octet.is_some() { piece.written.clone() } else { at + from..at + to });
                start = *end;
            }
        }
    }
}

/// A byte that is written as a number.
struct WrittenOctet {
    value: u8,
    /// Where its digits stand in the array.
    written: Range<usize>,
}

/// The bytes of an array of nothing but numbers below 256; `None` for every other.
fn octets(array: &[u8]) -> Option<Vec<WrittenOctet>> {
    let inner = array.strip_prefix(b"[")?.strip_suffix(b"]")?;
    inner.trim_ascii_start().first().filter(|byte| byte.is_ascii_digit())?;
    let mut octets = Vec::new();
    let mut at = 1;
    for number in inner.split(|byte| *byte == b',') {
        let digits = number.trim_ascii();
        let value = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let start = at + (number.len() - number.trim_ascii_start().len());
        octets.push(WrittenOctet { value, written: start..start + digits.len() });
        at += number.len() + 1;
    }
    Some(octets)
}
