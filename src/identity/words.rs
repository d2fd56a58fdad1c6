//! Words of a text as lineage compares them: letters and digits only, so that quoting, escapes and layout do not matter.

use std::{ops::Range, sync::OnceLock};

use memchr::memmem::Finder;
use twox_hash::XxHash3_64;

use super::fingerprint::Mark;

/// Words of a shingle. Five words of real prose are hardly ever said twice by chance.
const SHINGLE: usize = 5;
/// Shingles taken of one text; the rest of a longer one adds nothing that decides.
pub(super) const SHINGLES_MAX: usize = 8192;
/// Shingles of a text that stands for itself whole; of a longer one some are [`chosen`].
pub(super) const ALL_MAX: usize = 32;
/// Of so many shingles in a row, one at least is chosen: who quotes 12 words of a long text is found.
pub(super) const WINDOW: usize = 8;

/// A text's words. A line break written as an escape (a quote inside JSON) parts words too.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut words = Marked { text, at: 0 };
    std::iter::from_fn(move || words.next().and_then(|(word, _)| text.get(word)))
}

/// Where a text's words stand, and the mark of each, found in one pass.
struct Marked<'a> {
    text: &'a str,
    at: usize,
}

impl Marked<'_> {
    #[inline]
    fn next(&mut self) -> Option<(Range<usize>, Mark)> {
        let bytes = self.text.as_bytes();
        loop {
            let rest = bytes.get(self.at..)?;
            let gap = rest.iter().position(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())?;
            self.at += gap;
            let escaped = gap > 0 && rest.get(gap - 1) == Some(&b'\\');
            if escaped && rest.get(gap).is_some_and(|byte| b"ntr".contains(byte)) {
                self.at += 1;
            }
            let start = self.at;
            let (length, mark) = marked_word(self.text, start);
            self.at += length;
            if length > 0 {
                return Some((start..self.at, mark));
            }
            // No word behind an escape, which the next escape may follow, or a sign beyond ASCII.
            let sign = self.text.get(start..)?.chars().next().filter(|sign| !sign.is_ascii());
            self.at += sign.map_or(0, char::len_utf8);
        }
    }
}

/// Bytes of the word that stands at `start`, and its mark. Most words are ASCII: read and marked eight bytes at once.
#[inline]
fn marked_word(text: &str, start: usize) -> (usize, Mark) {
    let (mut rest, mut mark) = (text.as_bytes().get(start..).unwrap_or_default(), 0);
    let mut length = 0;
    loop {
        let eight = rest.first_chunk::<8>().map_or_else(|| fewer(rest), |eight| u64::from_le_bytes(*eight));
        let others = not_alphanumeric(eight);
        if others == 0 {
            mark = mix(mark, eight);
            length += 8;
            rest = rest.get(8..).unwrap_or_default();
            continue;
        }
        let signs = others & others.wrapping_neg();
        if eight & signs != 0 {
            return beyond_ascii(text.get(start..).unwrap_or_default());
        }
        // What stands below the first sign: the sign is known by the high bit of its byte.
        return (length + (signs.trailing_zeros() / 8) as usize, mix(mark, eight & ((signs >> 7) - 1)));
    }
}

/// The same for a word that holds more than ASCII, or ends with it.
#[cold]
fn beyond_ascii(text: &str) -> (usize, Mark) {
    let end = text.char_indices().find(|(_, sign)| !sign.is_alphanumeric()).map_or(text.len(), |(end, _)| end);
    let mut rest = text.as_bytes().get(..end).unwrap_or_default();
    let mut mark = 0;
    while let Some((eight, after)) = rest.split_first_chunk::<8>() {
        mark = mix(mark, u64::from_le_bytes(*eight));
        rest = after;
    }
    (end, mix(mark, fewer(rest)))
}

/// Less than eight bytes, behind them zeros, which no word holds.
#[cold]
fn fewer(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |eight, byte| eight << 8 | u64::from(*byte))
}

/// Takes eight more bytes into a mark: both halves of a product, so that each bit counts everywhere.
fn mix(mark: Mark, eight: u64) -> Mark {
    // Digits of pi: odd and without a pattern.
    let (low, high) = (mark ^ eight ^ 0x243f_6a88_85a3_08d3).carrying_mul(0x1319_8a2e_0370_7345, 0);
    low ^ high
}

