//! Keeps secrets off the disk: an allow-list of headers, masked query values, masked key shapes in text and bodies.
//!
//! Masking keeps lengths, so that offsets and framing stay true. It touches the record alone, never what passes.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use regex::bytes::Regex;

use super::{RecordingError, key_places, record::Headers};
use crate::trajectory::Attribution;

/// Beginnings of headers that are stored as they are, lower case.
const KEPT_PREFIXES: &[&str] = &["x-stainless-", "openai-", "x-ratelimit-", "anthropic-ratelimit-", "x-aegis-"];
/// Query keys that contain one of these have their values masked, lower case.
const SECRET_QUERY: &[&str] = &["key", "token", "sig", "secret", "pass", "auth", "cred", "code"];

/// What keys look like. Each alternative needs one of the places that [`key_places`] looks for.
const KEY_SHAPES: &str = concat!(
    r"(?-u)sk-[A-Za-z0-9_-]{8,}",
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}",
    r"|(?:Bearer|bearer|BEARER|Basic|basic)(?: |%20|\+)+[A-Za-z0-9._~+/-]{8,}=*",
    r"|eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?",
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}",
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}",
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[0-9A-Za-z_-]{30,}",
    r"|hf_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}|nvapi-[A-Za-z0-9_-]{16,}|xai-[A-Za-z0-9]{16,}|pplx-[A-Za-z0-9]{16,}",
    r"|tvly-[A-Za-z0-9_-]{16,}|r8_[A-Za-z0-9]{16,}|ya29\.[A-Za-z0-9_-]{16,}",
    r"|(?:api|API|Api)[_-]?(?:key|KEY|Key)[\\'\x22]*\s*[:=]\s*[\\'\x22]*[A-Za-z0-9._~+/-]{12,}",
    r"|(?:secret|SECRET|password|PASSWORD|access_token|auth_token)[\\'\x22]*\s*[:=]\s*[\\'\x22]*[A-Za-z0-9._~+/-]{12,}",
    r"|://[^/\s\x22'@\\]{1,256}@",
    r"|-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[A-Za-z0-9+/=\\\s]{0,8192}",
);

/// No shape is shorter, in bytes.
const SHORTEST: usize = 8;
/// Texts that are remembered to hold no secret.
const CLEAN: usize = 64;
/// How far a key can reach across the border of a window: a long token, and the word before it.
const REACH: usize = 4096;
const WORD: usize = 64;

/// The first span of a text that looks like a key, by the shapes that recordings mask.
pub fn first_key(text: &str) -> Option<Range<usize>> {
    static SHAPES_ALONE: LazyLock<Option<Redactor>> = LazyLock::new(|| Redactor::new(&[]).ok());
    SHAPES_ALONE.as_ref()?.find(text.as_bytes(), 0..text.len()).into_iter().next()
}

/// Finds and masks secrets.
#[derive(Debug, Clone)]
pub(super) struct Redactor {
    shapes: Regex,
    declared: Option<Regex>,
    /// Marks of short texts that hold no secret: paths, headers and evidence come again and again.
    clean: Arc<[AtomicU64; CLEAN]>,
}

impl Redactor {
    /// One that masks key shapes and these values (those of 4 bytes and more).
    ///
    /// # Errors
    /// [`RecordingError::Secrets`] when the values make too large a pattern.
    pub(super) fn new(secrets: &[String]) -> Result<Self, RecordingError> {
        static SHAPES: OnceLock<Regex> = OnceLock::new();
        let compiled =
            |pattern: &str| Regex::new(pattern).map_err(|error| RecordingError::Secrets { why: error.to_string() });
        let shapes = if let Some(shapes) = SHAPES.get() {
            shapes.clone()
        } else {
            let shapes = compiled(KEY_SHAPES)?;
            SHAPES.get_or_init(|| shapes).clone()
        };
        let declared: Vec<String> =
            secrets.iter().filter(|secret| secret.len() >= 4).map(|secret| regex::escape(secret)).collect();
        let declared = if declared.is_empty() { None } else { Some(compiled(&declared.join("|"))?) };
        Ok(Self { shapes, declared, clean: Arc::new([const { AtomicU64::new(0) }; CLEAN]) })
    }

