//! The budget: what a call may cost at most is put aside before it is made, what it did cost is charged after it. So
//! the bounds hold however many calls are under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{
    cost::{Cost, pico_of},
    definition::CampaignBudget,
    journal::Journal,
    shard::ShardPart,
};

/// The account of a campaign.
#[derive(Debug)]
pub(super) struct Ledger {
    bounds: Bounds,
    account: Mutex<Account>,
    settled: Notify,
    journal: Option<Journal>,
}

#[derive(Debug, Default)]
struct Bounds {
    calls: Option<u64>,
    tokens: Option<u64>,
    pico: Option<u64>,
}

#[derive(Debug, Default)]
struct Account {
    spent: Cost,
    reserved: Cost,
    exhausted: bool,
}

/// The budget does not hold another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

/// What is put aside for a call. Dropped before it is settled, it is charged in full: nobody knows what came of it.
#[derive(Debug)]
pub(super) struct Reservation {
    ledger: Arc<Ledger>,
    held: Cost,
    number: u64,
    open: bool,
}

impl Ledger {
    /// An account with what was spent before, kept in a journal if there is one.
    /// A part of a campaign has its part of the budget: all parts together have the whole, to the last call, token and
    /// millionth of a millionth.
    pub(super) fn new(budget: &CampaignBudget, part: ShardPart, journal: Option<Journal>) -> Self {
        let spent = journal.as_ref().map(Journal::spent_before).unwrap_or_default();
        let share = |whole: Option<u64>| whole.map(|whole| part.share(whole));
        let bounds =
            Bounds { calls: share(budget.calls), tokens: share(budget.tokens), pico: share(budget.money.map(pico_of)) };
        let account = Mutex::new(Account { spent, ..Account::default() });
        Self { bounds, account, settled: Notify::new(), journal }
    }

    /// Puts aside what a call may cost. Waits while calls under way may still turn out cheaper than their bound.
    ///
    /// # Errors
    /// [`Exhausted`] when it cannot be afforded whatever the calls under way cost.
    pub(super) async fn reserve(self: &Arc<Self>, most: Cost) -> Result<Reservation, Exhausted> {
        loop {
            let settled = self.settled.notified();
            {
                let mut account = self.account();
                let mut then = account.spent;
                then.add(&account.reserved);
                then.add(&most);
                if self.bounds.hold(&then) {
                    account.reserved.add(&most);
                    drop(account);
                    return self.noted(most);
                }
                let mut least = account.spent;
                least.add(&most);
                if account.reserved.calls == 0 || !self.bounds.hold(&least) {
                    account.exhausted = true;
                    return Err(Exhausted);
                }
            }
            settled.await;
        }
    }

    /// Writes down what is put aside: if this program is killed, it counts as spent.
    fn noted(self: &Arc<Self>, held: Cost) -> Result<Reservation, Exhausted> {
        let mut reservation = Reservation { ledger: Arc::clone(self), held, number: 0, open: true };
        let Some(journal) = &self.journal else { return Ok(reservation) };
        match journal.reserve(&held) {
            Ok(number) => {
                reservation.number = number;
                Ok(reservation)
            }
            Err(error) => {
                // Money that cannot be accounted for is not spent.
                tracing::error!(%error, "cannot write down what is spent");
                reservation.settle(&Cost::default());
                self.account().exhausted = true;
                Err(Exhausted)
            }
        }
    }

    /// What was spent so far.
    pub(super) fn spent(&self) -> Cost {
        self.account().spent
    }

    /// Whether a call was refused.
    pub(super) fn is_exhausted(&self) -> bool {
        self.account().exhausted
    }

    /// A panic while the lock was held cannot have left a half-made sum.
    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bounds {
    fn hold(&self, cost: &Cost) -> bool {
        self.calls.is_none_or(|most| cost.calls <= most)
            && self.tokens.is_none_or(|most| cost.tokens() <= most)
            && self.pico.is_none_or(|most| cost.pico <= most)
    }
}

impl Reservation {
    /// What is put aside.
    pub(super) fn held(&self) -> Cost {
        self.held
    }

    /// Charges what the call did cost.
    pub(super) fn settle(&mut self, cost: &Cost) {
        if std::mem::replace(&mut self.open, false) {
            let mut account = self.ledger.account();
            account.reserved.take(&self.held);
            account.spent.add(cost);
            drop(account);
            if let Some(Err(error)) = self.ledger.journal.as_ref().map(|journal| journal.settle(self.number, cost)) {
                tracing::error!(%error, "cannot write down what was spent: it counts as its bound");
            }
            self.ledger.settled.notify_waiters();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let held = self.held;
        self.settle(&held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(calls: u64, tokens: u64, pico: u64) -> Cost {
        Cost { calls, input: tokens, pico, ..Cost::default() }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn never_more_than_the_bound_whatever_runs_side_by_side() {
        for round in 0..50_u64 {
            let budget = CampaignBudget { tokens: Some(1000 + round), money: Some(0.001), ..CampaignBudget::default() };
            let ledger = Arc::new(Ledger::new(&budget, ShardPart::WHOLE, None));
            ledger.account().spent = cost(3, 100, 7);
            let mut clients = tokio::task::JoinSet::new();
            for client in 0..64_u64 {
                let ledger = Arc::clone(&ledger);
                clients.spawn(async move {
                    let mut made = 0;
                    while let Ok(mut held) = ledger.reserve(cost(1, 50, 20_000_000)).await {
                        tokio::task::yield_now().await;
                        made += 1;
                        if client % 7 == 0 {
                            continue; // dropped: charged in full
                        }
                        held.settle(&cost(1, 1 + (client + round) % 50, 1_000_000 * (client % 20)));
                    }
                    made
                });
            }
            let made: u64 = clients.join_all().await.into_iter().sum();
            let spent = ledger.spent();
            assert_eq!(spent.calls, made + 3);
            assert!(spent.tokens() <= 1000 + round && spent.pico <= 1_000_000_000, "{spent:?}");
            // It stops only where another call at its bound would not fit.
            assert!(spent.tokens() + 50 > 1000 + round || spent.pico + 20_000_000 > 1_000_000_000, "{spent:?}");
            assert!(ledger.is_exhausted());
        }
    }
}