/// The high bit of each of eight bytes that is no ASCII letter or digit.
fn not_alphanumeric(bytes: u64) -> u64 {
    const EACH: u64 = u64::MAX / 255;
    const HIGH: u64 = EACH * 0x80;
    let plain = bytes & !HIGH;
    // Of a byte below 128, adding 128 - n sets the high bit from n on.
    let from = |bytes: u64, first: u8| bytes + EACH * (0x80 - u64::from(first));
    let lower = plain | (EACH * 0x20);
    let letters = from(lower, b'a') & !from(lower, b'z' + 1);
    let digits = from(plain, b'0') & !from(plain, b'9' + 1);
    (!(letters | digits) | bytes) & HIGH
}

/// Marks of each five words in a row, in order; none for a shorter text.
pub(super) fn shingles(text: &str) -> Vec<Mark> {
    let mut marks = Vec::with_capacity((text.len() / 8).min(SHINGLES_MAX));
    each_shingle(text, |mark| marks.push(mark));
    marks
}

/// Hands over what [`shingles`] lists.
pub(super) fn each_shingle(text: &str, mut visit: impl FnMut(Mark)) {
    let mut words = Marked { text, at: 0 };
    let mut last = [0_u64; SHINGLE];
    for at in 0..SHINGLES_MAX + SHINGLE {
        let Some((_, mark)) = words.next() else { return };
        last.rotate_left(1);
        last[SHINGLE - 1] = mark;
        if at + 1 >= SHINGLE {
            visit(last.iter().fold(0_u64, |sum, mark| sum.rotate_left(13).wrapping_add(*mark)));
        }
    }
}

/// Places of the shingles that a served text is known by, in order: all of a short text, of a longer one the least of
/// each [`WINDOW`] in a row. What two texts share is so chosen alike in both (winnowing: Schleimer, Wilkerson and Aiken,
/// 2003).
pub(super) fn chosen(marks: &[Mark]) -> Vec<usize> {
    if marks.len() <= ALL_MAX {
        return (0..marks.len()).collect();
    }
    let mut chosen: Vec<usize> = Vec::with_capacity(marks.len() / 4);
    let mut least = 0;
    for (start, window) in marks.windows(WINDOW).enumerate() {
        let end = start + WINDOW - 1;
        let (Some(last), known) = (window.last(), marks.get(least).filter(|_| start > 0 && least >= start)) else {
            break;
        };
        least = match known {
            Some(known) if last >= known => continue,
            Some(_) => end,
            None => window.iter().enumerate().rev().min_by_key(|(_, mark)| **mark).map_or(end, |(at, _)| start + at),
        };
        chosen.push(least);
    }
    chosen
}

/// The words with single blanks between and around them, at most about `longest` bytes.
fn plain(text: &str, longest: usize) -> String {
    let mut plain = String::with_capacity(text.len().min(longest) + 2);
    plain.push(' ');
    for word in words(text) {
        if plain.len() + word.len() > longest {
            break;
        }
        plain.push_str(word);
        plain.push(' ');
    }
    plain
}

/// Fewest words of a text that is looked for in another; shorter ones are held by their equals only.
const WORDS_MIN: usize = 3;
/// Shortest text that is held by another sign for sign, in bytes: what is mostly signs has few words.
const SIGNS_MIN: usize = 12;

/// What is looked for in other texts; made ready when it first is, because most never are.
#[derive(Debug, Clone)]
struct Part {
    bytes: Box<[u8]>,
    finder: OnceLock<Finder<'static>>,
}

impl Part {
    fn new(text: &str) -> Self {
        Self { bytes: text.as_bytes().into(), finder: OnceLock::new() }
    }

    fn stands_in(&self, text: &Self) -> bool {
        let finder = || self.finder.get_or_init(|| Finder::new(&self.bytes).into_owned());
        self.bytes.len() <= text.bytes.len() && finder().find(&text.bytes).is_some()
    }
}

/// A text's plain words, ready to be looked for: one request is compared with many texts.
#[derive(Debug, Clone)]
pub(super) struct Words {
    plain: Part,
    enough: bool,
}

impl Words {
    /// About `longest` bytes of a text's words.
    pub(super) fn new(text: &str, longest: usize) -> Self {
        let words = plain(text, longest);
        let enough = words.trim().split(' ').take(WORDS_MIN).count() == WORDS_MIN;
        Self { plain: Part::new(&words), enough }
    }

    /// Whether they are enough to be looked for in other texts.
    pub(super) fn are_enough(&self) -> bool {
        self.enough
    }

    /// Whether the other ones hold them all, in a row.
    pub(super) fn are_in(&self, other: &Self) -> bool {
        let (own, other) = (&self.plain, &other.plain);
        if self.enough { own.stands_in(other) } else { own.bytes.len() > 1 && own.bytes == other.bytes }
    }
}

