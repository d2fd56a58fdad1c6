//! Where the words of a text stand, and a mark for each: letters and digits only, so that quoting, escapes and layout do
//! not matter.

use std::ops::{ControlFlow, Range};

use super::fingerprint::Mark;

/// Bytes that are looked at together: what each is, is told by a bit, because where words end cannot be foreseen.
const BLOCK: usize = 64;

/// A text's words.
#[cfg(test)]
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let _ = each_word(text, |word| {
        words.extend(text.get(word));
        ControlFlow::Continue(())
    });
    words
}

/// Hands over where each word of a text stands, until `visit` breaks off. A line break written as an escape (a quote inside
/// JSON) parts words too.
pub(super) fn each_word(text: &str, mut visit: impl FnMut(Range<usize>) -> ControlFlow<()>) -> ControlFlow<()> {
    let bytes = text.as_bytes();
    let (mut start, mut last, mut over) = (0, 0, 0);
    // One block more, in which a word ends that the text ends with.
    for (number, block) in bytes.chunks(BLOCK).chain([&[][..]]).enumerate() {
        let first = number * BLOCK;
        let mut plain = bits(block, |byte| {
            u8::from((byte | 0x20).wrapping_sub(b'a') < 26) | u8::from(byte.wrapping_sub(b'0') < 10)
        });
        if over != 0 || !block.is_ascii() {
            let wide = wide_letters(text, first, bits(block, |byte| byte >> 7));
            plain |= over | wide[0];
            over = wide[1];
        }
        let before = plain << 1 | last;
        let (mut starts, mut ends) = (plain & !before, before & !plain);
        // Otherwise a word goes on from the block before.
        if last == 0 {
            start = first + next(&mut starts);
        }
        while ends != 0 {
            part(bytes, start, first + next(&mut ends), &mut visit)?;
            start = first + next(&mut starts);
        }
        last = plain >> (BLOCK - 1);
    }
    ControlFlow::Continue(())
}

/// The place of the lowest bit, which is taken off; behind the last where none is left.
fn next(bits: &mut u64) -> usize {
    let place = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    place
}

/// Bits for the bytes of letters and digits beyond ASCII that begin among the `wide` bytes, which are counted from
/// `first` on, and for those of their bytes that stand in the next block.
fn wide_letters(text: &str, first: usize, mut wide: u64) -> [u64; 2] {
    let mut letters = [0; 2];
    while wide != 0 {
        let at = next(&mut wide);
        let sign = text.get(first + at..).and_then(|rest| rest.chars().next());
        // No sign begins within another.
        let Some(sign) = sign.filter(|sign| sign.is_alphanumeric()) else { continue };
        let whole = u64::MAX >> (BLOCK - sign.len_utf8());
        letters[0] |= whole << at;
        letters[1] |= whole.checked_shr((BLOCK - at).try_into().unwrap_or(u32::MAX)).unwrap_or_default();
    }
    letters
}

/// Hands over a run of letters and digits as a word, without the letter of an escape before it.
#[inline]
fn part(
    bytes: &[u8],
    start: usize,
    end: usize,
    visit: &mut impl FnMut(Range<usize>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let escaped = start.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'\\');
    let start = start + usize::from(escaped && bytes.get(start).is_some_and(|byte| matches!(byte, b'n' | b't' | b'r')));
    if start < end { visit(start..end) } else { ControlFlow::Continue(()) }
}

/// For each of up to 64 bytes the bit that `tell` makes of it.
fn bits(block: &[u8], tell: impl Fn(u8) -> u8) -> u64 {
    let mut filled = [0; BLOCK];
    let block = block.as_array().unwrap_or_else(|| {
        filled.iter_mut().zip(block).for_each(|(place, byte)| *place = *byte);
        &filled
    });
    // The product has the lowest bits of all eight bytes side by side in its highest one.
    let together = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    block.map(tell).as_chunks().0.iter().rev().fold(0, |bits, eight| bits << 8 | together(eight))
}

/// The mark of the first `length` bytes.
#[inline]
pub(super) fn mark_of(bytes: &[u8], length: usize) -> Mark {
    // What stands behind most words is masked away, so that all take the same way.
    match (bytes.first_chunk(), LOWEST.get(length)) {
        (Some(sixteen), Some([low, high])) => {
            let [first, second] = halves(sixteen);
            mix(0, [first & low, second & high])
        }
        _ => mark_of_any(bytes.get(..length).unwrap_or_default()),
    }
}

