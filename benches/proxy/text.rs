//! Fresh text: words of a skewed vocabulary with the punctuation, escapes and accents that agents
//! write, already escaped for a JSON string. Two seeds never give the same text, so nothing that a
//! recorder stores can be shared by accident; it compresses about as well as English does.

use std::sync::OnceLock;

/// A splitmix64 generator: the same seed gives the same text in the load and in the upstream.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from `low` up to, not including, `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }
}

/// Appends exactly `length` bytes of JSON-escaped text; its last byte is a letter or a digit.
pub(crate) fn fill(draw: &mut Draw, length: usize, out: &mut Vec<u8>) {
    let vocabulary = vocabulary();
    let end = out.len() + length;
    loop {
        let bits = draw.next();
        for part in 0..4 {
            let rank = vocabulary.ranks[(bits >> (part * 14)) as usize & (RANKS - 1)];
            let word = &vocabulary.words[usize::from(rank)];
            if out.len() + word.len() + LONGEST_BREAK > end {
                while out.len() < end {
                    out.push(b'a' + (draw.next() % 26) as u8);
                }
                return;
            }
            out.extend_from_slice(word);
            out.push(b' ');
        }
        out.extend_from_slice(match bits >> 58 {
            0 => b"\\n",
            1 => b"\\\"",
            2 => "é".as_bytes(),
            3..=8 => b". ",
            9..=16 => b", ",
            _ => b"",
        });
    }
}

/// Words are drawn by a 14-bit number.
const RANKS: usize = 1 << 14;
const WORDS: usize = 9_000;
/// A space, the longest of the breaks between words, and the letter that ends the text.
const LONGEST_BREAK: usize = 4;

struct Vocabulary {
    words: Vec<Vec<u8>>,
    /// The word for each draw: low ranks come up often, as in a language.
    ranks: Vec<u16>,
}

fn vocabulary() -> &'static Vocabulary {
    static ONCE: OnceLock<Vocabulary> = OnceLock::new();
    ONCE.get_or_init(|| {
        let onsets = ["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "st", "t", "th", "tr", "v", "w", "wh"];
        let vowels = ["a", "e", "i", "o", "u", "ea", "ou", "ai"];
        let codas = ["", "n", "r", "s", "t", "ll", "nd", "ng"];
        let mut draw = Draw::new(11);
        let mut pick = |list: &[&'static str]| list[(draw.next() % list.len() as u64) as usize];
        let words = (0..WORDS)
            .map(|rank| {
                let syllables = 1 + (rank + 2).ilog2() / 5;
                let syllables = (0..syllables).map(|_| [pick(&onsets), pick(&vowels), pick(&codas)].concat());
                syllables.collect::<Vec<_>>().concat().into_bytes()
            })
            .collect();
        let mut draw = Draw::new(12);
        let ranks = (0..RANKS)
            .map(|_| {
                let share = (draw.next() >> 11) as f64 / (1_u64 << 53) as f64;
                ((WORDS as f64).powf(share) - 1.0) as u16
            })
            .collect();
        Vocabulary { words, ranks }
    })
}
