//! Where keys may begin: each three bytes of a text are looked up in a table of 4 kB.
//!
//! An automaton of all beginnings does the same, a byte after the other, each state looked up where the one before said:
//! it was a tenth of what a request cost. Here no look waits for another, and a text that holds no key has few places that
//! need a second look.

use std::{ops::Range, sync::LazyLock};

use super::table::{KeyShape, SHAPES};

/// Bytes that are looked at together: no shape begins with fewer.
const HEAD: usize = 3;
/// Bits of a mark. Of all words of three letters fewer than one in two hundred has a shape's.
const BITS: u32 = 15;
/// An odd number whose multiples spread three bytes over the marks (2³² divided by the golden ratio).
const SPREAD: u32 = 0x9e37_79b9;

static BEGINNINGS: LazyLock<Beginnings> = LazyLock::new(Beginnings::new);

/// The beginnings of all shapes by the mark of their first bytes.
struct Beginnings {
    marked: [u64; 1 << (BITS - 6)],
    /// Sorted by mark; of one mark, the shortest first.
    shapes: Vec<(u32, &'static KeyShape)>,
}

/// The places from there on where a shape begins, whatever the case of its letters, in the order of the text.
pub(super) fn find(text: &[u8], from: usize) -> impl Iterator<Item = (&'static KeyShape, Range<usize>)> {
    let table = &*BEGINNINGS;
    let heads = text.get(from..).unwrap_or_default().windows(HEAD).enumerate();
    let marked = heads.filter_map(move |(at, head)| {
        let mark = mark(head);
        table.has(mark).then_some((from + at, mark))
    });
    marked.flat_map(move |(start, mark)| table.of(mark).filter_map(move |shape| begins(text, start, shape)))
}

impl Beginnings {
    fn new() -> Self {
        let mut shapes: Vec<_> = SHAPES.iter().map(|shape| (mark(shape.begins.as_bytes()), shape)).collect();
        shapes.sort_by_key(|(mark, shape)| (*mark, shape.begins.len()));
        let mut marked = [0; 1 << (BITS - 6)];
        for (mark, _) in &shapes {
            if let Some(word) = marked.get_mut(*mark as usize >> 6) {
                *word |= 1 << (mark & 63);
            }
        }
        Self { marked, shapes }
    }

    #[inline]
    fn has(&self, mark: u32) -> bool {
        self.marked.get(mark as usize >> 6).is_some_and(|word| word >> (mark & 63) & 1 == 1)
    }

    fn of(&self, mark: u32) -> impl Iterator<Item = &'static KeyShape> {
        let first = self.shapes.partition_point(|(other, _)| *other < mark);
        let rest = self.shapes.get(first..).unwrap_or_default();
        rest.iter().take_while(move |(other, _)| *other == mark).map(|(_, shape)| *shape)
    }
}

/// The mark of what a text begins with; letters of both cases have the same.
#[inline]
fn mark(head: &[u8]) -> u32 {
    let &[a, b, c, ..] = head else { return 0 };
    (u32::from_le_bytes([a, b, c, 0]) | 0x20_2020).wrapping_mul(SPREAD) >> (32 - BITS)
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
        let letters = || b'a'..=b'z';
        let heads = letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| [a, b, c])));
        let (all, marked) =
            heads.fold((0, 0), |(all, marked), head| (all + 1, marked + usize::from(BEGINNINGS.has(mark(&head)))));
        assert!(marked * 200 < all, "{marked} of {all}");
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
