//! Byte-exact edits of a JSON text: spans are found, replaced in a copy, and nothing else moves.
//!
//! A body is never parsed into a value and written out again: that would change number texts, escapes, duplicate
//! keys and lone surrogates. [`Node`] walks level by level over raw slices of the source; [`Splices`] replaces spans.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use bytes::Bytes;
use serde::de::Deserialize;
use serde_json::value::RawValue;

pub use super::escape::decode_string;
use super::{scan, words::Origin};

/// A JSON value inside a source text, by its span.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    raw: &'a str,
    start: usize,
}

/// An array with its elements, in order.
#[derive(Debug, Clone)]
pub struct Listed<'a> {
    /// The array.
    pub array: Node<'a>,
    /// Its elements.
    pub elements: Vec<Node<'a>>,
}

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// The decoded key.
    pub key: Cow<'a, str>,
    /// The value.
    pub value: Node<'a>,
}

impl<'a> Node<'a> {
    /// The value that `source` holds.
    ///
    /// # Errors
    /// What is wrong with the JSON, and where.
    pub fn parse(source: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(source).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))?;
        Self::parse_at(text, 0..text.len())
    }

    /// The value that a span of `source` holds.
    ///
    /// # Errors
    /// What is wrong with the JSON, and where.
    pub fn parse_at(source: &'a str, span: Range<usize>) -> Result<Self, String> {
        let text = source.get(span.clone()).ok_or("a span outside the text")?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self { raw: raw.get(), start: span.start + offset(text, raw.get()) })
    }

    /// The value of a source that was [parsed](Self::parse) before, so that it need not be checked again. One that was not is
    /// no reason to panic; what is found in it, if anything, means nothing.
    pub fn parsed_before(source: &'a str) -> Self {
        let raw = source.trim_ascii();
        Self { raw, start: offset(source, raw) }
    }

    /// Where the value stands in the source.
    pub fn span(&self) -> Range<usize> {
        self.start..self.start + self.raw.len()
    }

    /// The value as it is written.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The members, in order, duplicates included; empty when it is no object. The text was checked where the root
    /// was parsed, so that each level is only looked at.
    pub fn members(&self) -> Vec<Member<'a>> {
        let members = scan::members(self.raw.as_bytes());
        let member = |(key, value)| Some(Member { key: scan::text_of_key(key)?, value: self.inner(value)? });
        members.filter_map(member).collect()
    }

    /// The members, as [`members`](Self::members) gives them. Each array of that name goes to `visit` with all that follows
    /// it, so that a long one is looked at once; `visit` gives what follows the array.
    pub fn members_visiting(&self, list: &str, mut visit: impl FnMut(&'a [u8]) -> Option<&'a [u8]>) -> Vec<Member<'a>> {
        let mut members = Vec::new();
        scan::object(self.raw.as_bytes(), |key, rest| {
            let is_list = *key == *list.as_bytes() && rest.starts_with(b"[");
            let after = if is_list { visit(rest) } else { scan::skip(rest).map(|(_, after)| after) }?;
            let value = self.inner(rest.get(..rest.len() - after.len())?);
            members.extend(scan::text_of_key(key).zip(value).map(|(key, value)| Member { key, value }));
            Some(after)
        });
        members
    }

    /// The array within this value that a text begins with, with its elements, and what follows it.
    pub fn listed_at(&self, text: &'a [u8]) -> Option<(Listed<'a>, &'a [u8])> {
        let mut elements = Vec::new();
        let after = scan::array(text, |element| {
            let (value, after) = scan::skip(element)?;
            elements.extend(self.inner(value));
            Some(after)
        })?;
        let array = self.inner(text.get(..text.len() - after.len())?)?;
        Some((Listed { array, elements }, after))
    }

    /// The array with its elements; it has none when it is no array.
    pub fn listed(&self) -> Listed<'a> {
        Listed { array: *self, elements: self.elements() }
    }

    /// The elements, in order; empty when it is no array.
    pub fn elements(&self) -> Vec<Node<'a>> {
        scan::elements(self.raw.as_bytes()).filter_map(|value| self.inner(value)).collect()
    }

    /// The last member of that name, as readers of JSON commonly take it.
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        self.members().into_iter().rev().find(|member| member.key == key).map(|member| member.value)
    }

    /// The decoded string, if it is one. A lone surrogate reads as U+FFFD.
    pub fn string(&self) -> Option<Cow<'a, str>> {
        decode_string(self.raw)
    }

    /// The value as `T`, if it is one.
    pub fn value<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.raw).ok()
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.raw == "null"
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.raw.starts_with('{')
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        self.raw.starts_with('[')
    }

    /// A value within this one.
    fn inner(&self, part: &'a [u8]) -> Option<Node<'a>> {
        let at = (part.as_ptr() as usize).checked_sub(self.raw.as_ptr() as usize)?;
        Some(Node { raw: self.raw.get(at..at + part.len())?, start: self.start + at })
    }
}

