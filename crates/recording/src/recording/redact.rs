//! Keeps secrets off the disk: an allow-list of headers, masked query values, masked keys in text and bodies.
//!
//! Masking keeps lengths, so that offsets and framing stay true. It touches the record alone, never what passes.

use std::{
    borrow::Cow,
    fs, io,
    ops::Range,
    path::Path,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use regex::bytes::Regex;
use serde_json::Value;

use super::{
    RecordingError,
    client_credentials::ClientCredentials,
    credentials::{is_credential, is_long_key, is_secret_query, is_stored},
    escaped::{self, Escapes},
    record::Headers,
    run_file::RunFile,
    shapes,
    values::Values,
};
use crate::trajectory::{AgentName, Attribution};

/// No key is shorter, in bytes.
const SHORTEST: usize = 8;
/// Texts that are remembered to hold no secret.
const CLEAN: usize = 64;
/// How far a key can reach across the border of a window: a long token, and the word before it.
const REACH: usize = 4096;
const WORD: usize = 64;
/// Largest compiled pattern of a user's.
const PATTERN_MAX: usize = 1 << 20;

/// The first span of a text that looks like a key, by the shapes that recordings mask.
pub fn first_key(text: &str) -> Option<Range<usize>> {
    static SHAPES_ALONE: LazyLock<Redactor> = LazyLock::new(Redactor::default);
    SHAPES_ALONE.find(text.as_bytes(), 0..text.len()).into_iter().next()
}

/// What is masked beside everything that looks like a key, and what is not.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// Values that are masked wherever they occur (those of 4 bytes and more).
    pub values: Vec<String>,
    /// Regular expressions of what is masked.
    pub patterns: Vec<String>,
    /// Regular expressions of what is never masked, though it looks like a key: each must match it whole.
    pub keep: Vec<String>,
    /// Whether what clients prove themselves with is no secret, because it names runs or agents.
    pub keys_are_names: bool,
}

/// Finds and masks secrets. Clones share what they have heard.
#[derive(Debug, Clone, Default)]
pub struct Redactor(pub(super) Arc<RedactorParts>);

#[derive(Debug)]
pub(super) struct RedactorParts {
    pub(super) declared: Option<Values>,
    pub(super) patterns: Option<Regex>,
    pub(super) keep: Option<Regex>,
    /// What clients have proved themselves with: the same for every redactor that is made of one, and of the process.
    pub(super) client_credentials: Option<Arc<ClientCredentials>>,
    /// Marks of short texts that hold no secret: paths, headers and evidence come again and again.
    pub(super) clean: [AtomicU64; CLEAN],
}

impl Default for RedactorParts {
    fn default() -> Self {
        Self {
            declared: None,
            patterns: None,
            keep: None,
            client_credentials: Some(Arc::default()),
            clean: [const { AtomicU64::new(0) }; CLEAN],
        }
    }
}

impl Redactor {
    /// One that masks what looks like a key, and these.
    ///
    /// # Errors
    /// [`RecordingError::Secrets`] when a pattern cannot be used, or there are too many values.
    pub fn new(secrets: &Secrets) -> Result<Self, RecordingError> {
        let refuse = |why: String| RecordingError::Secrets { why };
        let joined = |name: &str, patterns: &[String], whole: bool| {
            for pattern in patterns {
                let alone = regex::bytes::Regex::new(pattern);
                let alone = alone.map_err(|error| refuse(format!("[secrets] {name}: `{pattern}`: {error}")))?;
                if alone.is_match(b"") {
                    return Err(refuse(format!(
                        "[secrets] {name}: `{pattern}` matches nothing at all, and so everywhere"
                    )));
                }
            }
            let any = patterns.iter().map(|pattern| format!("(?:{pattern})")).collect::<Vec<_>>().join("|");
            let any = if whole { format!(r"\A(?:{any})\z") } else { any };
            let built = regex::bytes::RegexBuilder::new(&any).size_limit(PATTERN_MAX).build();
            let built = built.map_err(|error| refuse(format!("[secrets] {name}: {error}")))?;
            Ok(Some(built).filter(|_| !patterns.is_empty()))
        };
        Ok(Self(Arc::new(RedactorParts {
            declared: Values::new(secrets.values.iter().map(String::as_str).filter(|value| value.len() >= 4))
                .map_err(|error| refuse(error.to_string()))?,
            patterns: joined("patterns", &secrets.patterns, false)?,
            keep: joined("keep", &secrets.keep, true)?,
            client_credentials: (!secrets.keys_are_names).then(Arc::default),
            ..RedactorParts::default()
        })))
    }

