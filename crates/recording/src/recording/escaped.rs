//! Text that is written in escapes, as its reader gets it: a key may stand in them.

use std::{ops::Range, sync::LazyLock};

use memchr::memmem::Finder;

/// What escapes begin with that need not be.
static UNICODE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br"\u00"));
static SLASH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br"\/"));

/// How characters are escaped that need not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// `\u0073` and `\/`, also where a JSON text stands in another.
    Json,
    /// `%73`.
    Percent,
}

/// A text without its escapes, and where its bytes stood.
pub(super) struct Plain {
    pub(super) text: Vec<u8>,
    /// Of each byte the place where it was written; last the place behind the last.
    places: Vec<usize>,
}

impl Plain {
    /// Where a span of it was written.
    pub(super) fn span(&self, span: &Range<usize>) -> Range<usize> {
        let place = |at: usize| self.places.get(at).or(self.places.last()).copied().unwrap_or_default();
        place(span.start)..place(span.end)
    }
}

/// The text from there on without escapes; `None` where it has none.
pub(super) fn plain_stretch(text: &[u8], from: usize, escapes: Escapes) -> Option<Plain> {
    let tail = text.get(from..)?;
    let any = match escapes {
        Escapes::Percent => memchr::memchr(b'%', tail).is_some(),
        Escapes::Json => {
            UNICODE.find_iter(tail).any(|at| matches!(tail.get(at + 4), Some(b'2'..=b'7')))
                || SLASH.find(tail).is_some()
        }
    };
    if !any {
        return None;
    }
    let mut plain = Plain { text: Vec::with_capacity(tail.len()), places: Vec::with_capacity(tail.len() + 1) };
    let mut at = 0;
    while let Some(rest) = tail.get(at..).filter(|rest| !rest.is_empty()) {
        let (byte, length) = match escapes {
            Escapes::Percent => percent(rest),
            Escapes::Json => json(rest),
        };
        if let Some(byte) = byte {
            plain.places.push(from + at);
            plain.text.push(byte);
        } else {
            plain.places.extend(from + at..from + at + length);
            plain.text.extend_from_slice(rest.get(..length).unwrap_or_default());
        }
        at += length;
    }
    plain.places.push(text.len());
    Some(plain)
}

/// What stands at the beginning, and how long it is: a character in an escape, or bytes that stay as they are.
fn json(rest: &[u8]) -> (Option<u8>, usize) {
    let slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    if slashes == 0 {
        return (None, memchr::memchr(b'\\', rest).unwrap_or(rest.len()));
    }
    let escape = rest.get(slashes..).unwrap_or_default();
    let code = escape.strip_prefix(b"u00").and_then(|code| code.get(..2)).and_then(hex);
    match (escape.first(), code) {
        (Some(b'/'), _) => (Some(b'/'), slashes + 1),
        // What would end the text is left alone.
        (_, Some(byte @ b'!'..=b'~')) if !matches!(byte, b'"' | b'\\') => (Some(byte), slashes + 5),
        _ => (None, slashes),
    }
}

fn percent(rest: &[u8]) -> (Option<u8>, usize) {
    match rest.strip_prefix(b"%").and_then(|code| code.get(..2)).and_then(hex) {
        Some(byte @ (b' '..=b'~' | 0x80..)) => (Some(byte), 3),
        _ => (None, memchr::memchr(b'%', rest.get(1..).unwrap_or_default()).map_or(rest.len(), |at| at + 1)),
    }
}

fn hex(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u8::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_come_off_and_places_are_kept() {
        for (escapes, text, expected) in [
            (Escapes::Json, r"a \u0073k\u002dab\/c", Some("a sk-ab/c")),
            (Escapes::Json, r#"{\"k\":\"\\u0073k\"}"#, Some(r#"{\"k\":\"sk\"}"#)),
            (Escapes::Json, r"a\n\u0041\u0022", Some(r"a\nA\u0022")),
            (Escapes::Json, r"caf\u00e9 \n", None),
            (Escapes::Percent, "%73k-%6bey%20%0a%c3%a9%zz%", Some("sk-key %0aé%zz%")),
            (Escapes::Percent, "plain", None),
        ] {
            let plain = plain_stretch(text.as_bytes(), 0, escapes);
            assert_eq!(
                plain.as_ref().map(|plain| String::from_utf8_lossy(&plain.text).into_owned()).as_deref(),
                expected
            );
            if let Some(plain) = plain {
                assert_eq!(plain.span(&(0..plain.text.len())), 0..text.len());
                assert_eq!(plain.places.len(), plain.text.len() + 1);
            }
        }
        let text = r"xx \u0073k-1 y";
        let found = plain_stretch(text.as_bytes(), 1, Escapes::Json).expect("escapes");
        assert_eq!(found.text, b"x sk-1 y");
        assert_eq!(text.get(found.span(&(2..6))), Some(r"\u0073k-1"));
    }
}
