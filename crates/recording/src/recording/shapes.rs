//! What keys look like: a table of how they begin, and one pass that looks at each place where one does.
//!
//! The work is linear in the text, whatever stands in it: how far a run of characters reaches is looked up once a run, not
//! once a beginning in it.

mod beginnings;
mod table;

use std::ops::Range;

use self::table::{CharRun, KeyShape, ShapeRule};

/// Runs that there are.
const RUNS: usize = CharRun::Signature as usize + 1;
/// Longest private key and longest login, in bytes.
const PEM_MAX: usize = 8192;
const LOGIN_MAX: usize = 256;
/// A value without a digit must be as long to be a secret, and with one so long.
const WITHOUT_DIGIT: usize = 20;
const WITH_DIGIT: usize = 8;
/// Shortest value behind the name of a secret.
const NAMED: usize = 12;
/// Longest line before a private key, and how far a key of Azure's reaches before its mark.
const PEM_HEAD: usize = 48;
const AZURE_HEAD: usize = 60;
/// How far the number of a bot reaches before its mark.
const BOT_HEAD: usize = 12;
/// The colon of Chinese and Japanese texts.
const WIDE_COLON: &[u8] = "：".as_bytes();

/// Spans of a text that look like keys, in no order; what lies before `from` is only looked back at. Second, how many
/// bytes were looked at beside the one pass.
pub(super) fn find(text: &[u8], from: usize) -> (Vec<Range<usize>>, usize) {
    let mut scan = ShapeScan { text, runs: [(1, 0); RUNS], looked: 0 };
    let mut spans: Vec<Range<usize>> = Vec::new();
    for (shape, found) in beginnings::find(text, from) {
        let inside = |span: &Range<usize>| span.start <= found.start && found.end <= span.end;
        if !spans.last().is_some_and(inside) {
            spans.extend(scan.secret(shape, found));
        }
    }
    (spans, scan.looked)
}

/// A text, and what is known of its runs.
struct ShapeScan<'a> {
    text: &'a [u8],
    /// Of each kind the run that was looked at last: from where, to where.
    runs: [(usize, usize); RUNS],
    looked: usize,
}

