//! Where keys may begin: each three bytes of a text are looked up in a table of 16 kB, six places at a time.
//!
//! An automaton of all beginnings does the same, a byte after the other, each state looked up where the one before said:
//! it was a tenth of what a request cost. Here no look waits for another, and a text that holds no key has few places that
//! need a second look.

use std::{ops::Range, sync::LazyLock};

use super::table::{KeyShape, SHAPES};

/// Bytes that are looked at together: no shape begins with fewer.
const HEAD: usize = 3;
/// Places that are looked at in one go: eight bytes are read, and as many of them begin a head.
const PLACES: usize = 8 - HEAD + 1;
/// Bits of a mark. Of all words of three letters fewer than one in a hundred has a shape's.
const BITS: u32 = 14;
/// Spreads three bytes over the marks: of 400 odd numbers the one that leaves fewest places in English and in code.
const SPREAD: u64 = 0x00a9_7d99;
/// What makes small letters of capitals.
const CASES: u64 = 0x2020_2020_2020_2020;

static BEGINNINGS: LazyLock<Beginnings> = LazyLock::new(Beginnings::new);

/// The beginnings of all shapes by the mark of their first bytes.
struct Beginnings {
    /// The place of the first shape that has the mark, counted from 1; 0 where none has.
    first: [u8; 1 << BITS],
    /// Sorted by mark; of one mark, the shortest first.
    beginnings: Vec<Beginning>,
}

/// How one shape begins.
struct Beginning {
    mark: usize,
    /// Its first bytes in small letters, eight at most, and which bits of eight they are: most places that have its mark
    /// hold another word, and are told apart by this alone.
    head: u64,
    bits: u64,
    shape: &'static KeyShape,
}

/// The places from there on where a shape begins, whatever the case of its letters, in the order of the text.
pub(super) fn find(text: &[u8], from: usize) -> impl Iterator<Item = (&'static KeyShape, Range<usize>)> {
    let table = &*BEGINNINGS;
    let tail = text.get(from..).unwrap_or_default();
    let (mut next, mut found) = (0, 0_u32);
    let places = std::iter::from_fn(move || {
        while found == 0 {
            let rest = tail.get(next..).filter(|rest| !rest.is_empty())?;
            found = table.places(folded(rest));
            next += PLACES;
        }
        let first = found.trailing_zeros() as usize;
        found &= found - 1;
        Some(from + next - PLACES + first)
    });
    places.flat_map(move |start| {
        let eight = folded(text.get(start..).unwrap_or_default());
        let alike = table.with_mark(mark(eight)).filter(move |known| eight & known.bits == known.head);
        alike.filter_map(move |known| begins(text, start, known.shape))
    })
}

impl Beginnings {
    fn new() -> Self {
        let mut beginnings: Vec<_> = SHAPES.iter().map(Beginning::new).collect();
        beginnings.sort_by_key(|known| (known.mark, known.shape.begins.len()));
        let mut first = [0; 1 << BITS];
        for (place, known) in (1..=u8::MAX).zip(&beginnings).rev() {
            if let Some(first) = first.get_mut(known.mark) {
                *first = place;
            }
        }
        Self { first, beginnings }
    }

    /// A bit for each of the first places of eight bytes where a head has a mark.
    #[inline]
    fn places(&self, eight: u64) -> u32 {
        let first: [u8; PLACES] = std::array::from_fn(|at| self.first(mark(eight >> (8 * at))));
        // Nearly always none has: which of them does is worked out only then.
        if first.iter().fold(0, |any, first| any | first) == 0 {
            return 0;
        }
        (0..).zip(first).fold(0, |found, (at, first)| found | u32::from(first > 0) << at)
    }

    #[inline]
    fn first(&self, mark: usize) -> u8 {
        self.first.get(mark).copied().unwrap_or_default()
    }

    fn with_mark(&self, mark: usize) -> impl Iterator<Item = &Beginning> {
        let rest = usize::from(self.first(mark))
            .checked_sub(1)
            .and_then(|first| self.beginnings.get(first..))
            .unwrap_or_default();
        rest.iter().take_while(move |known| known.mark == mark)
    }
}

impl Beginning {
    fn new(shape: &'static KeyShape) -> Self {
        let text = shape.begins.as_bytes();
        let bits = u64::MAX >> (8 * (8 - text.len().min(8)));
        let head = folded(text);
        Self { mark: mark(head), head: head & bits, bits, shape }
    }
}

/// The first eight bytes, or as many as there are, in small letters.
#[inline]
fn folded(text: &[u8]) -> u64 {
    let eight = text.first_chunk().copied().unwrap_or_else(|| {
        let mut eight = [0; 8];
        eight.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
        eight
    });
    u64::from_le_bytes(eight) | CASES
}

/// The mark of the first three of eight bytes.
#[inline]
fn mark(eight: u64) -> usize {
    usize::try_from((eight << 40).wrapping_mul(SPREAD) >> (u64::BITS - BITS)).unwrap_or_default()
}

fn begins(text: &[u8], start: usize, shape: &'static KeyShape) -> Option<(&'static KeyShape, Range<usize>)> {
    let range = start..start + shape.begins.len();
    text.get(range.clone())?.eq_ignore_ascii_case(shape.begins.as_bytes()).then_some((shape, range))
}

#[cfg(test)]
mod tests {
    use aho_corasick::{AhoCorasick, Input};
    use proptest::prelude::Strategy as _;

    use super::*;

    #[test]
    fn every_shape_can_be_looked_up_and_few_words_are() {
        assert!(SHAPES.iter().all(|shape| shape.begins.len() >= HEAD));
        assert!(SHAPES.len() <= usize::from(u8::MAX), "a place is a byte");
        let letters = || b'a'..=b'z';
        let heads = letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| [a, b, c])));
        let (all, marked) = heads.fold((0, 0), |(all, marked), head| {
            (all + 1, marked + usize::from(BEGINNINGS.first(mark(folded(&head))) > 0))
        });
        assert!(marked * 100 < all, "{marked} of {all}");
    }

    proptest::proptest! {
        #[test]
        fn an_automaton_finds_the_same(
            parts in proptest::collection::vec(
                proptest::prop_oneof![
                    (0..SHAPES.len()).prop_map(|shape| SHAPES[shape].begins.to_owned()),
                    (0..SHAPES.len()).prop_map(|shape| SHAPES[shape].begins.to_ascii_uppercase()),
                    "[ -~é]{0,4}",
                ],
                0..12,
            ),
            from in 0_usize..20,
        ) {
            let text = parts.concat();
            let from = from.min(text.len());
            let begins = SHAPES.iter().map(|shape| shape.begins);
            let all = AhoCorasick::builder().ascii_case_insensitive(true).build(begins).expect("built");
            let mut expected: Vec<_> = all
                .find_overlapping_iter(Input::new(text.as_bytes()).range(from..))
                .map(|found| (found.start(), found.end(), SHAPES[found.pattern().as_usize()].begins))
                .collect();
            expected.sort_unstable();
            let found: Vec<_> =
                find(text.as_bytes(), from).map(|(shape, at)| (at.start, at.end, shape.begins)).collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
