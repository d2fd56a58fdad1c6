//! Numbers as they stand in texts: where their digits are, which commas part thousands, whether a minus before them is theirs.

use std::ops::Range;

/// A number in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenNumber<'a> {
    text: &'a str,
    /// Where its digits are, those of its thousands and decimals among them.
    pub place: Range<usize>,
}

impl<'a> WrittenNumber<'a> {
    /// The numbers of a text, in order: `1,200.50` is one, `1,2` two, `1.2.3` two.
    pub fn all(text: &'a str) -> impl Iterator<Item = Self> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = from + text.as_bytes().get(from..)?.iter().position(u8::is_ascii_digit)?;
            from = end(text.as_bytes(), start);
            Some(Self { text, place: start..from })
        })
    }

    /// The text before its digits.
    pub fn before(&self) -> &'a str {
        self.text.get(..self.place.start).unwrap_or_default()
    }

    /// The text behind its digits.
    pub fn after(&self) -> &'a str {
        self.text.get(self.place.end..).unwrap_or_default()
    }

    /// Its value, without its sign.
    pub fn value(&self) -> f64 {
        self.text.get(self.place.clone()).and_then(|digits| digits.replace(',', "").parse().ok()).unwrap_or_default()
    }

    /// Whether it is a piece of something longer, of a version or a date: `1.2` and `3` in `1.2.3`.
    pub fn is_piece(&self) -> bool {
        let digit = |c: char| c.is_ascii_digit();
        self.after().strip_prefix('.').is_some_and(|after| after.starts_with(digit))
            || self.before().strip_suffix('.').is_some_and(|before| before.ends_with(digit))
    }

    /// How many bytes before its digits are a minus that is its own: one that neither subtracts nor joins.
    pub fn sign(&self) -> usize {
        let Some(sign) = self.before().chars().next_back().filter(|c| matches!(c, '-' | '\u{2212}')) else { return 0 };
        let owner = self.before().strip_suffix(sign).and_then(|before| before.chars().next_back());
        let joins = owner.is_some_and(|c| c.is_alphanumeric() || matches!(c, ')' | ']' | '_' | '-'));
        if joins { 0 } else { sign.len_utf8() }
    }
}

/// Where a number ends that begins with the digit at `start`.
fn end(bytes: &[u8], start: usize) -> usize {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = start + digits(start);
    if end - start <= 3 {
        while bytes.get(end) == Some(&b',') && digits(end + 1) == 3 {
            end += 4;
        }
    }
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_decimals_and_signs() {
        for (text, expected) in [
            ("12 boxes, 1,200.50 in all; v2. and 7,", &[(12.0, 0), (1200.5, 0), (2.0, 0), (7.0, 0)][..]),
            ("1,2 12,345,678 1234,567", &[(1.0, 0), (2.0, 0), (12_345_678.0, 0), (1234.0, 0), (567.0, 0)]),
            ("1.2.3", &[(1.2, 0), (3.0, 0)]),
            (
                "x = -3, (-4), 5 - 6, \u{2212}7, a-8, (9)-1",
                &[(3.0, 1), (4.0, 1), (5.0, 0), (6.0, 0), (7.0, 3), (8.0, 0), (9.0, 0), (1.0, 0)],
            ),
            ("\u{ff11}\u{b2} none", &[]),
            ("", &[]),
        ] {
            let found: Vec<(f64, usize)> = WrittenNumber::all(text).map(|n| (n.value(), n.sign())).collect();
            assert_eq!(found, expected, "{text}");
        }
        for (text, pieces) in [("1.2.3", [true, true]), ("1.2 3.", [false, false]), ("1,2.", [false, false])] {
            assert!(WrittenNumber::all(text).map(|number| number.is_piece()).eq(pieces), "{text}");
        }
        let last = WrittenNumber::all("a 12 b").last().expect("a number");
        assert_eq!((last.before(), last.after(), last.place), ("a ", " b", 2..4));
    }
}
