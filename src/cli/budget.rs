//! What a verb may spend on model calls: one option with one spelling.

use std::{fmt, str::FromStr, sync::Arc};

use clap::Args;

use super::{Exit, Failure};
use crate::{
    budget::{Budget, Price},
    execution::Meter,
};

/// Bounds as `--budget` says them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct BudgetLimits {
    /// Most executions of the command.
    pub(super) runs: Option<u64>,
    /// Most that model calls may come to.
    pub(super) budget: Budget,
}

/// The value of an option that was renamed: there is none, its message says what to write.
#[derive(Debug, Clone, Copy)]
enum Never {}

/// What a verb may spend.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct BudgetArgs {
    /// Limits of live model calls: calls=N,tokens=N,money=X (with --price). Calls beyond them are refused. `trace` and
    /// `retry` also take runs=N, executions.
    #[arg(long, value_name = "LIMITS")]
    budget: Option<BudgetLimits>,
    /// Price of a million input tokens and of a million output tokens.
    #[arg(long, value_name = "IN,OUT", value_parser = price)]
    pub(super) price: Option<Price>,
    #[arg(long, hide = true, value_parser = former_runs)]
    budget_runs: Option<Never>,
    #[arg(long, hide = true, value_parser = former_calls)]
    budget_calls: Option<Never>,
    #[arg(long, hide = true, value_parser = former_tokens)]
    budget_tokens: Option<Never>,
    #[arg(long, hide = true, value_parser = former_money)]
    budget_money: Option<Never>,
}

impl FromStr for BudgetLimits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        for limit in text.split(',') {
            let refused = || format!("`{limit}` is no limit: expected calls=N, tokens=N or money=X");
            let (name, figure) = limit.split_once('=').ok_or_else(refused)?;
            let figure = figure.trim();
            let count = || figure.parse().map_err(|_| refused());
            match name.trim() {
                "runs" => limits.runs = Some(count()?),
                "calls" => limits.budget.calls = Some(count()?),
                "tokens" => limits.budget.tokens = Some(count()?),
                "money" => {
                    let money = figure.parse().ok().filter(|money| (0.0..=1e6).contains(money));
                    limits.budget.cost = Some(money.ok_or_else(refused)?);
                }
                _ => return Err(refused()),
            }
        }
        Ok(limits)
    }
}

impl fmt::Display for BudgetLimits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Budget { calls, tokens, cost } = self.budget;
        let counts = [("runs", self.runs), ("calls", calls), ("tokens", tokens)];
        let counts = counts.into_iter().filter_map(|(name, count)| Some(format!("{name}={}", count?)));
        let limits: Vec<String> = counts.chain(cost.map(|money| format!("money={money}"))).collect();
        formatter.write_str(&limits.join(","))
    }
}

impl BudgetArgs {
    /// These bounds, as if they had been typed.
    pub(super) fn of_limits(limits: BudgetLimits, price: Option<Price>) -> Self {
        Self { budget: Some(limits), price, ..Self::default() }
    }

    /// What is left of a budget, as if it had been typed.
    pub(super) fn from_budget(budget: Budget, price: Option<Price>) -> Self {
        Self::of_limits(BudgetLimits { runs: None, budget }, price)
    }

    /// Whether anything is bounded.
    pub(super) fn is_given(&self) -> bool {
        self.budget.is_some()
    }

    /// The bounds of a verb that searches.
    ///
    /// # Errors
    /// Money without a price.
    pub(super) fn limits(&self) -> Result<BudgetLimits, Failure> {
        let limits = self.budget.unwrap_or_default();
        if limits.budget.cost.is_some() && self.price.is_none() {
            return Err(Failure::new(Exit::Usage, "--budget money=… bounds nothing without prices")
                .hint("--price IN,OUT: what a million tokens cost"));
        }
        Ok(limits)
    }

    /// The bounds of a verb that decides by itself how often it executes.
    ///
    /// # Errors
    /// Money without a price; a bound of executions.
    pub(super) fn budget(&self) -> Result<Budget, Failure> {
        let limits = self.limits()?;
        match limits.runs {
            None => Ok(limits.budget),
            Some(_) => Err(Failure::new(Exit::Usage, "--budget runs=… is for `trace` and `retry`")
                .hint("calls=N, tokens=N and money=X bound what the model calls of this verb come to")),
        }
    }

    /// What its executions spend from together.
    ///
    /// # Errors
    /// As [`BudgetArgs::budget`].
    pub(super) fn meter(&self) -> Result<Arc<Meter>, Failure> {
        Ok(Meter::within(self.budget()?, self.price))
    }
}

fn former_runs(figure: &str) -> Result<Never, String> {
    Err(format!("write --budget runs={figure}"))
}

fn former_calls(figure: &str) -> Result<Never, String> {
    Err(format!("write --budget calls={figure}"))
}

fn former_tokens(figure: &str) -> Result<Never, String> {
    Err(format!("write --budget tokens={figure}"))
}

fn former_money(figure: &str) -> Result<Never, String> {
    Err(format!("write --budget money={figure}"))
}

/// Two amounts.
pub(super) fn price(text: &str) -> Result<Price, String> {
    let amount = |text: &str| text.trim().parse().ok().filter(|price| (0.0..=1e6).contains(price));
    let both =
        text.split_once(',').and_then(|(input, output)| Some(Price { input: amount(input)?, output: amount(output)? }));
    both.ok_or_else(|| "expected two amounts from 0, such as `2.5,10`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_in_any_order_and_nothing_else_is() {
        let budget = Budget { calls: Some(3), tokens: Some(4), cost: Some(0.5) };
        assert_eq!("money=0.5, calls=3,tokens=4".parse(), Ok(BudgetLimits { runs: None, budget }));
        assert_eq!("runs=2".parse(), Ok(BudgetLimits { runs: Some(2), budget: Budget::default() }));
        for wrong in ["", "calls", "calls=", "calls=-1", "calls=1.5", "money=nan", "money=-1", "steps=3", "calls=1,,"] {
            let error = wrong.parse::<BudgetLimits>().expect_err(wrong);
            assert!(error.contains("is no limit: expected calls=N"), "{error}");
        }
    }
}