impl ShapeScan<'_> {
    /// Where the run that begins here ends.
    fn end(&mut self, run: CharRun, from: usize) -> usize {
        let Some(known) = self.runs.get_mut(run as usize) else { return from };
        if (known.0..=known.1).contains(&from) {
            return known.1;
        }
        let mut at = from;
        while self.text.get(at).is_some_and(|byte| run.has(*byte)) {
            at += 1;
            if at == known.0 && known.0 <= known.1 {
                at = known.1;
                break;
            }
            self.looked += 1;
        }
        self.looked += 1;
        *known = (from, at);
        at
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// What is secret of what begins like a shape.
    fn secret(&mut self, shape: &KeyShape, begins: Range<usize>) -> Option<Range<usize>> {
        let Range { start, end } = begins;
        let exact = || self.text.get(begins.clone()) == Some(shape.begins.as_bytes());
        match shape.rule {
            ShapeRule::Token(run, least) if exact() && begins_a_word(self.text, start) => {
                let stop = self.end(run, end);
                (stop - end >= least).then_some(start..stop)
            }
            ShapeRule::Fixed(run, length) if exact() && begins_a_word(self.text, start) => {
                (self.end(run, end) - end >= length).then_some(start..end + length)
            }
            ShapeRule::Sk if exact() && begins_a_word(self.text, start) => {
                let stop = self.end(CharRun::Word, end);
                let long = stop - end >= WITH_DIGIT && (self.has_digit(end, stop) || stop - start >= 19);
                long.then_some(start..stop)
            }
            ShapeRule::Jwt if exact() && begins_a_word(self.text, start) => self.jwt(start, end),
            ShapeRule::Azure if exact() => self.azure(start, end),
            ShapeRule::Bot if exact() => self.bot(start, end),
            ShapeRule::Pem if exact() => self.pem(start, end),
            ShapeRule::Token(..)
            | ShapeRule::Fixed(..)
            | ShapeRule::Sk
            | ShapeRule::Jwt
            | ShapeRule::Azure
            | ShapeRule::Bot
            | ShapeRule::Pem => None,
            ShapeRule::Scheme => {
                let value = self.spaces(end);
                if value == end { None } else { self.credential(value) }
            }
            ShapeRule::Named => {
                let value = self.assigned(end, b":=")?;
                let stop = self.end(CharRun::Key, value);
                let secret = stop - value >= NAMED && self.has_digit(value, stop);
                secret.then(|| value..self.padded(stop))
            }
            ShapeRule::Authorization => {
                let value = self.assigned(end, b":")?;
                let scheme = self.end(CharRun::Alphanumeric, value);
                let token = self.spaces(scheme);
                let of_scheme = if token > scheme { self.credential(token) } else { None };
                of_scheme.or_else(|| self.credential(value))
            }
            ShapeRule::Cookie => {
                let value = self.assigned(end, b":")?;
                self.pairs(value)
            }
            ShapeRule::Query => {
                let stop = self.end(CharRun::Escaped, end);
                (stop - end >= NAMED && self.has_digit(end, stop)).then_some(end..stop)
            }
            ShapeRule::Login => {
                let stop = self.end(CharRun::Login, end);
                let is_login = self.byte(stop) == Some(b'@') && (1..=LOGIN_MAX).contains(&(stop - end));
                is_login.then_some(end..stop)
            }
        }
    }

    fn has_digit(&mut self, from: usize, to: usize) -> bool {
        self.end(CharRun::NoDigit, from) < to
    }

    /// Behind the blanks that stand between a scheme and its token, in a text or in a URL.
    fn spaces(&mut self, from: usize) -> usize {
        let mut at = from;
        loop {
            match self.text.get(at..).unwrap_or_default() {
                [b' ' | b'+', ..] => at += 1,
                [b'%', b'2', b'0', ..] => at += 3,
                _ => return at,
            }
            self.looked += 1;
        }
    }

    /// A token with a digit, or too long to be a word.
    fn credential(&mut self, from: usize) -> Option<Range<usize>> {
        let stop = self.end(CharRun::Key, from);
        let least = if self.has_digit(from, stop) { WITH_DIGIT } else { WITHOUT_DIGIT };
        (stop - from >= least).then(|| from..self.padded(stop))
    }

    /// Behind the padding of what is in base64.
    fn padded(&self, from: usize) -> usize {
        from + self.text.get(from..).unwrap_or_default().iter().take(2).take_while(|byte| **byte == b'=').count()
    }

    /// Where the value begins that a name is given, quotes and blanks between.
    fn assigned(&mut self, from: usize, signs: &[u8]) -> Option<usize> {
        let at = self.end(CharRun::Quote, from);
        let at = self.end(CharRun::Blank, at);
        let is_wide = self.text.get(at..).unwrap_or_default().starts_with(WIDE_COLON);
        let sign =
            if is_wide { WIDE_COLON.len() } else { self.byte(at).filter(|sign| signs.contains(sign)).map(|_| 1)? };
        let at = self.end(CharRun::Blank, at + sign);
        Some(self.end(CharRun::Quote, at))
    }

    fn jwt(&mut self, start: usize, end: usize) -> Option<Range<usize>> {
        let head = self.end(CharRun::Word, end);
        if head - end < 6 || self.byte(head) != Some(b'.') {
            return None;
        }
        let claims = self.end(CharRun::Claims, head + 1);
        if claims - head < 7 {
            return None;
        }
        let stop = if self.byte(claims) == Some(b'.') { self.end(CharRun::Signature, claims + 1) } else { claims };
        Some(start..stop)
    }

    fn azure(&mut self, start: usize, end: usize) -> Option<Range<usize>> {
        let head = self.text.get(start.saturating_sub(AZURE_HEAD)..start).unwrap_or_default();
        let before = head.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        self.looked += before;
        let stop = self.end(CharRun::Alphanumeric, end);
        (before >= 32 && stop - end >= 10).then(|| start - before..stop)
    }

    fn bot(&mut self, start: usize, end: usize) -> Option<Range<usize>> {
        let head = self.text.get(start.saturating_sub(BOT_HEAD)..start).unwrap_or_default();
        let before = head.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        self.looked += before;
        let stop = self.end(CharRun::Word, end);
        (before >= 8 && stop - end >= 30).then(|| start - before..stop)
    }

    fn pem(&mut self, start: usize, end: usize) -> Option<Range<usize>> {
        let from = start.saturating_sub(PEM_HEAD);
        let head = self.text.get(from..start).unwrap_or_default();
        self.looked += head.len();
        let named = head.iter().rposition(|byte| *byte == b'-').map_or(0, |dash| dash + 1);
        let begins = head.get(..named).filter(|dashes| dashes.ends_with(b"-----"))?.len() - 5;
        let kind = head.get(named..)?;
        let stop = self.end(CharRun::Pem, end).min(end + PEM_MAX);
        kind.starts_with(b"BEGIN ").then_some(from + begins..stop)
    }

    /// `a=b; c=d`, as far as it goes.
    fn pairs(&mut self, from: usize) -> Option<Range<usize>> {
        let (mut at, mut stop) = (from, from);
        loop {
            let name = self.end(CharRun::Name, at);
            if name == at || self.byte(name) != Some(b'=') {
                break;
            }
            stop = self.end(CharRun::Pair, name + 1);
            if self.byte(stop) != Some(b';') {
                break;
            }
            at = self.end(CharRun::Blank, stop + 1);
        }
        (stop - from >= WITH_DIGIT).then_some(from..stop)
    }
}

