//! Mutations of inputs: small, seeded, with the words of a target's language.

/// Makes inputs out of others.
pub struct Mutation {
    state: u64,
    words: &'static [&'static str],
}

impl Mutation {
    pub fn new(seed: u64, words: &'static [&'static str]) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, words }
    }

    /// A number below a bound (xorshift64*).
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let drawn = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(drawn).expect("31 bits") % bound.max(1)
    }

    /// A range of an input, often short.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.below(3) == 0 { length - start } else { (length - start).min(8) };
        start..start + self.below(most + 1)
    }

    /// An input of the pool, changed in a few places.
    pub fn of(&mut self, pool: &[Vec<u8>], most: usize) -> Vec<u8> {
        let mut input = pool[self.below(pool.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input, pool);
        }
        input.truncate(most);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let range = self.range(input.len());
        match self.below(9) {
            0 => drop(input.drain(range)),
            1 => {
                let copy = input[range].to_vec();
                let at = self.below(input.len() + 1);
                input.splice(at..at, copy);
            }
            2 => {
                let other = &pool[self.below(pool.len())];
                let piece = other[self.range(other.len())].to_vec();
                input.splice(range, piece);
            }
            3 | 4 if !self.words.is_empty() => {
                let word = self.words[self.below(self.words.len())];
                input.splice(range, word.bytes());
            }
            5 => {
                let odd = [0, 0x7f, 0x80, 0xff, b'"', b'\\', b'\n', b'\r', b'{', b'[', b'9', 0xc3, 0xed];
                input.insert(range.start, odd[self.below(odd.len())]);
            }
            6 if !input.is_empty() => {
                let (at, bit) = (self.below(input.len()), self.below(8));
                input[at] ^= 1 << bit;
            }
            7 if !input.is_empty() => {
                let (one, other) = (self.below(input.len()), self.below(input.len()));
                input.swap(one, other);
            }
            _ => input.truncate(range.end),
        }
    }
}
