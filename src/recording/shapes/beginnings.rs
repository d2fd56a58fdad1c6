//! Where a key may begin. Nearly all text holds no such place, so it is looked through many bytes at a time; what begins at
//! the few places that are left is then compared.

use std::{array, ops::Range, sync::LazyLock};

use aho_corasick::{
    Span,
    packed::{Config, Searcher},
};

use super::table::{KeyShape, SHAPES};

/// Finds the next place where a shape begins, in lower case.
static PLACES: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let build = |config: &mut Config| {
        let mut builder = config.builder();
        for shape in SHAPES {
            // What begins with a shorter one is found with it.
            if !SHAPES.iter().any(|other| other.begins.len() < shape.begins.len() && begins(shape.begins, other)) {
                builder.add(shape.begins.to_ascii_lowercase());
            }
        }
        builder.build()
    };
    // A processor without the instructions for the quick way has the slow one.
    build(Config::new().heuristic_pattern_limits(false)).or_else(|| build(Config::new().only_rabin_karp(true)))
});

/// The shapes by their first byte, in lower case.
static BY_FIRST: LazyLock<[Vec<&'static KeyShape>; 256]> = LazyLock::new(|| {
    let first = |shape: &KeyShape| shape.begins.as_bytes().first().map_or(0, u8::to_ascii_lowercase);
    array::from_fn(|byte| SHAPES.iter().filter(|shape| usize::from(first(shape)) == byte).collect())
});

/// Tells of each beginning at or behind `from`, in whatever case, by its place. Says whether it could look.
pub(super) fn each(text: &[u8], from: usize, mut found: impl FnMut(&'static KeyShape, Range<usize>)) -> bool {
    let Some(places) = PLACES.as_ref() else { return false };
    let lower = text.get(from..).unwrap_or_default().to_ascii_lowercase();
    let mut next = 0;
    while let Some(place) = places.find_in(&lower, Span::from(next..lower.len())) {
        let at = place.start();
        next = at + 1;
        let rest = lower.get(at..).unwrap_or_default();
        let alike = rest.first().and_then(|byte| BY_FIRST.get(usize::from(*byte)));
        for shape in alike.into_iter().flatten().filter(|shape| begins(rest, shape)) {
            found(shape, from + at..from + at + shape.begins.len());
        }
    }
    true
}

fn begins(text: impl AsRef<[u8]>, shape: &KeyShape) -> bool {
    let head = text.as_ref().get(..shape.begins.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(shape.begins.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_searcher() {
        assert!(PLACES.is_some());
    }

    proptest::proptest! {
        #[test]
        fn every_beginning_is_found_at_its_place(
            parts in proptest::collection::vec((0..SHAPES.len() + 2, proptest::bool::ANY, 0..20_usize), 0..60),
            from in 0..40_usize,
        ) {
            let part = |(shape, upper, cut): &(usize, bool, usize)| {
                let text = SHAPES.get(*shape).map_or("a word \u{e9} ", |shape| shape.begins);
                let text = text.get(..text.len().min(cut + 1)).unwrap_or(text);
                if *upper { text.to_uppercase() } else { text.to_owned() }
            };
            let text: String = parts.iter().map(part).collect();
            let text = text.as_bytes();
            let mut seen = Vec::new();
            each(text, from, |shape, span| seen.push((span.start, span.end, shape.begins)));
            let mut plain = Vec::new();
            for at in from..text.len() {
                let here = SHAPES.iter().filter(|shape| begins(&text[at..], shape));
                plain.extend(here.map(|shape| (at, at + shape.begins.len(), shape.begins)));
            }
            proptest::prop_assert_eq!(seen, plain);
        }
    }
}
