//! What questions to a model may cost: reserved before a question is sent, settled when its answer was counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::trajectory::Usage;

/// Most that is spent on a model; `None` is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Calls.
    pub calls: Option<u64>,
    /// Tokens, both ways.
    pub tokens: Option<u64>,
    /// Money, in the unit of the prices.
    pub cost: Option<f64>,
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// Of a question.
    pub input: f64,
    /// Of an answer.
    pub output: f64,
}

/// What was spent so far, reservations of calls under way included.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Calls.
    pub calls: u64,
    /// Tokens, both ways.
    pub tokens: u64,
    /// Money, in the unit of the prices.
    pub cost: f64,
}

/// One budget with what was spent of it; clones share both.
#[derive(Debug, Clone, Default)]
pub struct QuestionLedger {
    budget: Budget,
    price: Price,
    spent: Arc<Mutex<Spent>>,
}

impl QuestionLedger {
    /// Nothing is spent yet.
    pub fn new(budget: Budget, price: Price) -> Self {
        Self { budget, price, spent: Arc::default() }
    }

    /// What was spent so far.
    pub fn spent(&self) -> Spent {
        *self.open()
    }

    /// What these tokens cost.
    pub fn price(&self, usage: Usage) -> f64 {
        self.price.of(usage)
    }

    /// Takes the most that a call may cost from the budget, so that calls at the same time cannot exceed it.
    ///
    /// # Errors
    /// What the budget has too little of: `calls`, `tokens` or `money`.
    pub fn reserve(&self, most: Usage) -> Result<ReservedQuestion<'_>, &'static str> {
        let Budget { calls, tokens, cost } = self.budget;
        let (wanted, price) = (most.input.saturating_add(most.output), self.price(most));
        let mut spent = self.open();
        if calls.is_some_and(|calls| spent.calls + 1 > calls) {
            return Err("calls");
        }
        if tokens.is_some_and(|tokens| spent.tokens.saturating_add(wanted) > tokens) {
            return Err("tokens");
        }
        if cost.is_some_and(|cost| spent.cost + price > cost) {
            return Err("money");
        }
        spent.calls += 1;
        spent.tokens = spent.tokens.saturating_add(wanted);
        spent.cost += price;
        Ok(ReservedQuestion { ledger: self, most })
    }

    fn open(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Price {
    /// What these tokens cost.
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    pub fn of(self, usage: Usage) -> f64 {
        (usage.input as f64 * self.input + usage.output as f64 * self.output) / 1e6
    }
}

/// A reservation. One that is dropped unsettled stands: the backend may have answered and be paid.
#[derive(Debug)]
pub struct ReservedQuestion<'a> {
    ledger: &'a QuestionLedger,
    most: Usage,
}

impl ReservedQuestion<'_> {
    /// Gives back what was not used.
    pub fn settle(self, usage: Usage) {
        let mut spent = self.ledger.open();
        let reserved = self.most.input.saturating_add(self.most.output);
        spent.tokens = spent.tokens.saturating_add(usage.input + usage.output).saturating_sub(reserved);
        spent.cost = (spent.cost + self.ledger.price(usage) - self.ledger.price(self.most)).max(0.0);
    }
}