    /// Spans to be masked that touch the window, in order; a key that crosses its border is found whole.
    pub(super) fn find(&self, bytes: &[u8], window: Range<usize>) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let mut at = reach_back(bytes, window.start);
        let Some(text) = bytes.get(..reach_on(bytes, window.end)) else { return spans };
        let touches = |span: &Range<usize>| span.end > window.start && span.start < window.end;
        if let Some(declared) = &self.declared {
            let mut at = at;
            while let Some(found) = declared.find_at(text, at) {
                at = found.end();
                spans.extend(Some(found.range()).filter(touches));
            }
        }
        let suspicious = key_places::any(text, at);
        while suspicious && let Some(found) = self.shapes.find_at(text, at) {
            let secret = secret_of(text, found.range());
            at = if secret.is_some() { found.end() } else { found.start() + 1 };
            spans.extend(secret.filter(touches));
        }
        if self.declared.is_some() {
            spans = merged(spans);
        }
        spans
    }

    /// Whether one stands in it.
    #[cfg(test)]
    pub(super) fn holds_key(&self, text: &[u8]) -> bool {
        self.shapes.find_iter(text).any(|found| secret_of(text, found.range()).is_some())
    }

    /// The text with secrets masked.
    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mark = twox_hash::XxHash3_64::oneshot(text.as_bytes()) | 1;
        let known = usize::try_from(mark >> 32).ok().and_then(|place| self.clean.get(place % CLEAN));
        if known.is_some_and(|known| known.load(Ordering::Relaxed) == mark) {
            return Cow::Borrowed(text);
        }
        let spans = self.find(text.as_bytes(), 0..text.len());
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
        let masked = match path.split_once('?') {
            Some((before, query)) if SECRET_QUERY.iter().any(|word| contains_ignoring_case(query, word)) => {
                let pairs = query.split('&').map(|pair| match pair.split_once('=') {
                    Some((key, value)) if SECRET_QUERY.iter().any(|word| contains_ignoring_case(key, word)) => {
                        format!("{key}={}", "*".repeat(value.len()))
                    }
                    _ => pair.to_owned(),
                });
                Cow::Owned(format!("{before}?{}", pairs.collect::<Vec<_>>().join("&")))
            }
            _ => Cow::Borrowed(path),
        };
        match masked {
            Cow::Borrowed(path) => self.text(path),
            Cow::Owned(path) => self.text(&path).into_owned().into(),
        }
    }

    /// A header's value as it may be stored.
    pub(super) fn header<'a>(&self, name: &str, value: &'a [u8]) -> Cow<'a, str> {
        let lower =
            if name.bytes().any(|byte| byte.is_ascii_uppercase()) { Some(name.to_ascii_lowercase()) } else { None };
        if !is_kept(lower.as_deref().unwrap_or(name)) {
            return format!("<redacted:{}>", value.len()).into();
        }
        match std::str::from_utf8(value) {
            // Too short for any key; most values are.
            Ok(text) if text.len() < SHORTEST && self.declared.is_none() => Cow::Borrowed(text),
            Ok(text) => self.text(text),
            Err(_) => self.text(&String::from_utf8_lossy(value)).into_owned().into(),
        }
    }

    /// Who made the call, with secrets masked in the evidence: a rule may have seen a key.
    pub(super) fn attribution<'a>(&self, attribution: &'a Attribution) -> Cow<'a, Attribution> {
        match self.text(&attribution.evidence) {
            Cow::Borrowed(_) => Cow::Borrowed(attribution),
            Cow::Owned(evidence) => Cow::Owned(Attribution { evidence, ..attribution.clone() }),
        }
    }

    /// Headers as they may be stored.
    pub(super) fn headers<'a>(&self, pairs: &[(&'a str, &'a [u8])]) -> Headers<'a> {
        pairs.iter().map(|(name, value)| (Cow::Borrowed(*name), self.header(name, value))).collect()
    }
}

/// Whether a header of this name, in lower case, is stored as it is.
fn is_kept(name: &str) -> bool {
    matches!(
        name,
        "accept"
            | "accept-encoding"
            | "anthropic-beta"
            | "anthropic-version"
            | "cache-control"
            | "connection"
            | "content-encoding"
            | "content-length"
            | "content-type"
            | "date"
            | "request-id"
            | "retry-after"
            | "retry-after-ms"
            | "server"
            | "transfer-encoding"
            | "user-agent"
            | "x-request-id"
            | "x-should-retry"
    ) || KEPT_PREFIXES.iter().any(|kept| name.starts_with(kept))
}