    /// Takes note of what a client proves itself with, so that it is masked wherever it stands from now on.
    pub(super) fn add_credentials(&self, path: &str, headers: &[(&str, &[u8])]) {
        let Some(heard) = &self.0.client_credentials else { return };
        for (name, value) in headers {
            if !is_credential(name) {
                continue;
            }
            let value = std::str::from_utf8(value).unwrap_or_default().trim();
            if name.eq_ignore_ascii_case("cookie") {
                let values = value.split(';').filter_map(|pair| Some(pair.split_once('=')?.1.trim()));
                values.filter(|value| is_long_key(value)).for_each(|value| heard.add(value));
            } else {
                heard.add(value.rsplit(' ').next().unwrap_or_default());
            }
        }
        let pairs =
            path.split_once('?').map_or("", |(_, query)| query).split('&').filter_map(|pair| pair.split_once('='));
        for (_, value) in pairs.filter(|(name, _)| is_secret_query(name)) {
            let plain = escaped::plain_stretch(value.as_bytes(), 0, Escapes::Percent).map(|plain| plain.text);
            heard.add(&plain.as_deref().map_or(value.into(), String::from_utf8_lossy));
        }
    }

    /// Spans to be masked that touch the window, in order; a key that crosses its border is found whole.
    pub(super) fn find(&self, bytes: &[u8], window: Range<usize>) -> Vec<Range<usize>> {
        self.find_in(bytes, window, Escapes::Json)
    }

    fn find_in(&self, bytes: &[u8], window: Range<usize>, escapes: Escapes) -> Vec<Range<usize>> {
        let from = reach_back(bytes, window.start);
        let Some(text) = bytes.get(..reach_on(bytes, window.end)) else { return Vec::new() };
        let mut spans = self.find_secrets(text, from);
        spans.extend(self.looks(text, from));
        // A key that is written in escapes, which a reader takes off.
        if let Some(plain) = escaped::plain_stretch(text, from, escapes) {
            let found = self.find_secrets(&plain.text, 0).into_iter().chain(self.looks(&plain.text, 0));
            spans.extend(found.map(|span| plain.span(&span)));
        }
        spans.retain(|span| span.end > window.start && span.start < window.end);
        merged(spans)
    }

