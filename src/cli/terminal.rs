//! Text of unknown origin on its way to a terminal.

use crate::recording::Redactor;

/// Escapes what could steer a terminal or disorder a line: control characters but line feed and tab, and
/// bidirectional overrides. Secrets are masked.
pub fn escape(text: &str) -> String {
    let redactor = Redactor::of_process();
    let text = redactor.text(text);
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return text.into_owned();
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        let turns =
            matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        // Some terminals and all editors begin a line at them.
        let breaks = matches!(c, '\u{2028}' | '\u{2029}');
        if (c.is_control() && c != '\n' && c != '\t') || turns || breaks {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// So many of something, in words: `1 run`, `2 runs`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        for (text, expected) in [
            ("plain\n\ttext é", "plain\n\ttext é"),
            ("\u{1b}]0;x\u{7}", "\\u{1b}]0;x\\u{7}"),
            ("a\rb\u{202e}c\u{9b}", "a\\u{d}b\\u{202e}c\\u{9b}"),
            ("a\u{61c}b\u{2028}c\u{2029}", "a\\u{61c}b\\u{2028}c\\u{2029}"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }
}
