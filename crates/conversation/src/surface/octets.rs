//! Eight bytes of JSON looked at together: most of its strings are shorter than what a vector search takes to begin.

/// One in each byte, and the high bit of each.
const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES << 7;
/// Bytes that are looked at here before a vector search takes over.
const NEAR: usize = 32;

/// Where the first quote stands.
pub fn quote(bytes: &[u8]) -> Option<usize> {
    let near = bytes.get(..NEAR).unwrap_or_default();
    for (number, eight) in near.as_chunks::<8>().0.iter().enumerate() {
        let found = equal(u64::from_le_bytes(*eight), b'"');
        if found != 0 {
            return Some(8 * number + first(found));
        }
    }
    Some(near.len() + memchr::memchr(b'"', bytes.get(near.len()..)?)?)
}

/// How many bytes of a string stand for themselves and are ASCII: up to a quote, a backslash or what is neither.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let (eights, rest) = bytes.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        let eight = u64::from_le_bytes(*eight);
        let found = equal(eight, b'"') | equal(eight, b'\\') | (eight & HIGHS);
        if found != 0 {
            return 8 * number + first(found);
        }
    }
    let behind = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0x80..)).unwrap_or(rest.len());
    8 * eights.len() + behind
}

/// How many of eight bytes stand in a JSON string as they are, up to the first that does not.
#[inline]
pub fn unescaped(eight: [u8; 8]) -> usize {
    let eight = u64::from_le_bytes(eight);
    let found = below(eight, b' ') | equal(eight, b'"') | equal(eight, b'\\');
    if found == 0 { 8 } else { first(found) }
}

/// The place of the first byte that is marked.
fn first(found: u64) -> usize {
    found.trailing_zeros() as usize / 8
}

/// Marks bytes that are this one. A borrow can mark what follows a marked byte too: only the first counts.
fn equal(eight: u64, byte: u8) -> u64 {
    below(eight ^ (ONES * u64::from(byte)), 1)
}

/// Marks bytes below a limit of at most 0x80; as in [`equal`], only the first counts.
fn below(eight: u64, limit: u8) -> u64 {
    eight.wrapping_sub(ONES * u64::from(limit)) & !eight & HIGHS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Mostly letters, so that runs are longer than eight bytes, and longer than what is looked at before a search.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let sign = prop_oneof![
            30 => b'a'..=b'z',
            1 => any::<u8>(),
            1 => prop::sample::select(b"\"\\\x1f !#[]\x7f\x80".to_vec()),
        ];
        prop::collection::vec(sign, 0..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn as_a_look_at_each_byte(bytes in text()) {
            let position = |of: fn(&u8) -> bool| bytes.iter().position(of);
            prop_assert_eq!(quote(&bytes), position(|byte| *byte == b'"'));
            let not_plain = position(|byte| matches!(byte, b'"' | b'\\' | 0x80..));
            prop_assert_eq!(plain_length(&bytes), not_plain.unwrap_or(bytes.len()));
            for eight in bytes.windows(8).filter_map(<[u8]>::first_chunk) {
                let found = eight.iter().position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'));
                prop_assert_eq!(unescaped(*eight), found.unwrap_or(8));
            }
        }
    }
}
