//! Names and values of headers that a plan adds, checked when it is read: nothing that could split a response.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// Headers that frame or encode the answer and are therefore the proxy's own.
const RESERVED: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Longest header value, in bytes.
const VALUE_MAX: usize = 4096;

/// A header's name, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct HeaderName(String);

/// A header's value: printable ASCII, spaces and tabs inside.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct HeaderValue(String);

impl TryFrom<String> for HeaderName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let lower = name.to_ascii_lowercase();
        if RESERVED.contains(&lower.as_str()) {
            return Err(format!("header `{lower}` is set by the proxy itself"));
        }
        // The token characters of RFC 9110, section 5.6.2.
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if !lower.is_empty() && lower.len() <= 128 && lower.bytes().all(token) {
            Ok(Self(lower))
        } else {
            Err(format!("`{}` is not a header name: expected letters, digits and `-`", name.escape_debug()))
        }
    }
}

impl TryFrom<String> for HeaderValue {
    type Error = String;

    fn try_from(value: String) -> Result<Self, String> {
        let allowed = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        if value.len() <= VALUE_MAX && value.trim() == value && value.bytes().all(allowed) {
            Ok(Self(value))
        } else {
            let shown: String = value.chars().take(60).flat_map(char::escape_debug).collect();
            Err(format!("`{shown}` is not a header value: expected printable ASCII without line breaks"))
        }
    }
}

impl fmt::Display for HeaderName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for HeaderValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_splits_a_response() {
        for name in ["", "a b", "a:b", "a\r\nb", "é", "Content-Length", "transfer-encoding"] {
            assert!(HeaderName::try_from(name.to_owned()).is_err(), "{name:?}");
        }
        for value in ["a\r\nset-cookie: x", "a\nb", "a\0", "é", " a", "\u{7f}", &"x".repeat(4097)] {
            assert!(HeaderValue::try_from(value.to_owned()).is_err(), "{value:?}");
        }
        assert!(HeaderName::try_from("X-Request-Id".to_owned()).is_ok_and(|name| name.to_string() == "x-request-id"));
        assert!(HeaderValue::try_from("a, b=\"c\"".to_owned()).is_ok());
        assert!(HeaderValue::try_from(String::new()).is_ok());
    }
}
