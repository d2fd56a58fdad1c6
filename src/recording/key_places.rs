//! Whether bytes can hold a key at all: a look at the few places that every key shape needs. Nearly all text has none
//! of them, and so never meets the regular expressions that find keys.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::redact::begins_a_word;

/// How a key begins that has a dot for a dash.
static DOTTED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("ya29."));
/// Ends of words before a token that begin with no rare letter.
static LOWER: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new("bearer"), Finder::new("basic")]);
/// Longest user name and password in a URL, in bytes.
const LOGIN_MAX: usize = 256;
/// Shortest token behind `Bearer` or `Basic`, in bytes; without a digit it must be longer to be one.
const TOKEN_MIN: usize = 8;
const TOKEN_WITHOUT_DIGIT_MIN: usize = 20;

/// Whether a key may stand in `text` from `from` on.
pub(super) fn any(text: &[u8], from: usize) -> bool {
    let Some(tail) = text.get(from..) else { return false };
    let before = |at: usize| text.get(..from + at).unwrap_or_default();
    let behind = |at: usize| tail.get(at + 1..).unwrap_or_default();
    memchr::memchr3_iter(b'-', b'_', b'@', tail).any(|at| match tail.get(at) {
        Some(b'-') => ends_dashed(before(at)) || behind(at).starts_with(b"----BEGIN"),
        Some(b'_') => ends_underlined(before(at)),
        _ => is_login(before(at)),
    }) || memchr::memchr2_iter(b':', b'=', tail).any(|at| is_assigned(before(at)))
        || memchr::memchr3_iter(b'A', b'B', b'J', tail).any(|at| match tail.get(at) {
            Some(b'J') => before(at).ends_with(b"ey"),
            Some(b'A') => [b"KIA".as_slice(), b"SIA", b"Iza"].iter().any(|rest| behind(at).starts_with(rest)),
            _ => [b"earer".as_slice(), b"EARER", b"asic"].iter().any(|rest| precedes_token(behind(at), rest)),
        })
        || DOTTED.find(tail).is_some()
        || LOWER.iter().any(|word| {
            word.find_iter(tail).any(|at| precedes_token(tail.get(at..).unwrap_or_default(), word.needle()))
        })
}

/// What stands before the dash of a key.
fn ends_dashed(text: &[u8]) -> bool {
    match text {
        // Not in `risk-free`.
        [.., b's', b'k'] => begins_a_word(text, text.len() - 2),
        [.., b't'] => text.ends_with(b"glpat"),
        [.., b'i'] => text.ends_with(b"xai") || text.ends_with(b"nvapi"),
        [.., b'x'] => text.ends_with(b"pplx"),
        [.., b'y'] => text.ends_with(b"tvly"),
        [.., b'x', b'o', b'x', b'a' | b'b' | b'e' | b'o' | b'p' | b'r' | b's'] => true,
        _ => false,
    }
}

/// What stands before the first underline of a key.
fn ends_underlined(text: &[u8]) -> bool {
    match text {
        [.., b's' | b'r' | b'p', b'k']
        | [.., b'h', b'f']
        | [.., b'r', b'8']
        | [.., b'g', b'h', b'p' | b'o' | b'u' | b's' | b'r'] => true,
        [.., b'b'] => text.ends_with(b"github"),
        _ => false,
    }
}

/// Whether an `@` behind this text ends a user name and password.
fn is_login(text: &[u8]) -> bool {
    let stops = |byte: &u8| matches!(byte, b'/' | b'"' | b'\'' | b'@' | b'\\') || byte.is_ascii_whitespace();
    let start = text.iter().rev().take(LOGIN_MAX + 1).position(stops);
    start.is_some_and(|length| text.get(..text.len() - length).is_some_and(|rest| rest.ends_with(b"://")))
}

/// Whether a colon or equals sign behind this text gives a secret its value.
fn is_assigned(text: &[u8]) -> bool {
    let word = text.iter().rposition(|byte| !matches!(byte, b'\\' | b'\'' | b'"') && !byte.is_ascii_whitespace());
    let Some(word) = word.and_then(|last| text.get(last.saturating_sub(15)..=last)) else { return false };
    let ends = |name: &[u8]| {
        word.len() >= name.len()
            && word.get(word.len() - name.len()..).is_some_and(|end| end.eq_ignore_ascii_case(name))
    };
    matches!(word.last(), Some(b'y' | b'Y' | b't' | b'T' | b'd' | b'D' | b'n' | b'N'))
        && [b"key".as_slice(), b"secret", b"password", b"token"].iter().any(|name| ends(name))
}

/// Whether the text begins with the word, and then what is as long as a token must be. A space that is written as
/// `%20` or `+` is taken for a part of the token, so nothing is asked of that.
fn precedes_token(text: &[u8], word: &[u8]) -> bool {
    let Some(text) = text.strip_prefix(word) else { return false };
    let text = match text {
        [b'%' | b'+', ..] => return true,
        [b' ', ..] => text.trim_ascii_start(),
        _ => return false,
    };
    let token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._~+/-".contains(byte);
    let length = text.iter().take_while(token).count();
    let has_digit = text.iter().take(length).any(u8::is_ascii_digit);
    text.starts_with(b"%")
        || text.starts_with(b"+")
        || length >= if has_digit { TOKEN_MIN } else { TOKEN_WITHOUT_DIGIT_MIN }
}

#[cfg(test)]
mod tests {
    use super::{super::redact::Redactor, any};

    #[test]
    fn prose_is_passed() {
        for text in [
            r#"{"role":"user","content":"a well-known, risk-adjusted basic understanding: see https://example.org/a"}"#,
            "snake_case and key points - token by token @ 12:30, the bearer of news",
        ] {
            assert!(!any(text.as_bytes(), 0), "{text}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(1000))]
        #[test]
        fn no_key_is_passed(parts in proptest::collection::vec(proptest::sample::select(vec![
            "sk-", "sk_live_", "rk_test_", "Bearer", "bearer", "BEARER", "Basic", "basic", " ", "%20", "+", "eyJ", ".", "AKIA", "ASIA",
            "ABCDEFGHIJ012345", "ghp_", "github_pat_", "glpat-", "xoxb-", "AIza", "hf_", "gsk_", "nvapi-", "xai-", "pplx-", "tvly-", "r8_", "ya29.",
            "api_key", "API-KEY", "ApiKey", "secret", "PASSWORD", "access_token", "\"", "'", ":", "=", "://", "@", "/", "user",
            "abcdefgh", "12345678", "abcdefghijklmnopqrstuvwxyz", "-----BEGIN ", "RSA ", "PRIVATE KEY-----", "\\n", "-", "_",
        ]), 1..9)) {
            let redactor = Redactor::new(&[]).expect("compiles");
            let text = parts.concat();
            if redactor.holds_key(text.as_bytes()) {
                proptest::prop_assert!(any(text.as_bytes(), 0), "{text}");
            }
        }
    }
}
