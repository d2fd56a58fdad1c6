//! Words of a text as lineage compares them: letters and digits only, so that quoting, escapes and layout do not matter.

use memchr::memmem::Finder;
use twox_hash::XxHash3_64;

use super::fingerprint::Mark;

/// Words of a shingle. Five words of real prose are hardly ever said twice by chance.
const SHINGLE: usize = 5;
/// Shingles taken of one text; the rest of a longer one adds nothing that decides.
pub(super) const SHINGLES_MAX: usize = 8192;

/// A text's words. A line break written as an escape (a quote inside JSON) parts words too.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter_map(move |word| {
        let at = word.as_ptr().addr() - text.as_ptr().addr();
        let escaped = at.checked_sub(1).and_then(|before| text.as_bytes().get(before)) == Some(&b'\\');
        let word = if escaped { word.strip_prefix(['n', 't', 'r']).unwrap_or(word) } else { word };
        (!word.is_empty()).then_some(word)
    })
}

/// Marks of each five words in a row, in order; none for a shorter text.
pub(super) fn shingles(text: &str) -> Vec<Mark> {
    let marks: Vec<Mark> =
        words(text).take(SHINGLES_MAX + SHINGLE).map(|word| XxHash3_64::oneshot(word.as_bytes())).collect();
    let of = |window: &[Mark]| window.iter().fold(0_u64, |sum, mark| sum.rotate_left(13).wrapping_add(*mark));
    marks.windows(SHINGLE).map(of).collect()
}

/// The words with single blanks between and around them, at most about `longest` bytes.
fn plain(text: &str, longest: usize) -> String {
    let mut plain = String::from(" ");
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

/// A text's plain words, ready to be looked for: one request is compared with many texts.
#[derive(Debug, Clone)]
pub(super) struct Words {
    finder: Finder<'static>,
    enough: bool,
}

impl Words {
    /// About `longest` bytes of a text's words.
    pub(super) fn new(text: &str, longest: usize) -> Self {
        let words = plain(text, longest);
        let enough = words.trim().split(' ').count() >= WORDS_MIN;
        Self { finder: Finder::new(&words).into_owned(), enough }
    }

    /// Whether they are enough to be looked for in other texts.
    pub(super) fn are_enough(&self) -> bool {
        self.enough
    }

    /// Whether the other ones hold them all, in a row.
    pub(super) fn are_in(&self, other: &Self) -> bool {
        let (own, other) = (self.finder.needle(), other.finder.needle());
        if self.enough { stands_in(&self.finder, other) } else { own.len() > 1 && own == other }
    }
}

/// A text that a run opens with.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    words: Words,
    text: Finder<'static>,
}

impl Opening {
    /// The beginning of a text, about `longest` bytes of it.
    pub(super) fn new(text: &str, longest: usize) -> Self {
        let trimmed = text.trim();
        let end = (0..=trimmed.len().min(longest)).rev().find(|end| trimmed.is_char_boundary(*end)).unwrap_or_default();
        let signs = trimmed.get(..end).unwrap_or_default();
        Self { words: Words::new(text, longest), text: Finder::new(signs).into_owned() }
    }

    /// Whether it holds the other one whole.
    pub(super) fn holds(&self, other: &Self) -> bool {
        let by_sign = || other.text.needle().len() >= SIGNS_MIN && stands_in(&other.text, self.text.needle());
        other.words.are_in(&self.words) || by_sign()
    }

    /// Equal for texts of the same words.
    pub(super) fn mark(&self) -> Mark {
        XxHash3_64::oneshot(self.words.finder.needle())
    }
}

fn stands_in(part: &Finder<'_>, text: &[u8]) -> bool {
    part.needle().len() <= text.len() && part.find(text).is_some()
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
