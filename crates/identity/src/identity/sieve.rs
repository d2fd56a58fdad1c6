//! A sieve before a map of marks: most of what is looked for was never taken in, and one bit tells that sooner.

use super::fingerprint::Mark;

/// Words of bits of one generation: 2^20 bits.
const PLACES: usize = 1 << 14;

/// Remembers at least the last `room` marks that were taken in, in two generations.
#[derive(Debug)]
pub(super) struct Sieve {
    room: usize,
    taken: usize,
    /// Bits of the generation that fills, and of the one before it.
    places: Box<[[u64; 2]]>,
}

impl Sieve {
    pub(super) fn new(room: usize) -> Self {
        Self { room, taken: 0, places: vec![[0; 2]; PLACES].into() }
    }

    /// Takes in a mark.
    pub(super) fn take(&mut self, mark: Mark) {
        if self.taken == self.room {
            self.places.iter_mut().for_each(|[now, before]| *before = std::mem::take(now));
            self.taken = 0;
        }
        self.taken += 1;
        if let Some([now, _]) = self.places.get_mut(place(mark)) {
            *now |= bit(mark);
        }
    }

    /// Whether the mark may be one of the last: never wrong when it says no.
    pub(super) fn may_hold(&self, mark: Mark) -> bool {
        self.places.get(place(mark)).is_some_and(|[now, before]| (now | before) & bit(mark) != 0)
    }
}

fn place(mark: Mark) -> usize {
    usize::try_from(mark % PLACES as u64).unwrap_or_default()
}

fn bit(mark: Mark) -> u64 {
    1 << (mark >> 58)
}

#[cfg(test)]
mod tests {
    use twox_hash::XxHash3_64;

    use super::*;

    #[test]
    fn the_last_marks_pass_and_most_others_do_not() {
        let mark = |number: u64| XxHash3_64::oneshot(&number.to_le_bytes());
        let (room, mut sieve) = (1000, Sieve::new(1000));
        for number in 0..10_000_u64 {
            sieve.take(mark(number));
            let oldest = (number + 1).saturating_sub(room);
            assert!((oldest..=number).step_by(37).chain([number]).all(|known| sieve.may_hold(mark(known))), "{number}");
        }
        let strangers = (10_000..20_000).filter(|number| sieve.may_hold(mark(*number))).count();
        assert!(strangers < 100, "{strangers} of 10000 strangers pass");
        assert!(!(0..8000).all(|number| sieve.may_hold(mark(number))), "what was long ago is forgotten");
    }
}