/// Overwrites the spans with asterisks.
pub(super) fn mask(bytes: &mut [u8], spans: &[Range<usize>]) {
    for span in spans {
        if let Some(secret) = bytes.get_mut(span.clone()) {
            secret.fill(b'*');
        }
    }
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

/// The part of a match that is to be masked; `None` when it only looks like a key.
fn secret_of(text: &[u8], found: Range<usize>) -> Option<Range<usize>> {
    let matched = text.get(found.clone())?;
    if matched.starts_with(b"://") {
        return Some(found.start + 3..found.end - 1);
    }
    if matched.starts_with(b"-----") {
        return Some(found);
    }
    let unpadded = matched.iter().rposition(|byte| *byte != b'=')?;
    let name = matched.get(..unpadded)?.iter().rposition(|byte| !in_key(*byte)).map_or(0, |at| at + 1);
    let secret = matched.get(name..)?;
    let has_digit = secret.iter().any(u8::is_ascii_digit);
    let is_secret = match (name, matched.first()) {
        (0, _) if matched.starts_with(b"sk-") => has_digit || secret.len() >= 19,
        (0, _) => true,
        (_, Some(b'B' | b'b')) => has_digit || secret.len() >= 20,
        _ => has_digit,
    };
    (is_secret && (name > 0 || begins_a_word(text, found.start))).then_some(found.start + name..found.end)
}

/// Whether a key may begin here: not inside a word, where the letters of an escape (`\n`, `\u000a`) are no word.
pub(super) fn begins_a_word(text: &[u8], start: usize) -> bool {
    let before = |back: usize| start.checked_sub(back).and_then(|at| text.get(at)).copied();
    match before(1) {
        Some(byte) if byte.is_ascii_alphanumeric() => {
            before(2) == Some(b'\\') || (before(6) == Some(b'\\') && before(5) == Some(b'u'))
        }
        _ => true,
    }
}

fn in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~+/-".contains(&byte)
}

/// Moves back to where a key that reaches into the window would begin.
fn reach_back(bytes: &[u8], from: usize) -> usize {
    let before = bytes.get(from.saturating_sub(REACH)..from).unwrap_or_default();
    let run =
        before.iter().rev().take_while(|byte| in_key(**byte) || matches!(byte, b'=' | b'\\' | b'@' | b':')).count();
    from.saturating_sub(run + WORD)
}

/// Moves on to where a key that leaves the window would end.
fn reach_on(bytes: &[u8], to: usize) -> usize {
    let after = bytes.get(to..(to + REACH).min(bytes.len())).unwrap_or_default();
    let run = after.iter().take_while(|byte| in_key(**byte) || matches!(byte, b'=' | b'\\' | b'@' | b':')).count();
    (to + run + WORD).min(bytes.len())
}

fn contains_ignoring_case(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new(&["hunter2!".to_owned()]).expect("compiles");
        assert_eq!(redactor.text(text), expected, "{text}");
    }

    #[test]
    fn keys_are_masked() {
        for (text, expected) in [
            ("key sk-proj-abc123DEF456 end", "key ******************** end"),
            (r"line\nsk-abcdefgh1 x", r"line\n************ x"),
            (r"line\u000ask-abcdefgh1 x", r"line\u000a************ x"),
            ("Authorization: Bearer abcdef123456==", "Authorization: Bearer **************"),
            (r#"{"api_key": "abcdefghijk12"}"#, r#"{"api_key": "*************"}"#),
            ("eyJhbGciOi.eyJzdWIiOi.c2ln", "**************************"),
            ("https://me:pw@host/x", "https://*****@host/x"),
            ("AKIAIOSFODNN7EXAMPLE", "********************"),
            ("my hunter2! here", "my ******** here"),
            (concat!("search tv", "ly-dev-abcdefgh12345678 it"), "search ************************* it"),
            (concat!("r", "8_abcdefgh1234567890"), "*********************"),
            (concat!("token ya", "29.a0AbcdEfgh_12345-678 x"), "token ************************* x"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn prose_and_code_stay() {
        for text in [
            "a risk-adjusted-return-model and sk-learn",
            "the bearer authentication scheme",
            "max_tokens: 1000, total_tokens=123456789",
            "api_key=os.environ['KEY']",
            "see https://example.org/a:b and mail me@example.org",
            "basic understanding of sk-ill",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn paths_and_headers() {
        let redactor = Redactor::new(&[]).expect("compiles");
        assert_eq!(redactor.path("/v1/x?api-version=2&api-key=abc&a=b"), "/v1/x?api-version=2&api-key=***&a=b");
        assert_eq!(redactor.path("/v1/x?model=m"), "/v1/x?model=m");
        for (name, value, expected) in [
            ("Authorization", "Bearer x", "<redacted:8>"),
            ("Content-Type", "application/json", "application/json"),
            ("X-Stainless-Retry-Count", "1", "1"),
            ("cookie", "a=b", "<redacted:3>"),
            ("user-agent", "me sk-abcdefgh12345", "me ****************"),
        ] {
            assert_eq!(redactor.header(name, value.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_key_across_the_border_of_the_window_is_found_whole() {
        let redactor = Redactor::new(&[]).expect("compiles");
        let text = b"Authorization: Bearer abcdefgh123456 and more text behind it";
        for border in 0..=text.len() {
            let (left, right) = (redactor.find(text, 0..border), redactor.find(text, border..text.len()));
            let seen: Vec<_> = left.into_iter().chain(right).collect();
            assert!(seen.iter().all(|span| *span == (22..36)) && !seen.is_empty(), "border {border}: {seen:?}");
        }
    }
}
