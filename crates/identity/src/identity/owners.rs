//! Who served a mark: many small entries, so that one is a single word, found with one look into memory.

use std::cell::Cell;

use super::{fingerprint::Mark, sieve::Sieve};

/// Entries of one generation.
const ROOM: usize = 1 << 17;
/// Entries that there can be at once.
pub(super) const OWNERS_MAX: usize = 2 * ROOM;
/// Places of one generation; half of them stay free.
const PLACES: usize = 2 * ROOM;
/// Bits of an entry that say who: 31 of the exchange's number and one more.
const WHO: u64 = u32::MAX as u64;

/// Who served a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    /// The exchange's number.
    pub(super) exchange: u64,
    /// Whether runs that do not know of each other have served it.
    pub(super) several: bool,
}

/// Remembers the last [`ROOM`] marks at least, in two generations.
#[derive(Debug)]
pub(super) struct Owners {
    /// Holds the marks of both: most words of a request nobody has served.
    sieve: Sieve,
    /// The generation that fills.
    now: MarkTable,
    before: MarkTable,
    /// The latest exchange that served anything.
    latest: u64,
}

/// Each entry stands at the place that its mark names, or at the next free one behind it. It is 31 other bits of the
/// mark, and who; 0 is free. A mark is taken for another one of the same bits near its place: once in a thousand million
/// looks for marks that nobody has served.
#[derive(Debug, Default)]
struct MarkTable {
    /// Empty as long as nothing is taken.
    places: Box<[u64]>,
    taken: usize,
}

impl Default for Owners {
    fn default() -> Self {
        Self { sieve: Sieve::new(OWNERS_MAX), now: MarkTable::default(), before: MarkTable::default(), latest: 0 }
    }
}

impl Owners {
    /// Who served the mark, if that is remembered.
    pub(super) fn get(&self, mark: Mark) -> Option<Owner> {
        if !self.sieve.may_hold(mark) {
            return None;
        }
        self.of_sifted(mark)
    }

    /// The same for a mark that the sieve has let pass.
    pub(super) fn of_sifted(&self, mark: Mark) -> Option<Owner> {
        let who = self.now.get(mark).or_else(|| self.before.get(mark))?;
        // The number's lower bits, of an exchange that is not later than the latest.
        let age = self.latest.wrapping_sub(who >> 1) & (WHO >> 1);
        Some(Owner { exchange: self.latest.wrapping_sub(age), several: who & 1 == 1 })
    }

    /// Takes in who served a mark, in place of what was known of it.
    pub(super) fn insert(&mut self, mark: Mark, owner: Owner) {
        self.latest = self.latest.max(owner.exchange);
        if self.now.taken == ROOM {
            std::mem::swap(&mut self.now, &mut self.before);
            self.now.clear();
        }
        if self.now.insert(mark, owner.exchange << 1 & WHO | u64::from(owner.several)) {
            self.sieve.take(mark);
        }
    }

    /// Leaves those of the marks that may be known: told for many at once, because which they are cannot be foreseen.
    pub(super) fn sift(&self, marks: &mut Vec<Mark>) {
        let mut count = 0;
        let cells = Cell::from_mut(marks.as_mut_slice()).as_slice_of_cells();
        for mark in cells {
            cells.get(count).into_iter().for_each(|place| place.set(mark.get()));
            count += usize::from(self.sieve.may_hold(mark.get()));
        }
        marks.truncate(count);
    }

    /// Entries held; one that was taken in again may count twice.
    pub(super) fn len(&self) -> usize {
        self.now.taken + self.before.taken
    }
}

impl MarkTable {
    fn get(&self, mark: Mark) -> Option<u64> {
        let entry = self.places.get(self.place(mark)).copied().filter(|entry| *entry != 0)?;
        Some(entry & WHO)
    }

    /// Gives whether the mark had no entry yet.
    fn insert(&mut self, mark: Mark, who: u64) -> bool {
        if self.places.is_empty() {
            self.places = vec![0; PLACES].into();
        }
        let at = self.place(mark);
        let Some(entry) = self.places.get_mut(at) else { return false };
        let is_new = *entry == 0;
        *entry = upper_bits(mark) | who;
        self.taken += usize::from(is_new);
        is_new
    }

    /// Where the mark's entry stands, or would stand.
    fn place(&self, mark: Mark) -> usize {
        let last = PLACES - 1;
        let mut at = usize::try_from(mark & last as u64).unwrap_or_default();
        while self.places.get(at).is_some_and(|entry| *entry != 0 && *entry & !WHO != upper_bits(mark)) {
            at = (at + 1) & last;
        }
        at
    }

    fn clear(&mut self) {
        self.places.fill(0);
        self.taken = 0;
    }
}

/// The mark's bits above those that name its place, in the upper half of a word that is never 0.
fn upper_bits(mark: Mark) -> u64 {
    (mark / PLACES as u64) << 32 | 1 << 63
}

#[cfg(test)]
mod tests {
    use twox_hash::XxHash3_64;

    use super::*;

    fn mark(number: u64) -> Mark {
        XxHash3_64::oneshot(&number.to_le_bytes())
    }

    #[test]
    fn the_last_marks_have_their_owners_and_others_none() {
        // Numbers of exchanges that need more bits than an entry has, and that pass the end of those bits.
        let owner = |number: u64| Owner { exchange: (1 << 33) - 5000 + number / 30, several: number.is_multiple_of(7) };
        let (room, all) = (ROOM as u64, 4 * ROOM as u64);
        let mut owners = Owners::default();
        for number in 0..all {
            owners.insert(mark(number), owner(number));
            assert!(owners.len() <= OWNERS_MAX);
            if number % 9973 == 0 {
                let last = (number + 1).saturating_sub(room)..=number;
                assert!(last.step_by(101).all(|known| owners.get(mark(known)) == Some(owner(known))), "{number}");
            }
        }
        assert!((all..2 * all).all(|stranger| owners.get(mark(stranger)).is_none()));
        assert!(owners.get(mark(0)).is_none(), "what was long ago is forgotten");
        let again = Owner { exchange: 1 << 33, several: true };
        owners.insert(mark(all - 1), again);
        assert_eq!(owners.get(mark(all - 1)), Some(again), "the last word counts");
    }

    #[test]
    fn marks_of_one_place_and_the_mark_nought_are_kept_apart() {
        let mut owners = Owners::default();
        let marks: Vec<Mark> = (0..100).map(|number| number * PLACES as u64).chain([u64::MAX]).collect();
        for (exchange, mark) in (0..).zip(&marks) {
            assert_eq!(owners.get(*mark), None);
            owners.insert(*mark, Owner { exchange, several: false });
        }
        for (exchange, mark) in (0..).zip(&marks) {
            assert_eq!(owners.get(*mark), Some(Owner { exchange, several: false }), "{mark}");
        }
    }

    #[test]
    fn sifting_leaves_what_is_known_in_order() {
        let mut owners = Owners::default();
        (0..50).for_each(|number| owners.insert(mark(3 * number), Owner { exchange: number, several: false }));
        let mut marks: Vec<Mark> = (0..200).map(mark).collect();
        owners.sift(&mut marks);
        let known: Vec<Mark> = marks.iter().copied().filter(|mark| owners.get(*mark).is_some()).collect();
        assert_eq!(known, (0..50).map(|number| mark(3 * number)).collect::<Vec<_>>());
        assert!(marks.len() < 60, "{} pass", marks.len());
    }
}
