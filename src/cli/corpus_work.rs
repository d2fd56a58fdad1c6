//! A verb's work on each run of a directory: within one budget, a line for each run, and how long the rest may take.

use std::{path::Path, sync::Arc, time::Instant};

use serde_json::Value;

use super::{
    Exit, Failure, Finished, Global,
    budget::{BudgetArgs, BudgetLimits},
    escape, progress, screen,
};
use crate::{budget::Price, execution::Meter};

/// The work on the runs of a directory.
pub(super) struct CorpusWork {
    /// What was done with a run, for its line: `traced`.
    done_word: &'static str,
    quiet: bool,
    total: usize,
    ended: usize,
    began: Instant,
    price: Option<Price>,
    /// Most executions that are left.
    runs_left: Option<u64>,
    /// What all runs spend from.
    pub(super) meter: Arc<Meter>,
    /// Runs that could not be executed.
    pub(super) refused: usize,
    /// Whether the budget ended it.
    pub(super) is_spent: bool,
}

impl CorpusWork {
    /// Work on so many runs.
    ///
    /// # Errors
    /// A budget in money without a price.
    pub(super) fn begin(
        done_word: &'static str,
        total: usize,
        budget: BudgetArgs,
        global: &Global,
    ) -> Result<Self, Failure> {
        let limits = budget.limits()?;
        Ok(Self {
            done_word,
            quiet: global.quiet,
            total,
            ended: 0,
            began: Instant::now(),
            price: budget.price,
            runs_left: limits.runs,
            meter: Meter::within(limits.budget, budget.price),
            refused: 0,
            is_spent: false,
        })
    }

    /// Whether nothing may be spent on a further run.
    pub(super) fn is_over(&mut self) -> bool {
        self.is_spent |= self.meter.is_spent() || self.runs_left == Some(0);
        self.is_spent
    }

    /// What the next run may spend.
    pub(super) fn next_budget(&self) -> BudgetArgs {
        BudgetArgs::of_limits(BudgetLimits { runs: self.runs_left, budget: self.meter.remaining() }, self.price)
    }

    /// A run is done.
    pub(super) fn end(&mut self, dir: &Path, finished: &Finished) {
        self.is_spent |= finished.exit == Exit::Budget;
        let spent = |what: &str| finished.data.pointer(&format!("/spent/{what}")).and_then(Value::as_u64);
        let executed = spent("runs").unwrap_or_default().saturating_sub(spent("resumed").unwrap_or_default());
        self.runs_left = self.runs_left.map(|left| left.saturating_sub(executed));
        self.say_done(dir, &finished.summary);
    }

    /// A run is done, and has spent what the meter says.
    pub(super) fn say_done(&mut self, dir: &Path, what: &str) {
        self.say(self.done_word, dir, what);
    }

    /// A run cannot be executed: that keeps no other from being done.
    ///
    /// # Errors
    /// A signal ended it, and with it the whole work.
    pub(super) fn refuse(&mut self, dir: &Path, failure: Failure) -> Result<String, Failure> {
        if matches!(failure.exit, Exit::Signal(_)) {
            return Err(failure);
        }
        self.refused += 1;
        let why = failure.to_string();
        self.say("refused", dir, &why);
        Ok(why)
    }

    fn say(&mut self, word: &str, dir: &Path, what: &str) {
        self.ended += 1;
        if self.quiet && word == self.done_word {
            return;
        }
        let (number, of) = (self.ended, self.total);
        let left = self.began.elapsed().as_secs() * of.saturating_sub(number) as u64 / number as u64;
        let left = if left > 0 { format!("   about {} to go", progress::time(left)) } else { String::new() };
        let name = escape(&dir.display().to_string());
        screen::say_at_once(&format!("{word:<8} {number} of {of}  {name}  {what}{left}"));
    }
}
