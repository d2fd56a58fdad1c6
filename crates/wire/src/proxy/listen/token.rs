//! A secret that clients must show.

use std::hint::black_box;

/// A secret that clients must show, as its SHA-256: nobody can read it back, and the time of a comparison tells nothing of it.
#[derive(Debug, Clone, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// From its text.
    pub fn new(text: &str) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let mut hash = [0; 32];
        hash.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        Self(hash)
    }

    /// From its SHA-256 in 64 hexadecimal digits; `None` for any other text.
    pub fn from_sha256(hex: &str) -> Option<Self> {
        let pairs = hex.as_bytes().as_chunks::<2>();
        let (([..], []), 64) = (pairs, hex.len()) else { return None };
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(pairs.0) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Self(hash))
    }

    /// Its SHA-256 in hexadecimal digits.
    pub fn sha256(&self) -> String {
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
    }

    /// Whether this text is it.
    pub fn is(&self, given: &str) -> bool {
        *self == Token::new(given)
    }
}

impl PartialEq for Token {
    /// Takes the same time wherever they differ.
    fn eq(&self, other: &Self) -> bool {
        let differing =
            self.0.iter().zip(&other.0).fold(0, |differing, (one, other)| black_box(differing | (one ^ other)));
        differing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_hash() {
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Token::new("abc").sha256(), hash);
        assert!(Token::from_sha256(hash).is_some_and(|token| token.is("abc") && !token.is("abd")));
        assert!(Token::from_sha256(&hash.to_uppercase()).is_some_and(|token| token.is("abc")));
        for bad in ["", "abc", &hash[..63], &format!("{hash}0"), &hash.replace('b', "g"), &format!("é{}", &hash[2..])]
        {
            assert_eq!(Token::from_sha256(bad), None, "{bad}");
        }
    }
}