impl CharRun {
    fn has(self, byte: u8) -> bool {
        let plain = byte.is_ascii_alphanumeric();
        match self {
            Self::Alphanumeric => plain,
            Self::Capital => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Dashed => plain || byte == b'-',
            Self::Word | Self::Claims | Self::Signature => plain || matches!(byte, b'-' | b'_'),
            Self::Dotted => plain || matches!(byte, b'-' | b'_' | b'.'),
            Self::Key => in_key(byte),
            Self::Escaped => in_key(byte) || matches!(byte, b'%' | b'='),
            Self::NoDigit => !byte.is_ascii_digit(),
            Self::Blank => byte.is_ascii_whitespace(),
            Self::Quote => matches!(byte, b'\\' | b'\'' | b'"'),
            Self::Login => !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'"' | b'\'' | b'@' | b'\\'),
            Self::Pem => plain || byte.is_ascii_whitespace() || matches!(byte, b'+' | b'/' | b'=' | b'\\'),
            Self::Name => plain || matches!(byte, b'-' | b'_' | b'.' | b'!' | b'$'),
            Self::Pair => byte > b' ' && !matches!(byte, b';' | b',' | b'"' | b'\'' | b'\\' | 0x7f..),
        }
    }
}

/// Whether a byte can stand in most keys.
pub(super) fn in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~+/-".contains(&byte)
}

/// Whether a key may begin here: not inside a word, where the letters of an escape (`\n`, `\u000a`) are no word.
fn begins_a_word(text: &[u8], start: usize) -> bool {
    let before = |back: usize| start.checked_sub(back).and_then(|at| text.get(at)).copied();
    match before(1) {
        Some(byte) if byte.is_ascii_alphanumeric() => {
            before(2) == Some(b'\\') || (before(6) == Some(b'\\') && before(5) == Some(b'u'))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{find, table::SHAPES};

    /// What beginnings, runs and rejected keys are made of.
    fn parts() -> Vec<&'static str> {
        let more = [
            "x",
            "a",
            "1",
            "-",
            "_",
            ".",
            "=",
            ":",
            ": ",
            "; ",
            " ",
            "\\",
            "\"",
            "'",
            "@",
            "/",
            "%20",
            "+",
            "\n",
            "\\n",
            "-----BEGIN ",
            "RSA ",
            "aaaaaaaaaaaaaaaaaaaaaaaa",
            "0123456789",
            "ABCDEFGHIJ012345",
            "a=b; c=d",
        ];
        SHAPES.iter().map(|shape| shape.begins).chain(more).collect()
    }

    /// Bytes that are looked at beside the one pass, for each byte of the text.
    const MOST: usize = 40;

    #[test]
    fn the_worst_texts_are_linear() {
        for begins in SHAPES.iter().map(|shape| shape.begins) {
            for unit in [
                format!("x{begins}"),
                begins.to_owned(),
                format!("{begins}\\"),
                format!("{begins}: "),
                format!("{begins}=a"),
                format!("{begins}-ghp_0123456789abcdef-"),
                format!("eyJ-{begins}"),
                format!("{begins}:a=;"),
            ] {
                let text = unit.repeat(20_000 / unit.len());
                let (_, looked) = find(text.as_bytes(), 0);
                assert!(looked <= MOST * text.len(), "{unit}: {looked} of {}", text.len());
            }
        }
    }

    #[test]
    fn words_before_a_token_s_second_part_are_looked_at_once() {
        for tail in ["SG.ghp_", "a.aaaaaaaa.a", ".x.y"] {
            let text = "eyJsk-".repeat(2000) + tail;
            let (_, looked) = find(text.as_bytes(), 0);
            assert!(looked <= MOST * text.len(), "{tail}: {looked} of {}", text.len());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_linear(
            unit in proptest::collection::vec(proptest::sample::select(parts()), 1..6),
            tail in proptest::collection::vec(proptest::sample::select(parts()), 0..20),
        ) {
            let text = unit.concat().repeat(200) + &tail.concat();
            let (_, looked) = find(text.as_bytes(), 0);
            proptest::prop_assert!(looked <= MOST * text.len(), "{text}: {looked}");
        }
    }
}
