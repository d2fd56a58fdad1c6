//! Text of unknown origin on its way to a terminal.

use std::io::{self, Write};

use crate::recording::{Masked, Redactor};

/// A line on standard error, without secrets.
macro_rules! talkln {
    ($($words:tt)*) => {
        $crate::cli::terminal::line($crate::cli::terminal::stderr(), format_args!($($words)*))
    };
}

/// A stream of this process that takes bytes without secrets: each line is looked through whole.
pub(super) struct MaskedStream<W: Write> {
    to: W,
    /// What came after the last end of a line.
    line: Vec<u8>,
}

/// Standard output.
pub(super) fn stdout() -> MaskedStream<io::Stdout> {
    MaskedStream { to: io::stdout(), line: Vec::new() }
}

/// Standard error.
pub(super) fn stderr() -> MaskedStream<io::Stderr> {
    MaskedStream { to: io::stderr(), line: Vec::new() }
}

/// Writes a line.
pub(super) fn line(mut to: impl Write, words: std::fmt::Arguments<'_>) {
    let _ = to.write_all(format!("{words}\n").as_bytes());
}

impl<W: Write> MaskedStream<W> {
    fn write_bytes(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.to.write_all(Masked::new(bytes).as_bytes()) }
    }
}

impl<W: Write> Write for MaskedStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = self.line.len();
        self.line.extend_from_slice(bytes);
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.line.split_off(before + end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            self.write_bytes(lines)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.line);
        self.write_bytes(rest)?;
        self.to.flush()
    }
}

impl<W: Write> Drop for MaskedStream<W> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

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
