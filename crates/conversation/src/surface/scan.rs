//! A look into a JSON text without reading it: members, elements and where a value ends, by skipping what is between.
//!
//! Nothing is checked but brackets and quotes, so it is only for looking. What edits reads with [`super::splice`].

use std::borrow::Cow;

use super::{escape::decode_string, octets};

/// A member's name, its escapes read: UTF-8, as bytes, because nearly all are only compared with a few words.
pub type Key<'a> = Cow<'a, [u8]>;

/// The members of an object: key and raw value, duplicates included. Ends early where the text is malformed.
pub fn members(object: &[u8]) -> impl Iterator<Item = (Key<'_>, &[u8])> {
    let mut rest = object.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || {
        let (key, after) = read_key(next(rest)?)?;
        let (raw, after) = skip(after.trim_ascii_start().strip_prefix(b":")?)?;
        rest = after;
        Some((key, raw))
    })
}

/// The raw elements of an array. Ends early where the text is malformed.
pub fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = array.trim_ascii_start().strip_prefix(b"[").unwrap_or_default();
    std::iter::from_fn(move || {
        let (raw, after) = skip(next(rest)?)?;
        rest = after;
        Some(raw)
    })
}

/// Walks over an object in one pass. `visit` gets each key and the text from its value on, and gives what
/// follows that value ([`skip`] finds it, or a walk over the value). Gives what follows the object; `None` where the
/// text is malformed or `visit` gives up.
pub fn object<'a>(text: &'a [u8], mut visit: impl FnMut(Key<'a>, &'a [u8]) -> Option<&'a [u8]>) -> Option<&'a [u8]> {
    let mut rest = text.trim_ascii_start().strip_prefix(b"{")?;
    while let Some(member) = next(rest) {
        let (key, after) = read_key(member)?;
        rest = visit(key, after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start())?;
    }
    rest.trim_ascii_start().strip_prefix(b"}")
}

/// Walks over an array in one pass, as [`object`] does: `visit` gets the text from each element on.
pub fn array<'a>(text: &'a [u8], mut visit: impl FnMut(&'a [u8]) -> Option<&'a [u8]>) -> Option<&'a [u8]> {
    let mut rest = text.trim_ascii_start().strip_prefix(b"[")?;
    while let Some(element) = next(rest) {
        rest = visit(element)?;
    }
    rest.trim_ascii_start().strip_prefix(b"]")
}

/// The decoded string, if the raw value is one and UTF-8.
pub fn string(raw: &[u8]) -> Option<Cow<'_, str>> {
    if raw.first() == Some(&b'"') { decode_string(std::str::from_utf8(raw).ok()?) } else { None }
}

/// The key that a text begins with, and what follows it. Nearly all are short plain ASCII, and are taken as they stand.
fn read_key(text: &[u8]) -> Option<(Key<'_>, &[u8])> {
    let inner = text.strip_prefix(b"\"")?;
    if let (key, [b'"', after @ ..]) = inner.split_at_checked(octets::plain_length(inner))? {
        return Some((Cow::Borrowed(key), after));
    }
    let (raw, after) = skip(text)?;
    let key = match string(raw)? {
        Cow::Borrowed(key) => Cow::Borrowed(key.as_bytes()),
        Cow::Owned(key) => Cow::Owned(key.into_bytes()),
    };
    Some((key, after))
}

/// A key as text.
pub fn text_of_key(key: Key<'_>) -> Option<Cow<'_, str>> {
    match key {
        Cow::Borrowed(key) => std::str::from_utf8(key).ok().map(Cow::Borrowed),
        Cow::Owned(key) => String::from_utf8(key).ok().map(Cow::Owned),
    }
}

/// Where the string that `from` lies in ends: at its closing quote. `from` must not lie behind a backslash that
/// belongs to it. Quotes are rarer than escapes, so the backslashes before a quote are counted once one is found.
pub fn end_of_string(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let quote = at + octets::quote(bytes.get(at..)?)?;
        let before = bytes.get(from..quote)?;
        if before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0 {
            return Some(quote);
        }
        at = quote + 1;
    }
}

