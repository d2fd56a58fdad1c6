//! Whether bytes can hold a key at all: a look at the few places that every key shape needs. Nearly all text has none
//! of them, and so never meets the regular expressions that find keys.

use regex::bytes::Regex;

use super::redact::begins_a_word;

/// Words and marks that need no byte which is rare in prose.
pub(super) const WORDS: &str = r"(?-u)(?:[Bb]earer|BEARER|[Bb]asic)(?: |%20|\+)|eyJ|A[KS]IA[0-9A-Z]|AIza";
/// Longest user name and password in a URL, in bytes.
const LOGIN_MAX: usize = 256;
/// Shortest token behind `Bearer` or `Basic`, in bytes; without a digit it must be longer to be one.
const TOKEN_MIN: usize = 8;
const TOKEN_WITHOUT_DIGIT_MIN: usize = 20;

/// Whether a key may stand in `text` from `from` on. `words` is [`WORDS`].
pub(super) fn any(words: &Regex, text: &[u8], from: usize) -> bool {
    let Some(tail) = text.get(from..) else { return false };
    let before = |at: usize| text.get(..from + at).unwrap_or_default();
    let behind = |at: usize| text.get(from + at + 1..).unwrap_or_default();
    memchr::memchr3_iter(b'-', b'_', b'@', tail).any(|at| match tail.get(at) {
        Some(b'-') => ends_dashed(before(at)) || behind(at).starts_with(b"----BEGIN"),
        Some(b'_') => ends_underlined(before(at)),
        _ => is_login(before(at)),
    }) || memchr::memchr2_iter(b':', b'=', tail).any(|at| is_assigned(before(at)))
        || words.find_iter(tail).any(|found| match found.as_bytes() {
            [.., b' '] => begins_with_token(tail.get(found.end()..).unwrap_or_default().trim_ascii_start()),
            _ => true,
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
        [.., b'x', b'o', b'x', b'a' | b'b' | b'e' | b'o' | b'p' | b'r' | b's'] => true,
        _ => false,
    }
}

/// What stands before the first underline of a key.
fn ends_underlined(text: &[u8]) -> bool {
    match text {
        [.., b's' | b'r' | b'p', b'k'] | [.., b'h', b'f'] | [.., b'g', b'h', b'p' | b'o' | b'u' | b's' | b'r'] => true,
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

/// Whether the text begins with what is as long as a token must be. A space that is written as `%20` or
/// `+` is taken for a part of it, so nothing is asked of that.
fn begins_with_token(text: &[u8]) -> bool {
    if let [b'%' | b'+', ..] = text {
        return true;
    }
    let token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._~+/-".contains(byte);
    let length = text.iter().take_while(token).count();
    let has_digit = text.iter().take(length).any(u8::is_ascii_digit);
    length >= if has_digit { TOKEN_MIN } else { TOKEN_WITHOUT_DIGIT_MIN }
}

#[cfg(test)]
mod tests {
    use super::super::redact::Redactor;

    #[test]
    fn prose_is_passed() {
        let redactor = Redactor::new(&[]).expect("compiles");
        for text in [
            r#"{"role":"user","content":"a well-known, risk-adjusted basic understanding: see https://example.org/a"}"#,
            "snake_case and key points - token by token @ 12:30, the bearer of news",
        ] {
            assert!(!redactor.is_suspicious(text.as_bytes(), 0), "{text}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(1000))]
        #[test]
        fn no_key_is_passed(parts in proptest::collection::vec(proptest::sample::select(vec![
            "sk-", "sk_live_", "rk_test_", "Bearer", "bearer", "BEARER", "Basic", "basic", " ", "%20", "+", "eyJ", ".", "AKIA", "ASIA",
            "ABCDEFGHIJ012345", "ghp_", "github_pat_", "glpat-", "xoxb-", "AIza", "hf_", "gsk_", "nvapi-", "xai-", "pplx-",
            "api_key", "API-KEY", "ApiKey", "secret", "PASSWORD", "access_token", "\"", "'", ":", "=", "://", "@", "/", "user",
            "abcdefgh", "12345678", "abcdefghijklmnopqrstuvwxyz", "-----BEGIN ", "RSA ", "PRIVATE KEY-----", "\\n", "-", "_",
        ]), 1..9)) {
            let redactor = Redactor::new(&[]).expect("compiles");
            let text = parts.concat();
            if redactor.holds_key(text.as_bytes()) {
                proptest::prop_assert!(redactor.is_suspicious(text.as_bytes(), 0), "{text}");
            }
        }
    }
}
