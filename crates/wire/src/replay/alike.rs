//! Which of several records that answer one request is given next: the same agent's first, then the one with the
//! nearest call number, then the earliest. Each costs the logarithm of their number, however many there are.

use std::collections::{BTreeSet, HashMap};

use crate::trajectory::{AgentName, Attribution, Call};

/// Records by call number and position.
type Ranked = BTreeSet<(Call, usize)>;

/// Records that answer one request, as far as they may still be given.
#[derive(Debug, Default)]
pub(super) struct EqualRecords {
    all: Ranked,
    /// By agent and instance.
    own: HashMap<(AgentName, u32), Ranked>,
}

impl EqualRecords {
    /// All of these, each with its position, whose it is and its call.
    pub(super) fn group<'a>(records: impl Iterator<Item = (usize, &'a Attribution, Call)>) -> Self {
        let mut alike = Self::default();
        for (position, whose, call) in records {
            let who = (whose.agent.clone(), whose.instance);
            alike.own.entry(who).or_default().insert((call, position));
            alike.all.insert((call, position));
        }
        alike
    }

    /// The position of the best record for a call. `left`: whether a record may be given; one that may not is taken
    /// out for good.
    pub(super) fn best(&mut self, who: &Attribution, call: Call, left: impl Fn(usize) -> bool) -> Option<usize> {
        let own = self.own.get_mut(&(who.agent.clone(), who.instance));
        own.and_then(|own| nearest(own, call, &left)).or_else(|| nearest(&mut self.all, call, &left))
    }
}

fn nearest(ranked: &mut Ranked, call: Call, left: &impl Fn(usize) -> bool) -> Option<usize> {
    loop {
        let behind = ranked.range((call, 0)..).next().copied();
        let before = ranked.range(..(call, 0)).next_back().map(|(call, _)| *call);
        // Of equal call numbers the earliest record.
        let before = before.and_then(|call| ranked.range((call, 0)..).next().copied());
        let both = behind.into_iter().chain(before);
        let best = both.min_by_key(|(found, position)| (found.abs_diff(call), *position))?;
        if left(best.1) {
            return Some(best.1);
        }
        ranked.remove(&best);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_call_comes_first_and_each_record_once() {
        // (call, position) of those left, the calls asked for → the positions given.
        for (records, calls, expected) in [
            (&[(0, 0), (1, 1), (2, 2)][..], &[0, 1, 2, 3][..], &[Some(0), Some(1), Some(2), None][..]),
            (&[(0, 0), (0, 1), (0, 2)], &[0, 1, 2, 3], &[Some(0), Some(1), Some(2), None]),
            (&[(4, 9), (6, 3), (8, 1)], &[5, 5, 5], &[Some(3), Some(9), Some(1)]),
            (&[(2, 0), (2, 1), (7, 2)], &[6, 6, 6], &[Some(2), Some(0), Some(1)]),
        ] {
            let mut ranked: Ranked = records.iter().copied().collect();
            let given = std::cell::RefCell::new(BTreeSet::new());
            for (call, expected) in calls.iter().zip(expected) {
                let found = nearest(&mut ranked, *call, &|position| !given.borrow().contains(&position));
                assert_eq!(found, *expected, "{records:?} {call}");
                given.borrow_mut().extend(found);
            }
        }
    }
}
