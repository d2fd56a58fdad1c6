//! How secrets are named: headers in which clients prove who they are, keys of queries, variables of the environment.

use std::ffi::OsString;

use super::escaped::{self, Escapes};

/// Beginnings of headers that are stored as they are, lower case.
const KEPT_PREFIXES: &[&str] = &["x-stainless-", "openai-", "x-ratelimit-", "anthropic-ratelimit-", "x-aegis-"];
/// Query keys that contain one of these, or are one of those, have their values masked, lower case.
const SECRET_QUERY: &[&str] = &["key", "token", "sig", "secret", "pass", "auth", "cred", "code", "jwt", "session"];
const SECRET_QUERY_WHOLE: &[&str] = &["k", "sid", "sas", "pw", "pwd"];
/// A header in whose name one of these stands proves who the client is, whatever the vendor; lower case.
const CREDENTIALS: &[&str] =
    &["auth", "key", "token", "secret", "credential", "session", "password", "signature", "jwt", "cookie"];
/// Headers of such names that prove nothing.
const NO_CREDENTIALS: &[&str] = &["idempotency-key", "sec-websocket-key", "x-session-affinity"];
/// Variables of the environment whose names end so hold a secret.
const SECRET_VARIABLES: &[&str] =
    &["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PAT", "_CREDENTIAL", "_APIKEY", "_JWT"];
/// No key in such a variable is shorter, in bytes.
const VARIABLE_MIN: usize = 16;

/// Whether a header of this name, in lower case, is stored as it is.
pub(super) fn is_stored(name: &str) -> bool {
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
    ) || (KEPT_PREFIXES.iter().any(|kept| name.starts_with(kept))
        && (name.contains("ratelimit") || !is_credential(name)))
}

/// Whether a header of this name proves who the client is.
pub fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    CREDENTIALS.iter().any(|word| name.contains(word)) && !NO_CREDENTIALS.contains(&name.as_str())
}

/// Whether a value is long and mixed enough to be no word, path or setting: of letters and several digits.
pub(super) fn is_long_key(value: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| value.bytes().any(|byte| kind(&byte));
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    value.len() >= VARIABLE_MIN
        && digits >= 4
        && has(u8::is_ascii_alphabetic)
        && !value.starts_with(['/', '.', '~'])
        && !value.contains(char::is_whitespace)
        && !value.contains("://")
}

/// Keys that the environment of this process holds, by the names of its variables.
pub fn keys_of_environment() -> Vec<String> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    keys_of(std::env::vars_os().filter_map(text))
}

fn keys_of(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let is_named = |name: &str| {
        let name = format!("_{}", name.to_ascii_uppercase());
        SECRET_VARIABLES.iter().any(|end| name.ends_with(end))
    };
    variables.filter(|(name, value)| is_named(name) && is_long_key(value)).map(|(_, value)| value).collect()
}

/// Whether the value of a query key is secret. Its name may be percent-encoded.
pub fn is_secret_query(name: &str) -> bool {
    let plain = escaped::plain_stretch(name.as_bytes(), 0, Escapes::Percent).map(|plain| plain.text);
    let name = plain.as_deref().map_or(name.into(), String::from_utf8_lossy).to_ascii_lowercase();
    SECRET_QUERY.iter().any(|word| name.contains(word)) || SECRET_QUERY_WHOLE.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_prove_who_the_client_is_whatever_the_vendor() {
        for name in [
            "Authorization",
            "x-api-key",
            "X-Goog-Api-Key",
            "anthropic-api-key",
            "Helicone-Auth",
            "X-Vault-Token",
            "Cookie",
            "X-Amz-Security-Token",
            "Ocp-Apim-Subscription-Key",
            "OpenAI-Api-Key",
            "x-portkey-api-key",
        ] {
            assert!(is_credential(name) && !is_stored(&name.to_ascii_lowercase()), "{name}");
        }
        for name in [
            "openai-organization",
            "x-ratelimit-remaining-tokens",
            "anthropic-ratelimit-tokens-limit",
            "x-aegis-agent",
            "content-type",
        ] {
            assert!(is_stored(name), "{name}");
        }
        assert!(!is_credential("idempotency-key"));
    }

    #[test]
    fn keys_of_the_environment_are_known_by_the_names_of_variables() {
        let variables = [
            ("ACME_API_KEY", "0a1b2c3d4e5f6a7b8c"),
            ("TOKEN", "abcdefgh12345678"),
            ("SSH_KEY", "/etc/keys/of-host-12345"),
            ("CACHE_KEY", "linux-x86-stable"),
            ("DB_PASSWORD", "short1"),
            ("HOME", "0a1b2c3d4e5f6a7b8c"),
            ("PROXY_TOKEN", "https://a.test/12345678"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = ["0a1b2c3d4e5f6a7b8c", "abcdefgh12345678"];
        assert_eq!(keys_of(variables.into_iter()), expected);
    }
}
