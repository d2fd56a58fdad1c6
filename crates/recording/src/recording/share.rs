//! What two byte strings have in common at their start and at their end.

/// Compared at once, so that the common case runs at memory speed.
const BLOCK: usize = 512;

/// Compared next, so that little is left to compare byte by byte.
const STEP: usize = 16;

/// How many bytes the two begin with in common.
pub(super) fn prefix(left: &[u8], right: &[u8]) -> usize {
    let mut same = blocks(left, right, BLOCK);
    for size in [STEP, 1] {
        same += blocks(left.get(same..).unwrap_or_default(), right.get(same..).unwrap_or_default(), size);
    }
    same
}

/// How many bytes the two end with in common.
pub(super) fn suffix(left: &[u8], right: &[u8]) -> usize {
    let mut same = 0;
    for size in [BLOCK, STEP, 1] {
        let rest = |bytes: &[u8]| bytes.len() - same;
        let (left, right) = (left.get(..rest(left)).unwrap_or_default(), right.get(..rest(right)).unwrap_or_default());
        let blocks = left.rchunks_exact(size).zip(right.rchunks_exact(size));
        same += blocks.take_while(|(a, b)| a == b).count() * size;
    }
    same
}

/// Bytes of equal blocks at the start.
fn blocks(left: &[u8], right: &[u8], size: usize) -> usize {
    left.chunks_exact(size).zip(right.chunks_exact(size)).take_while(|(a, b)| a == b).count() * size
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn equal_to_the_plain_count(common in 0usize..1500, left in "[ab]{0,9}", right in "[ab]{0,9}") {
            let common = "x".repeat(common);
            let (a, b) = (format!("{common}{left}"), format!("{common}{right}"));
            let plain = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            proptest::prop_assert_eq!(prefix(a.as_bytes(), b.as_bytes()), plain);
            let (a, b) = (format!("{left}{common}"), format!("{right}{common}"));
            let plain = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
            proptest::prop_assert_eq!(suffix(a.as_bytes(), b.as_bytes()), plain);
        }
    }
}
