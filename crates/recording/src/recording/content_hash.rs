//! The name of a body or a text inside one run: xxh3-128 of its bytes, 32 hex digits.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// xxh3-128 of some bytes. It finds equal content; it is no defence against a forger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema)]
#[schemars(with = "String", extend("pattern" = "^[0-9a-f]{32}$"))]
pub(super) struct ContentHash(u128);

impl ContentHash {
    /// The hash of these bytes.
    pub(super) fn compute(bytes: &[u8]) -> Self {
        Self(twox_hash::XxHash3_128::oneshot(bytes))
    }

    /// The same hash, known already.
    pub(super) fn from_raw(hash: u128) -> Self {
        Self(hash)
    }

    /// Reads 32 lower-case hex digits.
    fn parse(text: &str) -> Option<Self> {
        let well_formed = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if well_formed { u128::from_str_radix(text, 16).ok().map(Self) } else { None }
    }

    /// The hex digits.
    pub(super) fn hex(self) -> [u8; 32] {
        let mut hex = [0; 32];
        for (eight, four) in hex.as_chunks_mut::<8>().0.iter_mut().zip(self.0.to_be_bytes().as_chunks::<4>().0) {
            *eight = digits(u32::from_be_bytes(*four));
        }
        hex
    }
}

/// Eight hex digits, made together: a number's nibbles are spread over eight bytes, and those above nine moved to the
/// letters.
pub(super) fn digits(number: u32) -> [u8; 8] {
    const ONES: u64 = u64::MAX / 255;
    let pairs = (u64::from(number) | u64::from(number) << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | bytes << 4) & (ONES * 15);
    let letters = ((nibbles + ONES * 6) >> 4) & ONES;
    (nibbles + ONES * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

impl fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hex = self.hex();
        serializer.serialize_str(std::str::from_utf8(&hex).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected 32 lower-case hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn its_digits_are_those_of_the_number(number: u128) {
            let hex = ContentHash::from_raw(number).hex();
            proptest::prop_assert_eq!(String::from_utf8_lossy(&hex), format!("{number:032x}"));
        }
    }

    #[test]
    fn hex_reads_back_and_nothing_else_does() {
        let hash = ContentHash::compute(b"some text");
        assert_eq!(std::str::from_utf8(&hash.hex()).expect("ASCII"), hash.to_string());
        assert_eq!(ContentHash::parse(&hash.to_string()), Some(hash));
        for bad in ["", "00", "../../../../../../etc/passwd____", &hash.to_string().to_uppercase()] {
            assert_eq!(ContentHash::parse(bad), None, "{bad}");
        }
    }
}