/// A text that a run opens with.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    words: Words,
    text: Part,
}

impl Opening {
    /// The beginning of a text, about `longest` bytes of it.
    pub(super) fn new(text: &str, longest: usize) -> Self {
        let trimmed = text.trim();
        let end = (0..=trimmed.len().min(longest)).rev().find(|end| trimmed.is_char_boundary(*end)).unwrap_or_default();
        let signs = trimmed.get(..end).unwrap_or_default();
        Self { words: Words::new(text, longest), text: Part::new(signs) }
    }

    /// Whether it holds the other one whole.
    pub(super) fn holds(&self, other: &Self) -> bool {
        let by_sign = || other.text.bytes.len() >= SIGNS_MIN && other.text.stands_in(&self.text);
        other.words.are_in(&self.words) || by_sign()
    }

    /// Equal for texts of the same words.
    pub(super) fn mark(&self) -> Mark {
        XxHash3_64::oneshot(&self.words.plain.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_found_whatever_their_clothes() {
        let said = shingles("The tide rises twice a day, they say.");
        for (text, quotes) in [
            ("Writer wrote: \"The tide rises\\ntwice a day\" — fine", true),
            ("the tide rises twice", false),
            ("…The tide rises — twice a week.", true),
            ("rises twice a day, he says", false),
        ] {
            assert_eq!(shingles(text).iter().any(|mark| said.contains(mark)), quotes, "{text}");
        }
        assert!(shingles("APPROVE it now please").is_empty());
    }

    #[test]
    fn a_long_quote_of_a_long_text_is_found_by_what_was_chosen() {
        let text =
            |from: usize, to: usize| (from..to).map(|at| format!("w{} ", at * 7919 % 10_007)).collect::<String>();
        let said = shingles(&text(0, 2000));
        let places = chosen(&said);
        assert!(places.len() < said.len() / 4 && places.is_sorted(), "{} of {}", places.len(), said.len());
        let kept: std::collections::HashSet<Mark> = places.iter().map(|at| said[*at]).collect();
        assert_eq!(kept.len(), places.len(), "none twice");
        for from in 0..2000 - SHINGLE - WINDOW {
            let quote = shingles(&text(from, from + SHINGLE + WINDOW - 1));
            assert!(quote.iter().any(|mark| kept.contains(mark)), "the words from {from}");
        }
        assert_eq!(chosen(&said[..ALL_MAX]).len(), ALL_MAX, "a short text is known by all");
        assert!(chosen(&[]).is_empty());
        assert_eq!(chosen(&[7; 40]), [7, 15, 23, 31, 39], "one of equal ones");
    }

    proptest::proptest! {
        #[test]
        fn words_are_what_letters_and_digits_make(text in "[ -~é世\n«]{0,60}") {
            let plain = text.replace('\\', " ");
            let expected: Vec<&str> = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
            proptest::prop_assert_eq!(words(&plain).collect::<Vec<_>>(), expected);
            proptest::prop_assert!(words(&text).all(|word| word.chars().all(char::is_alphanumeric)));
        }
    }

    #[test]
    fn escaped_line_breaks_part_words() {
        for (text, expected) in
            [(r"one\n\nnext\t\ttwo", "one next two"), (r"\n\n\n", ""), (r"\r\n— \nnn\", "nn"), (r"\«\néa\b", "éa b")]
        {
            assert_eq!(words(text).collect::<Vec<_>>().join(" "), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_word_has_one_mark_wherever_it_stands(text in "[ -~é世\n«]{0,60}") {
            let mut words = Marked { text: &text, at: 0 };
            while let Some((word, mark)) = words.next() {
                proptest::prop_assert_eq!(beyond_ascii(&text[word.clone()]), (word.len(), mark));
            }
        }
    }

    #[test]
    fn openings_hold_each_other() {
        for (text, part, held) in [
            ("Task:\nHow do bees navigate?", "How do bees navigate?", true),
            ("How do bees navigate?", "Task: How do bees navigate?", false),
            ("Hi!", " Hi", true),
            ("Hi there", "Hi", false),
            ("How do bees navigate?", "do bees", false),
            ("Classify:\nReview: for(;;) {}", "Review: for(;;) {}", true),
            ("", "", false),
        ] {
            assert_eq!(Opening::new(text, 99).holds(&Opening::new(part, 99)), held, "{text} / {part}");
        }
        assert_eq!(Opening::new("Say  hi!", 99).mark(), Opening::new("Say hi", 99).mark());
    }
}