    /// Values that are known to be secret.
    fn find_secrets(&self, text: &[u8], from: usize) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        if let Some(declared) = &self.0.declared {
            declared.find(text, from, &mut spans);
        }
        if let Some(heard) = &self.0.client_credentials {
            heard.find(text, from, &mut spans);
        }
        spans
    }

    /// What looks secret, and is not to be kept.
    fn looks(&self, text: &[u8], from: usize) -> Vec<Range<usize>> {
        let mut spans = shapes::find(text, from).0;
        spans.retain(|span| !is_carried(text, span.start));
        if let Some(patterns) = &self.0.patterns {
            let tail = text.get(from..).unwrap_or_default();
            spans.extend(patterns.find_iter(tail).map(|found| from + found.start()..from + found.end()));
        }
        if let Some(keep) = &self.0.keep {
            spans.retain(|span| !text.get(span.clone()).is_some_and(|found| keep.is_match(found)));
        }
        spans
    }

    /// Masks secrets where they stand; says whether there were any.
    pub fn mask(&self, text: &mut [u8]) -> bool {
        let spans = self.find(text, 0..text.len());
        mask(text, &spans);
        !spans.is_empty()
    }

    /// Masks secrets in a plain file.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written, or is a link, a pipe or a device.
    pub fn mask_file(&self, path: &Path) -> io::Result<()> {
        let mut text = RunFile::bytes(path)?;
        if self.mask(&mut text) { fs::write(path, text) } else { Ok(()) }
    }

    /// A text without its secrets.
    pub fn masked(&self, text: String) -> String {
        let mut bytes = text.into_bytes();
        self.mask(&mut bytes);
        String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// A value whose texts are without their secrets.
    pub fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.masked(text)),
            Value::Array(all) => all.into_iter().map(|one| self.json(one)).collect(),
            Value::Object(all) => all.into_iter().map(|(name, one)| (name, self.json(one))).collect(),
            other => other,
        }
    }

    /// Whether a name is, or holds, a secret.
    pub fn holds_secret(&self, name: &str) -> bool {
        !self.find(name.as_bytes(), 0..name.len()).is_empty()
    }

    /// The text with secrets masked.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.text_in(text, Escapes::Json)
    }

    fn text_in<'a>(&self, text: &'a str, escapes: Escapes) -> Cow<'a, str> {
        // What was heard since may stand in a text that was clean.
        let heard = self.0.client_credentials.as_ref().map_or(0, |heard| heard.count());
        let mark = (twox_hash::XxHash3_64::oneshot(text.as_bytes()) ^ (heard << 1)) | 1;
        let known = usize::try_from(mark >> 32).ok().and_then(|place| self.0.clean.get(place % CLEAN));
        if known.is_some_and(|known| known.load(Ordering::Relaxed) == mark) {
            return Cow::Borrowed(text);
        }
        let spans = self.find_in(text.as_bytes(), 0..text.len(), escapes);
        if spans.is_empty() {
            if let Some(known) = known {
                known.store(mark, Ordering::Relaxed);
            }
            return Cow::Borrowed(text);
        }
        let mut bytes = text.as_bytes().to_vec();
        mask(&mut bytes, &spans);
        String::from_utf8_lossy(&bytes).into_owned().into()
    }

    /// A path with its query: values of keys that name a secret are masked, and key shapes anywhere.
    pub(super) fn path<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let names_secret = |pair: &&str| pair.split_once('=').is_some_and(|(name, _)| is_secret_query(name));
        let masked = match path.split_once('?') {
            Some((before, query)) if query.split('&').any(|pair| names_secret(&pair)) => {
                let pairs = query.split('&').map(|pair| match pair.split_once('=') {
                    Some((name, value)) if is_secret_query(name) => format!("{name}={}", "*".repeat(value.len())),
                    _ => pair.to_owned(),
                });
                Cow::Owned(format!("{before}?{}", pairs.collect::<Vec<_>>().join("&")))
            }
            _ => Cow::Borrowed(path),
        };
        match masked {
            Cow::Borrowed(path) => self.text_in(path, Escapes::Percent),
            Cow::Owned(path) => self.text_in(&path, Escapes::Percent).into_owned().into(),
        }
    }

    /// A header's value as it may be stored.
    pub(super) fn header<'a>(&self, name: &str, value: &'a [u8]) -> Cow<'a, str> {
        let lower =
            if name.bytes().any(|byte| byte.is_ascii_uppercase()) { Some(name.to_ascii_lowercase()) } else { None };
        if !is_stored(lower.as_deref().unwrap_or(name)) {
            return format!("<redacted:{}>", value.len()).into();
        }
        match std::str::from_utf8(value) {
            // Too short for any key; most values are.
            Ok(text) if text.len() < SHORTEST && self.0.declared.is_none() => Cow::Borrowed(text),
            Ok(text) => self.text(text),
            Err(_) => self.text(&String::from_utf8_lossy(value)).into_owned().into(),
        }
    }

    /// Who made the call, with secrets masked in name and evidence: a rule may have seen a key.
    pub(super) fn attribution<'a>(&self, attribution: &'a Attribution) -> Cow<'a, Attribution> {
        let name = match self.text(attribution.agent.as_str()) {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => AgentName::parse(&masked).ok(),
        };
        match (self.text(&attribution.evidence), name) {
            (Cow::Borrowed(_), None) => Cow::Borrowed(attribution),
            (evidence, name) => Cow::Owned(Attribution {
                evidence: evidence.into_owned(),
                agent: name.unwrap_or_else(|| attribution.agent.clone()),
                ..attribution.clone()
            }),
        }
    }

    /// Headers as they may be stored.
    pub(super) fn headers<'a>(&self, pairs: &[(&'a str, &'a [u8])]) -> Headers<'a> {
        pairs.iter().map(|(name, value)| (Cow::Borrowed(*name), self.header(name, value))).collect()
    }
}

