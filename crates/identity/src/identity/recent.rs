//! A map of bounded size that forgets what it learnt first.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    hash::Hash,
};

/// At most `room` entries; one more drops the oldest.
#[derive(Debug, Clone)]
pub(super) struct Recent<K, V> {
    room: usize,
    entries: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub(super) fn new(room: usize) -> Self {
        Self { room, entries: HashMap::default(), order: VecDeque::new() }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// The entry, made if need be.
    pub(super) fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if self.order.len() >= self.room.max(1)
            && !self.entries.contains_key(&key)
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
        }
        match self.entries.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                self.order.push_back(place.key().clone());
                place.insert(make())
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut recent = Recent::new(2);
        for key in [1, 2, 1, 3] {
            *recent.entry(key, || 0) += key;
        }
        assert_eq!((recent.get(&1), recent.get(&2), recent.get(&3), recent.len()), (None, Some(&2), Some(&3), 2));
    }
}