/// The mark of a long word, or of one that hardly anything stands behind.
#[cold]
fn mark_of_any(word: &[u8]) -> Mark {
    let parts = word.len().div_ceil(16).max(1);
    (0..parts).fold(0, |mark, number| {
        let mut sixteen = [0; 16];
        sixteen.iter_mut().zip(word.iter().skip(16 * number)).for_each(|(place, byte)| *place = *byte);
        mix(mark, halves(&sixteen))
    })
}

/// For each length, what leaves the lowest bytes of sixteen.
#[expect(clippy::indexing_slicing, reason = "worked out when this is compiled")]
const LOWEST: [[u64; 2]; 17] = {
    let mut lowest = [[0; 2]; 17];
    let mut length = 1;
    while length <= 16 {
        lowest[length] = lowest[length - 1];
        lowest[length][(length - 1) / 8] |= 0xff << (8 * ((length - 1) % 8));
        length += 1;
    }
    lowest
};

fn halves(sixteen: &[u8; 16]) -> [u64; 2] {
    match sixteen.as_chunks() {
        ([first, second], []) => [u64::from_le_bytes(*first), u64::from_le_bytes(*second)],
        _ => [0; 2],
    }
}

/// Takes sixteen more bytes into a mark: both halves of a product, so that each bit counts everywhere.
fn mix(mark: Mark, [first, second]: [u64; 2]) -> Mark {
    // Digits of pi: odd and without a pattern.
    let (low, high) = (mark ^ first ^ 0x243f_6a88_85a3_08d3).carrying_mul(second ^ 0x1319_8a2e_0370_7345, 0);
    low ^ high
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn words_are_what_letters_and_digits_make(text in "[ -~é世\n«]{0,60}") {
            let plain = text.replace('\\', " ");
            let expected: Vec<&str> = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
            proptest::prop_assert_eq!(words(&plain), expected);
            proptest::prop_assert!(words(&text).iter().all(|word| word.chars().all(char::is_alphanumeric)));
        }
    }

    #[test]
    fn escaped_line_breaks_part_words() {
        for (text, expected) in
            [(r"one\n\nnext\t\ttwo", "one next two"), (r"\n\n\n", ""), (r"\r\n— \nnn\", "nn"), (r"\«\néa\b", "éa b")]
        {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn words_end_where_signs_do(parts in proptest::collection::vec(proptest::sample::select(vec![
            "a", "word", "eight888", "longer_than", "sixteen16sixteen", " ", ".", "\\", "\\n", "\\t\\n", "nr", "é", "世界", "«", "—", "2",
            "a-word-that-is-much-longer", "Abcdefghijklmnopqrstuvwxyz0123456789Abcdefghijklmnopqrstuvwxyz0123456789",
        ]), 0..60)) {
            let text = parts.concat();
            let seen = words(&text);
            let mut plain = Vec::new();
            let mut rest = text.as_str();
            let mut before = ' ';
            while let Some(sign) = rest.chars().next() {
                let length = rest.find(|sign: char| !sign.is_alphanumeric()).unwrap_or(rest.len());
                let cut = usize::from(length > 0 && before == '\\' && rest.starts_with(['n', 't', 'r']));
                if length > cut {
                    plain.push(&rest[cut..length]);
                }
                before = rest[..length].chars().last().unwrap_or(sign);
                rest = &rest[if length > 0 { length } else { sign.len_utf8() }..];
            }
            proptest::prop_assert_eq!(&seen, &plain, "{}", text);
        }
    }

    #[test]
    fn a_word_has_one_mark_wherever_it_stands() {
        for word in ["", "a", "seven77", "eight888", "nine99999", "fifteen15fiftee", "sixteen16sixteen", "éa世"] {
            let alone = mark_of(word.as_bytes(), word.len());
            for after in ["", " ", ", and more behind it", "«"] {
                assert_eq!(mark_of(format!("{word}{after}").as_bytes(), word.len()), alone, "{word}{after}");
            }
            assert_ne!(mark_of(format!("{word}x").as_bytes(), word.len() + 1), alone, "{word}");
        }
    }
}
