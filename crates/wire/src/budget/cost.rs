//! What calls cost: counted whole, shown as money.

use serde::{Deserialize, Serialize};

use crate::trajectory::Usage;

/// A millionth of a millionth of the currency: prices are per million tokens, with up to six digits behind the point.
pub const PICO: f64 = 1e12;

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

impl Price {
    /// What these tokens cost, in the unit of the prices.
    pub fn cost(self, usage: Usage) -> f64 {
        Cost::of_call(usage, self).money()
    }
}

/// What calls cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cost {
    /// Model calls, retries of an SDK included.
    pub calls: u64,
    /// Tokens of requests.
    pub input: u64,
    /// Tokens of replies.
    pub output: u64,
    /// Money, in millionths of a millionth of the currency.
    pub pico: u64,
    /// Replies of success whose upstream said nothing of tokens: these were charged at their bound.
    #[serde(default)]
    pub unreported: u64,
}

impl Cost {
    /// One call that nobody answered: it has cost no tokens.
    pub const UNANSWERED: Self = Self { calls: 1, input: 0, output: 0, pico: 0, unreported: 0 };

    /// One call of so many tokens.
    pub fn of_call(Usage { input, output }: Usage, price: Price) -> Self {
        let pico = pico_for(input, price.input).saturating_add(pico_for(output, price.output));
        Self { input, output, pico, ..Self::UNANSWERED }
    }

    /// Money, in the currency of the prices.
    #[expect(clippy::cast_precision_loss, reason = "shown to people; sums are kept whole")]
    pub fn money(&self) -> f64 {
        self.pico as f64 / PICO
    }

    /// Tokens, both ways.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds another.
    pub fn add(&mut self, other: &Cost) {
        self.calls = self.calls.saturating_add(other.calls);
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.pico = self.pico.saturating_add(other.pico);
        self.unreported = self.unreported.saturating_add(other.unreported);
    }

    /// Both together.
    pub(super) fn plus(mut self, other: &Cost) -> Self {
        self.add(other);
        self
    }

    /// Takes another away.
    pub(super) fn take(&mut self, other: &Cost) {
        self.calls = self.calls.saturating_sub(other.calls);
        self.input = self.input.saturating_sub(other.input);
        self.output = self.output.saturating_sub(other.output);
        self.pico = self.pico.saturating_sub(other.pico);
    }
}

/// An amount of money, rounded down, so that a bound is never passed by rounding.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "amounts are checked to be 0 to a million")]
pub(super) fn pico_of(money: f64) -> u64 {
    (money * PICO).floor() as u64
}

/// What tokens cost at a price per million, rounded up.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "prices are checked to be 0 to a million")]
pub fn pico_for(tokens: u64, price: f64) -> u64 {
    let pico_per_token = (price * (PICO / 1e6)).ceil() as u64;
    tokens.saturating_mul(pico_per_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_rounded_to_the_safe_side() {
        assert_eq!(pico_for(1_000_000, 0.15), 150_000_000_000);
        assert_eq!(pico_for(3, 0.000_000_1), 3);
        assert_eq!(pico_of(0.1), 100_000_000_000);
        assert!((Cost { pico: pico_for(2_000_000, 2.5), ..Cost::default() }.money() - 5.0).abs() < 1e-9);
    }
}
