//! Words of a text as lineage compares them: shingles, openings, what stands in what.

use std::{cell::Cell, ops::ControlFlow, sync::OnceLock};

use memchr::memmem::Finder;
use twox_hash::XxHash3_64;

use super::{
    fingerprint::Mark,
    marked::{each_word, mark_of},
};

/// Words of a shingle. Five words of real prose are hardly ever said twice by chance.
const SHINGLE: usize = 5;
/// Bits by which a word's mark is turned for each word that follows it in a shingle.
const TURN: u32 = 13;
/// Shingles taken of one text; the rest of a longer one adds nothing that decides.
pub(super) const SHINGLES_MAX: usize = 8192;
/// Shingles of a text that stands for itself whole; of a longer one some are [`chosen`].
pub(super) const ALL_MAX: usize = 32;
/// Of so many shingles in a row, one at least is chosen: who quotes 12 words of a long text is found.
pub(super) const WINDOW: usize = 8;

/// Marks of each five words in a row, in order; none for a shorter text.
pub(super) fn shingles(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    fill_shingles(&mut marks, text);
    marks
}

/// Puts what [`shingles`] gives in the place of what is there.
pub(super) fn fill_shingles(marks: &mut Vec<Mark>, text: &str) {
    let most = SHINGLES_MAX + SHINGLE - 1;
    marks.clear();
    let bytes = text.as_bytes();
    let _ = each_word(text, |word| {
        marks.push(mark_of(bytes.get(word.start..).unwrap_or_default(), word.len()));
        if marks.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    // The first word of a shingle gives it its place.
    for words in Cell::from_mut(marks.as_mut_slice()).as_slice_of_cells().array_windows::<SHINGLE>() {
        let shingle = words.iter().fold(0, |shingle: Mark, word| shingle.rotate_left(TURN) ^ word.get());
        words[0].set(shingle);
    }
    marks.truncate((marks.len() + 1).saturating_sub(SHINGLE));
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
fn joined_words(text: &str, longest: usize) -> String {
    let mut plain = String::with_capacity(text.len().min(longest) + 2);
    plain.push(' ');
    let _ = each_word(text, |word| {
        let word = text.get(word).unwrap_or_default();
        if plain.len() + word.len() > longest {
            return ControlFlow::Break(());
        }
        plain.push_str(word);
        plain.push(' ');
        ControlFlow::Continue(())
    });
    plain
}

/// Fewest words of a text that is looked for in another; shorter ones are held by their equals only.
const WORDS_MIN: usize = 3;
/// Shortest text that is held by another sign for sign, in bytes: what is mostly signs has few words.
const SIGNS_MIN: usize = 12;

/// Bytes of a text's beginning that are looked for first: most texts do not hold them, and a finder of few bytes is
/// soon made.
const HEAD: usize = 16;

/// What is looked for in other texts; made ready when it first is, because most never are.
#[derive(Debug, Clone)]
struct WordsPart {
    bytes: Box<[u8]>,
    head: OnceLock<Finder<'static>>,
    finder: OnceLock<Finder<'static>>,
}

impl WordsPart {
    fn new(text: &str) -> Self {
        Self { bytes: text.as_bytes().into(), head: OnceLock::new(), finder: OnceLock::new() }
    }

    fn stands_in(&self, text: &Self) -> bool {
        let head = || self.bytes.get(..HEAD).unwrap_or(&self.bytes);
        let is_in = |place: &OnceLock<Finder<'static>>, part: &[u8]| {
            place.get_or_init(|| Finder::new(part).into_owned()).find(&text.bytes).is_some()
        };
        self.bytes.len() <= text.bytes.len() && is_in(&self.head, head()) && is_in(&self.finder, &self.bytes)
    }
}

/// A text's plain words, ready to be looked for: one request is compared with many texts.
#[derive(Debug, Clone)]
pub(super) struct Words {
    plain: WordsPart,
    enough: bool,
}

impl Words {
    /// About `longest` bytes of a text's words.
    pub(super) fn new(text: &str, longest: usize) -> Self {
        let words = joined_words(text, longest);
        let enough = words.trim().split(' ').take(WORDS_MIN).count() == WORDS_MIN;
        Self { plain: WordsPart::new(&words), enough }
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
    text: WordsPart,
}

impl Opening {
    /// The beginning of a text, about `longest` bytes of it.
    pub(super) fn new(text: &str, longest: usize) -> Self {
        let trimmed = text.trim();
        let end = (0..=trimmed.len().min(longest)).rev().find(|end| trimmed.is_char_boundary(*end)).unwrap_or_default();
        let signs = trimmed.get(..end).unwrap_or_default();
        Self { words: Words::new(text, longest), text: WordsPart::new(signs) }
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
    use super::{super::marked::words, *};

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

    #[test]
    fn a_shingle_is_its_words_in_order() {
        let text: String = (0..50).map(|at| format!("w{} ", at * at % 17)).collect();
        let marks: Vec<Mark> = words(&text).iter().map(|word| mark_of(word.as_bytes(), word.len())).collect();
        let joined = |five: &[Mark]| five.iter().fold(0_u64, |shingle, mark| shingle.rotate_left(TURN) ^ mark);
        assert_eq!(shingles(&text), marks.windows(SHINGLE).map(joined).collect::<Vec<_>>());
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