/// Overwrites the spans with asterisks, and numbers that stand for bytes with ones, so that JSON stays JSON.
pub(super) fn mask(bytes: &mut [u8], spans: &[Range<usize>]) {
    for span in spans {
        let is_octet = is_octet(bytes, span);
        if let Some(secret) = bytes.get_mut(span.clone()) {
            secret.fill(if is_octet { b'1' } else { b'*' });
        }
    }
}

/// Whether a span is an element of an array of bytes. No secret of a text is as short.
fn is_octet(bytes: &[u8], span: &Range<usize>) -> bool {
    let digits = bytes.get(span.clone()).unwrap_or_default();
    let before = bytes.get(..span.start).unwrap_or_default().trim_ascii_end();
    let after = bytes.get(span.end..).unwrap_or_default().trim_ascii_start();
    span.len() <= 3
        && digits.iter().all(u8::is_ascii_digit)
        && matches!(before.last(), Some(b'[' | b','))
        && matches!(after.first(), Some(b']' | b','))
}

/// Spans in order, none of which touches another.
pub(super) fn merged(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// Moves back to where a key that reaches into the window would begin.
fn reach_back(bytes: &[u8], from: usize) -> usize {
    let before = bytes.get(from.saturating_sub(REACH)..from).unwrap_or_default();
    let mut behind = b'\0';
    let run = before.iter().rev().take_while(|byte| goes_on(**byte, std::mem::replace(&mut behind, **byte))).count();
    from.saturating_sub(run + WORD)
}

/// Moves on to where a key that leaves the window would end.
fn reach_on(bytes: &[u8], to: usize) -> usize {
    let after = bytes.get(to..(to + REACH).min(bytes.len())).unwrap_or_default();
    let mut behind = b';';
    let run = after.iter().take_while(|byte| goes_on(std::mem::replace(&mut behind, **byte), **byte)).count();
    (to + run + WORD).min(bytes.len())
}

/// Whether a key, or pairs of a cookie, may go on from one byte to the next.
fn goes_on(before: u8, after: u8) -> bool {
    let holds = |byte: u8| shapes::in_key(byte) || matches!(byte, b'=' | b'\\' | b'@' | b':' | b';' | b'%');
    (holds(before) || before == b' ') && (holds(after) || after == b'\0' || (after == b' ' && before == b';'))
}

/// Whether a value is what a server of tools has its client carry to its next request (MCP, `requestState`): a client that is given
/// it masked cannot go on, and it lets nobody in.
fn is_carried(text: &[u8], start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let is_mark = |byte: &u8| matches!(byte, b'"' | b'\\' | b':' | b' ');
    let marks = before.iter().rev().take(16).take_while(|byte| is_mark(byte)).count();
    marks > 0 && before.get(..before.len() - marks).is_some_and(|name| name.ends_with(b"requestState"))
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
