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
    let mut part = |start: usize, end: usize| {
        let escaped = start.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'\\');
        let start =
            start + usize::from(escaped && bytes.get(start).is_some_and(|byte| matches!(byte, b'n' | b't' | b'r')));
        if start < end { visit(start..end) } else { ControlFlow::Continue(()) }
    };
    if !text.is_ascii() {
        return each_run(text, part);
    }
    let (mut open, mut last) = (None, 0);
    for (number, block) in bytes.chunks(BLOCK).enumerate() {
        let plain = plain_bytes(block);
        // Where a run of letters and digits begins or ends.
        let mut edges = plain ^ (plain << 1 | last);
        last = plain >> (BLOCK - 1);
        while edges != 0 {
            let edge = number * BLOCK + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            match open.take() {
                None => open = Some(edge),
                Some(start) => part(start, edge)?,
            }
        }
    }
    open.map_or(ControlFlow::Continue(()), |start| part(start, bytes.len()))
}

/// The same for a text that holds more than ASCII, sign by sign: hands over its runs of letters and digits.
fn each_run(text: &str, mut part: impl FnMut(usize, usize) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut open = None;
    for (at, sign) in text.char_indices() {
        match (sign.is_alphanumeric(), open) {
            (true, None) => open = Some(at),
            (false, Some(start)) => {
                open = None;
                part(start, at)?;
            }
            _ => {}
        }
    }
    open.map_or(ControlFlow::Continue(()), |start| part(start, text.len()))
}

/// A bit for each of up to 64 bytes that is an ASCII letter or digit.
fn plain_bytes(block: &[u8]) -> u64 {
    let (eights, rest) = block.as_chunks::<8>();
    let plain = |eight: u64| bits(!not_alphanumeric(eight));
    let whole = eights.iter().rev().fold(0, |bits, eight| bits << 8 | plain(u64::from_le_bytes(*eight)));
    if rest.is_empty() { whole } else { whole | plain(fewer(rest)) << (8 * eights.len()) }
}

/// One bit for the high bit of each of eight bytes.
fn bits(bytes: u64) -> u64 {
    ((bytes >> 7) & (u64::MAX / 255)).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The mark of the first `length` bytes.
pub(super) fn mark_of(mut bytes: &[u8], mut length: usize) -> Mark {
    let mut mark = 0;
    // Most words are shorter, and how long the next is cannot be foreseen: all take the same way.
    while length > 16 {
        mark = mix(mark, sixteen(bytes));
        bytes = bytes.get(16..).unwrap_or_default();
        length -= 16;
    }
    let [first, second] = sixteen(bytes);
    mix(mark, [first & lowest(length), second & lowest(length.saturating_sub(8))])
}

/// The lowest bytes of eight, at most all.
fn lowest(count: usize) -> u64 {
    u64::MAX.checked_shr(64_u32.saturating_sub(8 * u32::try_from(count).unwrap_or(8))).unwrap_or_default()
}

/// The first sixteen bytes; behind fewer, zeros, which no word holds.
fn sixteen(bytes: &[u8]) -> [u64; 2] {
    match bytes.as_chunks::<8>() {
        ([first, second, ..], _) => [u64::from_le_bytes(*first), u64::from_le_bytes(*second)],
        ([first], rest) => [u64::from_le_bytes(*first), fewer(rest)],
        ([], rest) => [fewer(rest), 0],
    }
}

/// Less than eight bytes, behind them zeros.
#[cold]
fn fewer(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |eight, byte| eight << 8 | u64::from(*byte))
}

/// Takes sixteen more bytes into a mark: both halves of a product, so that each bit counts everywhere.
fn mix(mark: Mark, [first, second]: [u64; 2]) -> Mark {
    // Digits of pi: odd and without a pattern.
    let (low, high) = (mark ^ first ^ 0x243f_6a88_85a3_08d3).carrying_mul(second ^ 0x1319_8a2e_0370_7345, 0);
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
