//! A look into a JSON text without reading it: members, elements and where a value ends, by skipping what is between.
//!
//! Nothing is checked but brackets and quotes, so it is only for looking. What edits reads with [`super::splice`].

use std::borrow::Cow;

use super::splice::decode_string;

/// The members of an object: decoded key and raw value, duplicates included. Ends early where the text is malformed.
pub fn members(object: &str) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let mut rest = object.trim_start().strip_prefix('{').unwrap_or_default();
    std::iter::from_fn(move || {
        let (key, after) = value(next(rest)?)?;
        let (raw, after) = value(after.trim_start().strip_prefix(':')?)?;
        rest = after;
        Some((decode_string(key)?, raw))
    })
}

/// The raw elements of an array. Ends early where the text is malformed.
pub fn elements(array: &str) -> impl Iterator<Item = &str> {
    let mut rest = array.trim_start().strip_prefix('[').unwrap_or_default();
    std::iter::from_fn(move || {
        let (raw, after) = value(next(rest)?)?;
        rest = after;
        Some(raw)
    })
}

/// What follows a comma, if there is one; `None` at the end of an object or array.
fn next(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(',').unwrap_or(rest);
    (!rest.starts_with(['}', ']']) && !rest.is_empty()).then_some(rest)
}

/// The value that a text begins with, and what follows it.
fn value(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let bytes = text.as_bytes();
    let end = match bytes.first()? {
        b'"' => end_of_string(bytes, 1)?,
        b'{' | b'[' => end_of_group(bytes)?,
        _ => bytes.iter().position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())?,
    };
    text.split_at_checked(end).filter(|(value, _)| !value.is_empty())
}

/// Where the string that `from` lies in ends, its closing quote included.
fn end_of_string(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// Where the object or array at the start of `bytes` ends, its bracket included.
fn end_of_group(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = end_of_string(bytes, at + 1)?;
                continue;
            }
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
        let seen: Vec<_> = members(text).map(|(key, raw)| format!("{key}={raw}")).collect();
        assert_eq!(seen, [r#"a="x\"},{""#, "b\n=[1, {\"c\":\"]\"} ,\"]\"]", "d={}", "e=null", "f=-1.5e3"]);
        assert_eq!(elements(r#"[1, {"c":"]"} ,"]"]"#).collect::<Vec<_>>(), ["1", r#"{"c":"]"}"#, r#""]""#]);
        for empty in ["", "{", "[", "{}", "[]", "12", "\"a\"", "{\"a", "{\"a\"", "{\"a\":", "[\"", "{:1}", "[}"] {
            assert_eq!(members(empty).count() + elements(empty).count(), 0, "{empty}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(text in r#"[\[\]{}":,\\ a1]{0,40}"#) {
            let (members, elements) = (members(&text).count(), elements(&text).count());
            proptest::prop_assert!(members + elements <= text.len());
        }

        #[test]
        fn it_sees_what_a_parser_sees(keys in proptest::collection::btree_map("[a-z\"\\\\]{0,4}", "[^\\x00]{0,30}", 0..6)) {
            let object = serde_json::to_value(&keys).expect("a value");
            let text = object.to_string();
            let seen: serde_json::Map<_, _> = members(&text)
                .map(|(key, raw)| (key.into_owned(), serde_json::from_str(raw).expect("a value")))
                .collect();
            proptest::prop_assert_eq!(serde_json::Value::Object(seen), object);
        }
    }
}
