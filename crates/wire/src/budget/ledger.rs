//! The budget: what a call may cost at most is put aside before it is made, what it did cost is charged after it. So
//! the bounds hold however many calls are under way.

use std::{
    fmt::Debug,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::cost::{Budget, Cost, pico_of};

/// The account of all calls that are paid for together.
#[derive(Debug)]
pub struct Ledger {
    bounds: Bounds,
    account: Mutex<Account>,
    settled: Notify,
    journal: Option<Box<dyn SpendingJournal>>,
}

/// Where what is spent is written down as it is spent.
pub trait SpendingJournal: Debug + Send + Sync {
    /// Writes down what is put aside for a call, and gives the call's number.
    ///
    /// # Errors
    /// It cannot be written.
    fn reserve(&self, most: &Cost) -> io::Result<u64>;

    /// Writes down what the call did cost.
    ///
    /// # Errors
    /// It cannot be written.
    fn settle(&self, number: u64, cost: &Cost) -> io::Result<()>;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no {0} left")]
pub struct Exhausted(
    /// What it has too little of: `calls`, `tokens` or `money`.
    pub &'static str,
);

/// What is put aside for a call. Dropped before it is settled, it is charged in full: nobody knows what came of it.
#[derive(Debug)]
pub struct Reservation {
    ledger: Arc<Ledger>,
    held: Cost,
    number: u64,
    open: bool,
}

impl Ledger {
    /// An account of which nothing is spent.
    pub fn new(budget: Budget) -> Self {
        let Budget { calls, tokens, cost } = budget;
        let bounds = Bounds { calls, tokens, pico: cost.map(pico_of) };
        Self { bounds, account: Mutex::default(), settled: Notify::new(), journal: None }
    }

    /// The same with a part of each bound, counted in calls, tokens and millionths of a millionth of the currency.
    #[must_use]
    pub fn shared(mut self, share: impl Fn(u64) -> u64) -> Self {
        let Bounds { calls, tokens, pico } = self.bounds;
        self.bounds = Bounds { calls: calls.map(&share), tokens: tokens.map(&share), pico: pico.map(&share) };
        self
    }

    /// The same with what a journal says was spent before; it is written on there.
    #[must_use]
    pub fn journalled(self, spent: Cost, journal: Box<dyn SpendingJournal>) -> Self {
        let account = Mutex::new(Account { spent, ..Account::default() });
        Self { account, journal: Some(journal), ..self }
    }

    /// Whether money is bounded.
    pub fn bounds_money(&self) -> bool {
        self.bounds.pico.is_some()
    }

    /// Counts what was spent elsewhere.
    pub fn charge(&self, cost: &Cost) {
        self.account().spent.add(cost);
    }

    /// What is left to spend.
    pub fn remaining(&self) -> Budget {
        let (Bounds { calls, tokens, pico }, spent) = (&self.bounds, self.spent());
        let left = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
        let money = left(*pico, spent.pico).map(|pico| Cost { pico, ..Cost::default() }.money());
        Budget { calls: left(*calls, spent.calls), tokens: left(*tokens, spent.tokens()), cost: money }
    }

    /// Whether not even the smallest call would be let through.
    pub fn is_spent(&self) -> bool {
        let mut next = self.spent();
        next.add(&Cost { calls: 1, input: 1, pico: u64::from(self.bounds.pico.is_some()), ..Cost::default() });
        self.is_exhausted() || self.bounds.too_little(&next).is_some()
    }

    /// Puts aside what a call may cost. Waits while calls under way may still turn out cheaper than their bound.
    ///
    /// # Errors
    /// [`Exhausted`] when it cannot be afforded whatever the calls under way cost.
    pub async fn reserve(self: &Arc<Self>, most: Cost) -> Result<Reservation, Exhausted> {
        loop {
            let settled = self.settled.notified();
            match self.put_aside(most, true)? {
                Some(()) => return self.noted(most),
                None => settled.await,
            }
        }
    }

    /// The same without waiting: what calls under way may cost counts as spent.
    ///
    /// # Errors
    /// [`Exhausted`] when it cannot be afforded now.
    pub fn reserve_now(self: &Arc<Self>, most: Cost) -> Result<Reservation, Exhausted> {
        self.put_aside(most, false)?;
        self.noted(most)
    }

    /// `None` where it can be afforded only if calls under way turn out cheaper, and may wait for that.
    fn put_aside(&self, most: Cost, waits: bool) -> Result<Option<()>, Exhausted> {
        let mut account = self.account();
        let with = |sum: Cost| self.bounds.too_little(&sum.plus(&most));
        let Some(lacking) = with(account.spent.plus(&account.reserved)) else {
            account.reserved.add(&most);
            return Ok(Some(()));
        };
        if waits && account.reserved.calls > 0 && with(account.spent).is_none() {
            return Ok(None);
        }
        account.exhausted = true;
        Err(Exhausted(lacking))
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
                Err(Exhausted("journal"))
            }
        }
    }

    /// What was spent so far.
    pub fn spent(&self) -> Cost {
        self.account().spent
    }

    /// Whether a call was refused.
    pub fn is_exhausted(&self) -> bool {
        self.account().exhausted
    }

    /// A panic while the lock was held cannot have left a half-made sum.
    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bounds {
    /// What a cost is beyond, if it is beyond anything.
    fn too_little(&self, cost: &Cost) -> Option<&'static str> {
        let bounds = [
            (self.calls, cost.calls, "calls"),
            (self.tokens, cost.tokens(), "tokens"),
            (self.pico, cost.pico, "money"),
        ];
        bounds.into_iter().find_map(|(most, of, what)| most.is_some_and(|most| of > most).then_some(what))
    }
}

impl Reservation {
    /// What is put aside.
    pub fn held(&self) -> Cost {
        self.held
    }

    /// Charges what the call did cost.
    pub fn settle(&mut self, cost: &Cost) {
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
            let budget = Budget { tokens: Some(1000 + round), cost: Some(0.001), ..Budget::default() };
            let ledger = Arc::new(Ledger::new(budget));
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
