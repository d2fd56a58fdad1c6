//! The exchanges of all runs without a name, as lineage remembers them: the latest ones, by their numbers.

use std::{collections::VecDeque, sync::Arc};

use super::{
    RunSource,
    fingerprint::{Mark, RequestLooks},
    placed::RequestBeginning,
};
use crate::trajectory::{Attribution, RunId, StepIndex};

/// Exchanges that are remembered, over all runs.
pub(super) const EXCHANGES_MAX: usize = 1 << 16;

/// A request that named no run, and what became of it.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) run: RunId,
    pub(super) step: StepIndex,
    pub(super) attempt: u32,
    pub(super) source: RunSource,
    pub(super) request_mark: Mark,
    pub(super) body: u128,
    pub(super) attribution: Option<Attribution>,
    pub(super) looks: Arc<RequestLooks>,
    /// What it begins with, where no quote links it to an earlier exchange.
    pub(super) begun: Option<Arc<RequestBeginning>>,
    /// Exchanges whose answers the request quotes, ids first.
    pub(super) quotes: Vec<u64>,
    /// Exchanges whose whole answers stand in it as said by an assistant, or whose tool calls it answers; latest first.
    pub(super) said: Vec<u64>,
    pub(super) opened_at: u64,
    pub(super) closed_at: u64,
    pub(super) failed: bool,
    /// When another run was last seen to say the same as its answer.
    pub(super) shared_at: u64,
}

impl Exchange {
    /// One that has not begun yet.
    pub(super) fn new(run: RunId, source: RunSource, looks: Arc<RequestLooks>) -> Self {
        Self {
            run,
            step: 0,
            attempt: 0,
            source,
            request_mark: 0,
            body: 0,
            attribution: None,
            looks,
            begun: None,
            quotes: Vec::new(),
            said: Vec::new(),
            opened_at: 0,
            closed_at: u64::MAX,
            failed: false,
            shared_at: 0,
        }
    }
}

/// The latest exchanges. Numbers go on when exchanges are forgotten. A clone shares them, and costs a copy of those alone
/// that change while it is looked at.
#[derive(Debug, Default, Clone)]
pub(super) struct Exchanges {
    list: VecDeque<Arc<Exchange>>,
    /// The number of the first one in the list.
    first: u64,
    /// When a run was last seen to say what another had served, over all exchanges.
    shared_at: u64,
}

impl Exchanges {
    /// Takes in an exchange, and gives its number.
    pub(super) fn push(&mut self, exchange: Exchange) -> u64 {
        if self.list.len() == EXCHANGES_MAX {
            self.list.pop_front();
            self.first += 1;
        }
        self.list.push_back(Arc::new(exchange));
        self.first + self.list.len() as u64 - 1
    }

    pub(super) fn clear(&mut self) {
        self.first += self.list.len() as u64;
        self.list.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// All of them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Exchange> {
        self.list.iter().map(|exchange| &**exchange)
    }

    /// The place of an exchange among [`Self::iter`]'s, if it is remembered or younger.
    pub(super) fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    pub(super) fn get(&self, number: u64) -> Option<&Exchange> {
        self.list.get(self.place(number)?).map(|exchange| &**exchange)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Exchange> {
        self.list.get_mut(self.place(number)?).map(Arc::make_mut)
    }

    /// Whether an exchange is one of a run's.
    pub(super) fn is_of(&self, number: u64, run: &RunId) -> bool {
        self.get(number).is_some_and(|known| known.run == *run)
    }

    /// Notes that another run says what these exchanges have served.
    pub(super) fn share(&mut self, numbers: impl IntoIterator<Item = u64>, now: u64) {
        for number in numbers {
            self.shared_at = now;
            if let Some(known) = self.get_mut(number) {
                known.shared_at = now;
            }
        }
    }

    /// Whether all of these exchanges have said alone what they served, as far as is known since a time.
    pub(super) fn unshared_since(&self, time: u64, mut numbers: impl Iterator<Item = u64>) -> bool {
        self.shared_at <= time
            || numbers.all(|number| self.get(number).is_none_or(|exchange| exchange.shared_at <= time))
    }
}
