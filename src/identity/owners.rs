//! Who served what: a table of marks. A mark's place follows from the mark, and to come upon it costs one look at
//! memory, where a general map needs two or three; there are many marks, and most have long left the caches.

use super::fingerprint::Mark;

/// Marks of one place: as many as a line of the cache holds.
const TOGETHER: usize = 4;
/// Ids, texts and shingles whose origin is remembered, over all runs: as good as all of the last that many.
pub(super) const MARKS_MAX: usize = 1 << 18;
/// Marks that are held at most: twice as many, so that few places are full before.
pub(super) const HELD_MAX: usize = 2 * MARKS_MAX;
/// Places of a table that holds little, and at most; powers of two.
const PLACES_MIN: usize = 1 << 8;
const PLACES_MAX: usize = HELD_MAX / TOGETHER;

/// Where a mark was served: the exchange's number, and a bit for marks that runs which do not know of each other have
/// served. One word, because there are many; zero is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner(u64);

impl Owner {
    pub(super) fn new(exchange: u64, several: bool) -> Self {
        Self((exchange + 1) << 1 | u64::from(several))
    }

    pub(super) fn exchange(self) -> u64 {
        (self.0 >> 1).saturating_sub(1)
    }

    pub(super) fn several(self) -> bool {
        self.0 & 1 == 1
    }
}

/// One place: newest first, so that what is pushed out is the oldest.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Place {
    marks: [Mark; TOGETHER],
    owners: [u64; TOGETHER],
}

/// The marks that were served last, over all runs.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// None before the first mark; more as they fill.
    places: Vec<Place>,
    held: usize,
}

impl Owners {
    pub(super) fn get(&self, mark: Mark) -> Option<Owner> {
        let place = self.places.get(self.place(mark))?;
        place.find(mark).and_then(|at| place.owners.get(at)).copied().map(Owner)
    }

    /// The owner of a mark: this one, if there is none yet, which `made` is told.
    pub(super) fn entry(&mut self, mark: Mark, owner: Owner, made: impl FnOnce()) -> Owner {
        if let Some(known) = self.get(mark) {
            return known;
        }
        // Nothing is pushed out of a table that can still grow.
        while self.places.len() < PLACES_MAX && self.places.get(self.place(mark)).is_none_or(Place::is_full) {
            self.grow();
        }
        self.push(mark, owner.0);
        made();
        owner
    }

    fn push(&mut self, mark: Mark, owner: u64) {
        let place = self.place(mark);
        let Some(place) = self.places.get_mut(place) else { return };
        self.held += usize::from(!place.is_full());
        place.marks.rotate_right(1);
        place.owners.rotate_right(1);
        let ([first_mark, ..], [first_owner, ..]) = (&mut place.marks, &mut place.owners);
        (*first_mark, *first_owner) = (mark, owner);
    }

    /// Twice as many places: what stood in one goes to two, so that nothing is pushed out.
    fn grow(&mut self) {
        let larger = vec![Place::default(); (2 * self.places.len()).max(PLACES_MIN)];
        self.held = 0;
        for place in std::mem::replace(&mut self.places, larger) {
            let held = place.marks.into_iter().zip(place.owners).rev().filter(|(_, owner)| *owner != 0);
            held.for_each(|(mark, owner)| self.push(mark, owner));
        }
    }

    /// Where a mark has its place. The sieve goes by other bits.
    fn place(&self, mark: Mark) -> usize {
        usize::try_from(mark >> 20).unwrap_or_default() & self.places.len().wrapping_sub(1)
    }

    /// Gives a mark that is held another owner.
    pub(super) fn set(&mut self, mark: Mark, owner: Owner) {
        let place = self.place(mark);
        let Some(place) = self.places.get_mut(place) else { return };
        if let Some(held) = place.find(mark).and_then(|at| place.owners.get_mut(at)) {
            *held = owner.0;
        }
    }

    /// Marks held.
    pub(super) fn len(&self) -> usize {
        self.held
    }
}

impl Place {
    fn is_full(&self) -> bool {
        let [.., oldest] = self.owners;
        oldest != 0
    }

    fn find(&self, mark: Mark) -> Option<usize> {
        // All are compared, since which it is cannot be foreseen.
        let found = self
            .marks
            .iter()
            .zip(&self.owners)
            .enumerate()
            .fold(TOGETHER, |found, (at, (held, owner))| if *held == mark && *owner != 0 { at } else { found });
        (found < TOGETHER).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use twox_hash::XxHash3_64;

    use super::*;

    #[test]
    fn the_last_marks_are_held_and_the_table_does_not_grow() {
        let mark = |number: u64| XxHash3_64::oneshot(&number.to_le_bytes());
        let mut owners = Owners::default();
        assert!(owners.get(mark(1)).is_none() && owners.get(0).is_none());
        let most = 6 * MARKS_MAX as u64;
        for number in 0..most {
            let owner = owners.entry(mark(number), Owner::new(number, false), || ());
            assert_eq!((owner.exchange(), owner.several()), (number, false));
            if number % 4096 == 4095 && number < 20_000 {
                let held = |early| owners.get(mark(early)).is_some_and(|owner| owner.exchange() == early);
                assert!((0..=number).all(held), "growing forgets nothing");
            }
        }
        assert!(owners.len() <= HELD_MAX, "{}", owners.len());
        let held = |number: u64| owners.get(mark(number)).is_some_and(|owner| owner.exchange() == number);
        let last = most - MARKS_MAX as u64..most;
        let lost = last.filter(|number| !held(*number)).count();
        assert!(lost < MARKS_MAX / 16, "{lost} of the last {MARKS_MAX} are lost");
        assert!((0..1000).filter(|number| held(*number)).count() < 50, "the first are forgotten");
    }

    #[test]
    fn the_first_owner_stays_until_it_is_changed() {
        let mut owners = Owners::default();
        let mut made = 0;
        for exchange in [0, 7] {
            assert_eq!(owners.entry(5, Owner::new(exchange, false), || made += 1).exchange(), 0);
        }
        assert_eq!((made, owners.len()), (1, 1));
        owners.set(5, Owner::new(7, true));
        owners.set(6, Owner::new(7, true));
        assert!(owners.get(5).is_some_and(|owner| owner.exchange() == 7 && owner.several()));
        assert!(owners.get(6).is_none());
    }
}
