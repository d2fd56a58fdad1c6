//! What stands in the log, by its hash: remembered as long as it is used.

use std::collections::HashMap;

use super::content_hash::ContentHash;

/// Texts that are known to stand in the log, at least: a run may go on for days, and each text of each exchange is
/// looked up among them.
pub(super) const TEXTS: usize = 8192;

/// Names, each with what it stands for. Two generations, so that forgetting the older costs nothing, and what a long
/// run looks through stays small enough for the caches. What is forgotten and comes back is recorded once more.
#[derive(Debug)]
pub(super) struct HashCache<V> {
    room: usize,
    young: HashMap<ContentHash, V>,
    old: HashMap<ContentHash, V>,
}

impl<V: Copy> HashCache<V> {
    /// Remembers at least the last `room` names that were used, and at most twice as many.
    pub(super) fn new(room: usize) -> Self {
        Self { room, young: HashMap::default(), old: HashMap::default() }
    }

    /// What the name stands for, if it is known. To ask for it is to use it.
    pub(super) fn get(&mut self, name: ContentHash) -> Option<V> {
        if let Some(known) = self.young.get(&name) {
            return Some(*known);
        }
        let known = self.old.remove(&name)?;
        self.insert(name, known);
        Some(known)
    }

    /// Remembers what the name stands for.
    pub(super) fn insert(&mut self, name: ContentHash, known: V) {
        if self.young.len() >= self.room {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(name, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u128) -> ContentHash {
        ContentHash::from_raw(number)
    }

    #[test]
    fn what_is_not_used_is_forgotten_in_time_and_what_is_used_never() {
        let mut known = HashCache::new(100);
        for number in 0..500 {
            assert_eq!(known.get(name(number)), None, "not yet");
            known.insert(name(number), number);
            assert_eq!(known.get(name(7.min(number))), Some(7.min(number)));
            assert!(known.young.len() <= 100 && known.old.len() <= 100);
            for last in number.saturating_sub(50)..=number {
                assert!([&known.young, &known.old].iter().any(|names| names.contains_key(&name(last))), "{last}");
            }
        }
        assert_eq!((known.get(name(8)), known.get(name(7))), (None, Some(7)));
    }
}