/// What follows a comma, if there is one; `None` at the end of an object or array.
fn next(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    (!rest.is_empty() && !rest.starts_with(b"}") && !rest.starts_with(b"]")).then_some(rest)
}

/// The value that a text begins with, and what follows it.
pub fn skip(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = match text.first()? {
        b'"' => end_of_string(text, 1)? + 1,
        b'{' | b'[' => end_of_group(text)?,
        _ => text.iter().position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())?,
    };
    text.split_at_checked(end).filter(|(value, _)| !value.is_empty())
}

/// Where the object or array at the start of `bytes` ends, its bracket included.
fn end_of_group(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match bytes.get(at)? {
            b'"' => at = end_of_string(bytes, at + 1)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements() {
        let text = r#" { "a" : "x\"},{" , "b\n":[1, {"c":"]"} ,"]"],"d":{},"e":null ,"f":-1.5e3}"#;
        let text_of = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        let seen: Vec<_> =
            members(text.as_bytes()).map(|(key, raw)| format!("{}={}", text_of(&key), text_of(raw))).collect();
        assert_eq!(seen, [r#"a="x\"},{""#, "b\n=[1, {\"c\":\"]\"} ,\"]\"]", "d={}", "e=null", "f=-1.5e3"]);
        let seen: Vec<_> = elements(br#"[1, {"c":"]"} ,"]"]"#).map(text_of).collect();
        assert_eq!(seen, ["1", r#"{"c":"]"}"#, r#""]""#]);
        for empty in ["", "{", "[", "{}", "[]", "12", "\"a\"", "{\"a", "{\"a\"", "{\"a\":", "[\"", "{:1}", "[}"] {
            let empty = empty.as_bytes();
            assert_eq!(members(empty).count() + elements(empty).count(), 0, "{empty:?}");
        }
    }

    #[test]
    fn a_walk_descends_and_ends_behind_the_value() {
        let text = br#" {"a" : [ {"b":"]}"} , 2 ] ,"c":{"d":1}, "e":[]} rest"#;
        let mut seen = Vec::new();
        let after = object(text, |key, value| {
            let key = String::from_utf8_lossy(&key);
            if value.starts_with(b"[") {
                return array(value, |element| {
                    let (raw, after) = skip(element)?;
                    seen.push(format!("{key}:{}", String::from_utf8_lossy(raw)));
                    Some(after)
                });
            }
            let (raw, after) = skip(value)?;
            seen.push(format!("{key}={}", String::from_utf8_lossy(raw)));
            Some(after)
        });
        assert_eq!(seen, [r#"a:{"b":"]}"}"#, "a:2", r#"c={"d":1}"#]);
        assert_eq!(after, Some(b" rest".as_slice()));
        for cut in 1..text.len() - 6 {
            let walked = object(&text[..cut], |_, value| Some(skip(value)?.1));
            assert_eq!(walked, None, "{cut}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(text in r#"[\[\]{}":,\\ a1]{0,40}"#) {
            let (members, elements) = (members(text.as_bytes()).count(), elements(text.as_bytes()).count());
            proptest::prop_assert!(members + elements <= text.len());
        }

        #[test]
        fn it_sees_what_a_parser_sees(keys in proptest::collection::btree_map("[a-z\"\\\\]{0,4}", "[^\\x00]{0,30}", 0..6)) {
            let object = serde_json::to_value(&keys).expect("a value");
            let text = object.to_string();
            let seen: serde_json::Map<_, _> = members(text.as_bytes())
                .map(|(key, raw)| (String::from_utf8(key.into_owned()).expect("UTF-8"), serde_json::from_slice(raw).expect("a value")))
                .collect();
            proptest::prop_assert_eq!(serde_json::Value::Object(seen), object);
        }
    }
}
