//! The ids of two runs, one beside the other.

use std::collections::HashMap;

/// Which id of one run stands for which of the other. Programs and servers make new ids in each run; what counts is
/// that a result answers the same call, and that a conversation goes on from the same reply.
#[derive(Debug, Clone, Default)]
pub struct Pairing {
    there: HashMap<String, String>,
    here: HashMap<String, String>,
    /// What was paired, in order.
    paired: Vec<String>,
}

impl Pairing {
    /// Pairs ids, each with the one in its place; false, and nothing learnt, where one is paired with another already.
    pub(super) fn learn(&mut self, one: &[String], other: &[String]) -> bool {
        let fits = |(one, other): (&String, &String)| {
            self.there.get(one).is_none_or(|paired| paired == other)
                && self.here.get(other).is_none_or(|paired| paired == one)
        };
        // Within each list every id stands once: places that fit one by one fit together.
        let fits = one.len() == other.len() && one.iter().zip(other).all(fits);
        if fits {
            one.iter().zip(other).for_each(|(one, other)| self.pair(one, other));
        }
        fits
    }

    /// Pairs ids where neither is paired yet.
    pub(super) fn propose(&mut self, one: &[String], other: &[String]) {
        for (one, other) in one.iter().zip(other) {
            if !self.there.contains_key(one) && !self.here.contains_key(other) {
                self.pair(one, other);
            }
        }
    }

    fn pair(&mut self, one: &str, other: &str) {
        if self.there.insert(one.to_owned(), other.to_owned()).is_none() {
            self.paired.push(one.to_owned());
        }
        self.here.insert(other.to_owned(), one.to_owned());
    }

    /// How much was learnt so far.
    pub(super) fn learnt(&self) -> usize {
        self.paired.len()
    }

    /// Forgets what was learnt since.
    pub(super) fn forget(&mut self, learnt: usize) {
        for one in self.paired.drain(learnt..) {
            if let Some(other) = self.there.remove(&one) {
                self.here.remove(&other);
            }
        }
    }
}