/// Finds a member among those of one object; the last of equal keys.
pub fn member<'a>(members: &[Member<'a>], key: &str) -> Option<Node<'a>> {
    members.iter().rev().find(|member| member.key == key).map(|member| member.value)
}

/// Encodes text as a JSON string literal, quotes included.
pub fn encode_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Replacements of spans of one source, in any order.
#[derive(Debug, Default, Clone)]
pub struct Splices {
    all: Vec<(Range<usize>, String)>,
    /// The first replacement of each span, of as many as were [looked up](Self::place_of) so far.
    places: HashMap<Range<usize>, usize>,
    looked_up: usize,
}

impl Splices {
    /// Replaces a span.
    pub fn replace(&mut self, span: Range<usize>, with: impl Into<String>) {
        self.all.push((span, with.into()));
    }

    /// Takes over the replacements of another set.
    pub fn append(&mut self, mut other: Splices) {
        self.all.append(&mut other.all);
    }

    /// Whether nothing is to be replaced.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// For each of these spans, whether anything within it is to be replaced.
    pub fn touch(&self, spans: &[Range<usize>]) -> Vec<bool> {
        let mut own: Vec<_> = self.all.iter().map(|(own, _)| (own.start, own.end)).collect();
        own.sort_unstable();
        let first_in = |span: &Range<usize>| own.get(own.partition_point(|(start, _)| *start < span.start));
        spans.iter().map(|span| first_in(span).is_some_and(|(_, end)| *end <= span.end)).collect()
    }

    /// The number of the first replacement of just this span.
    fn place_of(&mut self, span: &Range<usize>) -> Option<usize> {
        for (number, (own, _)) in self.all.iter().enumerate().skip(self.looked_up) {
            self.places.entry(own.clone()).or_insert(number);
        }
        self.looked_up = self.all.len();
        self.places.get(span).copied()
    }

    /// Puts a member into an object, before its first one. What is no object, like a `null` that stands for an empty one,
    /// becomes one.
    pub fn insert_member(&mut self, object: &Node<'_>, key: &str, value: &str) {
        let member = format!("{}:{value}", encode_string(key));
        let (span, is_object) = (object.span(), object.is_object());
        let place = if is_object { span.start + 1..span.start + 1 } else { span };
        let earlier = self.place_of(&place).and_then(|number| self.all.get_mut(number));
        match earlier.filter(|(_, text)| is_object || text.starts_with('{')) {
            Some((_, earlier)) => earlier.insert_str(usize::from(!is_object), &format!("{member},")),
            None if !is_object => self.replace(place, format!("{{{member}}}")),
            None if object.members().is_empty() => self.replace(place, member),
            None => self.replace(place, member + ","),
        }
    }

    /// The source with everything replaced.
    pub fn apply(self, source: &[u8]) -> Bytes {
        let length = source.len();
        Bytes::from(self.apply_within(source, 0..length))
    }

