//! The escapes of JSON strings.

use std::borrow::Cow;

/// Decodes a JSON string literal, quotes included; `None` when it is none.
pub fn decode_string(literal: &str) -> Option<Cow<'_, str>> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    Some(Cow::Owned(decode_plain(inner).unwrap_or_else(|| {
        let strict = serde_json::from_str::<String>(literal);
        strict.unwrap_or_else(|_| decode_leniently(inner))
    })))
}

/// Decodes the content of a string as nearly all strings are, run by run; `None` where it has an escape that is rarer.
fn decode_plain(inner: &str) -> Option<String> {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(rest.get(..at)?);
        let (decoded, length) = match rest.as_bytes().get(at + 1)? {
            b'n' => ('\n', 2),
            b't' => ('\t', 2),
            b'r' => ('\r', 2),
            quoted @ (b'"' | b'\\' | b'/') => (char::from(*quoted), 2),
            b'u' => {
                let digits =
                    rest.get(at + 2..at + 6).filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
                (char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, 6)
            }
            _ => return None,
        };
        out.push(decoded);
        rest = rest.get(at + length..)?;
    }
    out.push_str(rest);
    Some(out)
}

/// Decodes string content whose escapes serde refuses: a lone surrogate becomes U+FFFD.
fn decode_leniently(inner: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
            continue;
        }
        let plain = match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => {
                let hex: String = chars.by_ref().take(4).collect();
                units.push(u16::from_str_radix(&hex, 16).unwrap_or(0xfffd));
                continue;
            }
            Some(other) => other,
            None => break,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_escapes_and_no_others() {
        assert_eq!(decode_plain(r#"a\n\"b\"\\ \/\u00e9\t"#).as_deref(), Some("a\n\"b\"\\ /é\t"));
        for other in [r"\b", r"\ud83d\ude00", r"\u12", r"\u+123", "\\"] {
            assert_eq!(decode_plain(other), None, "{other}");
        }
    }

    #[test]
    fn lone_surrogates_read_as_replacement() {
        assert_eq!(decode_string(r#""a\ud800b\n\"""#).as_deref(), Some("a\u{fffd}b\n\""));
        assert_eq!(decode_string(r#""\ud83d\ude00""#).as_deref(), Some("😀"));
        assert_eq!(decode_string("12"), None);
    }

    proptest::proptest! {
        #[test]
        fn equal_to_a_parser(text in ".{0,60}") {
            let literal = serde_json::Value::from(text.as_str()).to_string();
            let inner = literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("a string");
            if let Some(decoded) = decode_plain(inner) {
                proptest::prop_assert_eq!(decoded, text);
            }
        }
    }
}
