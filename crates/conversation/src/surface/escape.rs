//! The escapes of JSON strings, as nearly all strings have them.

/// Decodes the content of a string, run by run; `None` where it has an escape that is rarer.
pub(super) fn decode_plain(inner: &str) -> Option<String> {
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
