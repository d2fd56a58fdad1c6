//! The name of a body or a text inside one run: xxh3-128 of its bytes, 32 hex digits.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// xxh3-128 of some bytes. It finds equal content; it is no defence against a forger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ContentHash(u128);

impl ContentHash {
    /// The hash of these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(twox_hash::XxHash3_128::oneshot(bytes))
    }

    /// The same hash, known already.
    pub(super) fn known(hash: u128) -> Self {
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
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0.to_be_bytes()) {
            for (digit, nibble) in pair.iter_mut().zip([byte >> 4, byte & 15]) {
                *digit = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
            }
        }
        hex
    }
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

    #[test]
    fn hex_reads_back_and_nothing_else_does() {
        let hash = ContentHash::of(b"some text");
        assert_eq!(std::str::from_utf8(&hash.hex()).expect("ASCII"), hash.to_string());
        assert_eq!(ContentHash::parse(&hash.to_string()), Some(hash));
        for bad in ["", "00", "../../../../../../etc/passwd____", &hash.to_string().to_uppercase()] {
            assert_eq!(ContentHash::parse(bad), None, "{bad}");
        }
    }
}
