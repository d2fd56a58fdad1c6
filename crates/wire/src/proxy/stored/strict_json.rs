//! JSON that every reader reads alike. Of two members of one name some readers take the first, others the last; some take JSON in
//! UTF-16, or guess. What a user's call names can only be checked where the upstream cannot read another name there.

use std::{collections::HashSet, fmt, str};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

/// What some senders put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether some reader may take this for JSON, in whatever encoding.
pub(super) fn looks_like_json(body: &[u8]) -> bool {
    let is_before = |byte: &u8| byte.is_ascii_whitespace() || b"\0\xef\xbb\xbf\xff\xfe".contains(byte);
    body.iter().find(|byte| !is_before(byte)).is_some_and(|first| b"{[".contains(first))
}

/// Whether a body is nothing but JSON in UTF-8, one text or several, in which no object has two members of one name.
///
/// # Errors
/// What it is not, and where.
pub(super) fn check(body: &[u8]) -> Result<(), String> {
    let text = str::from_utf8(body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body))
        .map_err(|error| format!("it is not UTF-8: {error}"))?;
    let values = serde_json::Deserializer::from_str(text).into_iter::<StrictValue>();
    values.collect::<Result<Vec<_>, _>>().map_or_else(|error| Err(error.to_string()), |_| Ok(()))
}

/// A value of which nothing is kept.
struct StrictValue;

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self, A::Error> {
        while elements.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some((name, Self)) = members.next_entry::<String, Self>()? {
            if let Some(name) = names.replace(name) {
                return Err(A::Error::custom(format!("one object has `{name}` twice")));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for (body, problem) in [
            (&b"{\"a\":{\"b\":[1,-2,0.5,null,true,\"\\ud83d\\ude00\"]},\"b\":1}"[..], None),
            (b"\xef\xbb\xbf{\"a\":1}", None),
            (b"{\"a\":1}\n{\"a\":2}\n", None),
            (b"", None),
            (b"{\"a\":1,\"a\":2}", Some("has `a` twice")),
            (b"{\"a\":[{\"id\":1,\"\\u0069d\":2}]}", Some("has `id` twice")),
            (b"{\"a\":1}junk", Some("expected value")),
            (b"/*x*/{\"a\":1}", Some("expected value")),
            (b"{a:1}", Some("key must be a string")),
            (b"{\"a\":\"\xff\"}", Some("it is not UTF-8")),
            (b"\xff\xfe{\x00}\x00", Some("it is not UTF-8")),
            (b"{\x00}\x00", Some("key must be a string")),
            (b"{\"a\":NaN}", Some("expected value")),
        ] {
            let checked = check(body);
            let is_as_expected = match (&checked, problem) {
                (Ok(()), None) => true,
                (Err(found), Some(problem)) => found.contains(problem),
                _ => false,
            };
            assert_eq!(looks_like_json(body), !body.is_empty() && !body.starts_with(b"/"));
            assert!(is_as_expected, "{:?}: {checked:?}", String::from_utf8_lossy(body));
        }
    }
}
