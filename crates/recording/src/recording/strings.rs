//! JSON string contents as texts: found without parsing, in two ways of escaping that are reproduced to the byte.

use std::{borrow::Cow, ops::Range};

use crate::surface::{octets, scan};

/// How a text was escaped where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Only what JSON demands (JavaScript, serde, httpx): `"`, `\` and control characters, short forms first.
    Minimal,
    /// Python's `ensure_ascii`: everything outside printable ASCII as `\uXXXX`.
    Ascii,
}

impl Style {
    /// Its number in a record.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Minimal => 0,
            Self::Ascii => 1,
        }
    }

    /// The style of that number.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Minimal),
            1 => Some(Self::Ascii),
            _ => None,
        }
    }

    /// Appends the text, escaped, without quotes.
    pub(super) fn escape(self, text: &str, out: &mut Vec<u8>) {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            let keep = match self {
                Self::Minimal => c >= ' ' && c != '"' && c != '\\',
                Self::Ascii => matches!(c, ' '..='~') && c != '"' && c != '\\',
            };
            if keep {
                continue;
            }
            out.extend_from_slice(text.get(start..at).unwrap_or_default().as_bytes());
            start = at + c.len_utf8();
            escape_char(c, out);
        }
        out.extend_from_slice(text.get(start..).unwrap_or_default().as_bytes());
    }
}

/// The content of the next string that begins at or after `from`, which must lie outside any string. An unterminated
/// one ends with the bytes.
pub(super) fn next_string(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let start = from + octets::quote(bytes.get(from..)?)? + 1;
    Some(start..end_of_string(bytes, start))
}

/// Where the string that `from` lies in ends: at its closing quote. `from` must not lie behind a backslash that
/// belongs to it.
pub(super) fn end_of_string(bytes: &[u8], from: usize) -> usize {
    scan::end_of_string(bytes, from).unwrap_or(bytes.len())
}

/// How the content of a string is escaped, and its minimal escape; `None` when neither style reproduces it.
pub(super) fn style_of(raw: &[u8]) -> Option<(Style, Cow<'_, [u8]>)> {
    if has_control(raw) || std::str::from_utf8(raw).is_err() {
        return None;
    }
    if is_minimal(raw) {
        return Some((Style::Minimal, Cow::Borrowed(raw)));
    }
    let mut quoted = Vec::with_capacity(raw.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(raw);
    quoted.push(b'"');
    let text: String = serde_json::from_slice(&quoted).ok()?;
    let mut again = Vec::with_capacity(raw.len());
    Style::Ascii.escape(&text, &mut again);
    if again != raw {
        return None;
    }
    let mut minimal = Vec::with_capacity(raw.len());
    Style::Minimal.escape(&text, &mut minimal);
    Some((Style::Ascii, Cow::Owned(minimal)))
}

/// Whether there is a control character; block by block, without a branch a byte.
fn has_control(raw: &[u8]) -> bool {
    raw.chunks(256)
        .any(|block| block.iter().map(|byte| u8::from(*byte < b' ')).fold(0, |found, control| found | control) > 0)
}

/// Whether every escape is one that [`Style::Minimal`] writes. Control characters are the caller's to check.
fn is_minimal(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let Some(found) = memchr::memchr2(b'\\', b'"', rest) {
        let Some((b'\\', escape)) = rest.get(found..).and_then(<[u8]>::split_first) else { return false };
        let length = match escape {
            [b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f', ..] => 1,
            [b'u', b'0', b'0', high @ (b'0' | b'1'), low @ (b'0'..=b'9' | b'a'..=b'f'), ..] => {
                if *high == b'0' && matches!(low, b'8' | b'9' | b'a' | b'c' | b'd') {
                    return false;
                }
                5
            }
            _ => return false,
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    true
}

/// Appends a character that may not stand in a string as it is.
pub(super) fn escape_char(c: char, out: &mut Vec<u8>) {
    let short: &[u8] = match c {
        '"' => b"\\\"",
        '\\' => b"\\\\",
        '\n' => b"\\n",
        '\r' => b"\\r",
        '\t' => b"\\t",
        '\u{8}' => b"\\b",
        '\u{c}' => b"\\f",
        _ => {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
            return;
        }
    };
    out.extend_from_slice(short);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_styles_are_those_of_serde_and_of_python() {
        let text = "a\"\\\n\r\t\u{8}\u{c}\u{1}\u{7f}é😀/";
        let escaped = |style: Style| {
            let mut out = Vec::new();
            style.escape(text, &mut out);
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(format!("\"{}\"", escaped(Style::Minimal)), serde_json::to_string(text).expect("serialises"));
        assert_eq!(escaped(Style::Ascii), r#"a\"\\\n\r\t\b\f\u0001\u007f\u00e9\ud83d\ude00/"#);
    }

    #[test]
    fn strings_are_found() {
        let body = br#"{"a":"b\\\"c","d":[1,"e"#;
        let mut at = 0;
        let mut found = Vec::new();
        while let Some(string) = next_string(body, at) {
            at = string.end + 1;
            found.push(std::str::from_utf8(&body[string]).expect("UTF-8"));
        }
        assert_eq!(found, ["a", r#"b\\\"c"#, "d", "e"]);
    }

    #[test]
    fn styles_are_told_apart() {
        for (raw, expected) in [
            ("plain", Some(Style::Minimal)),
            (r"a\n\\\u0001", Some(Style::Minimal)),
            ("é", Some(Style::Minimal)),
            (r"\u00e9", Some(Style::Ascii)),
            (r"\ud83d\ude00", Some(Style::Ascii)),
            (r"\u00E9", None),
            (r"\/", None),
            (r"\u000a", None),
            (r"\ud83d", None),
            ("é\\u00e9", None),
            ("a\nb", None),
            ("a\\", None),
        ] {
            assert_eq!(style_of(raw.as_bytes()).map(|(style, _)| style), expected, "{raw}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_has_a_style_is_reproduced(text in ".*", ascii: bool) {
            let style = if ascii { Style::Ascii } else { Style::Minimal };
            let mut raw = Vec::new();
            style.escape(&text, &mut raw);
            let (found, minimal) = style_of(&raw).expect("both styles are known");
            let text: String = serde_json::from_slice(&[b"\"", &*minimal, b"\""].concat()).expect("reads");
            let mut again = Vec::new();
            found.escape(&text, &mut again);
            proptest::prop_assert_eq!(again, raw);
        }
    }
}