    /// A part of the source with everything replaced that lies in it. What lies in a replaced span goes with it.
    fn apply_within(mut self, source: &[u8], part: Range<usize>) -> Vec<u8> {
        self.all.sort_by_key(|(span, _)| (span.start, span.end));
        let mut out = Vec::with_capacity(part.len() + 64);
        let mut at = part.start;
        for (span, with) in &self.all {
            if span.start < at {
                continue;
            }
            out.extend_from_slice(source.get(at..span.start).unwrap_or_default());
            out.extend_from_slice(with.as_bytes());
            at = span.end.max(at);
        }
        out.extend_from_slice(source.get(at..part.end).unwrap_or_default());
        out
    }

    /// Writes an edited list into an array. `after` says for each element of the new list where it came from;
    /// `edit` collects the edits inside a kept element; `make` renders a new one. Elements that keep their place
    /// are edited in place; only the run of elements between the first and the last that moved is rewritten.
    pub fn write_array(
        &mut self,
        source: &str,
        Listed { array, elements }: &Listed<'_>,
        after: &[Origin],
        mut edit: impl FnMut(usize, usize, &mut Splices),
        mut make: impl FnMut(usize) -> String,
    ) {
        let kept_front = after.iter().zip(0..elements.len()).take_while(|(origin, i)| **origin == Some(*i)).count();
        let room = elements.len().min(after.len()) - kept_front;
        let pairs = after.iter().rev().zip((0..elements.len()).rev());
        let kept_back = pairs.take(room).take_while(|(origin, i)| **origin == Some(*i)).count();
        let moved = kept_front..after.len() - kept_back;
        for (position, origin) in after.iter().enumerate() {
            if let (false, Some(origin)) = (moved.contains(&position), origin) {
                edit(position, *origin, self);
            }
        }
        if moved.is_empty() && kept_front + kept_back == elements.len() {
            return;
        }
        let mut rendered = Vec::new();
        for (position, origin) in after.iter().enumerate().take(moved.end).skip(moved.start) {
            rendered.push(match origin.and_then(|origin| Some((origin, elements.get(origin)?))) {
                Some((origin, element)) => {
                    let mut inner = Splices::default();
                    edit(position, origin, &mut inner);
                    String::from_utf8_lossy(&inner.apply_within(source.as_bytes(), element.span())).into_owned()
                }
                None => make(position),
            });
        }
        self.replace_run(source, array, elements, kept_front..elements.len() - kept_back, &rendered);
    }

    /// Replaces a run of elements of an array by others.
    fn replace_run(
        &mut self,
        source: &str,
        array: &Node<'_>,
        elements: &[Node<'_>],
        run: Range<usize>,
        with: &[String],
    ) {
        let end_of = |i: usize| elements.get(i).map_or(array.span().start + 1, |e| e.span().end);
        let separator = match (elements.first(), elements.get(1)) {
            (Some(a), Some(b)) => source.get(a.span().end..b.span().start).unwrap_or(","),
            _ => ",",
        };
        let before = run.start.checked_sub(1).map(end_of);
        let after = elements.get(run.end).map(|e| e.span().start);
        let mut text = with.join(separator);
        if before.is_some() && !with.is_empty() {
            text.insert_str(0, separator);
        }
        if after.is_some() && (before.is_some() || !with.is_empty()) {
            text.push_str(separator);
        }
        let start = before.unwrap_or_else(|| elements.first().map_or(array.span().start + 1, |e| e.span().start));
        let end = after.unwrap_or_else(|| elements.last().map_or(start, |e| e.span().end));
        self.replace(start..end, text);
    }
}

/// Where `inner`, a slice of `outer`, starts in it.
fn offset(outer: &str, inner: &str) -> usize {
    (inner.as_ptr() as usize).saturating_sub(outer.as_ptr() as usize)
}

#[cfg(test)]
mod tests;
