//! How a trace is made, and who hears of it.

use super::{Budget, StepFinding};

/// Which step is tested next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// From the first step to the last.
    #[default]
    Scan,
    /// By halves: the price of O(log n) steps, where one error is carried on.
    Bisect,
    /// The most suspicious step first; what is found moves the suspicion.
    BestFirst,
}

impl Order {
    /// All orders.
    pub const ALL: &'static [Order] = &[Order::Scan, Order::Bisect, Order::BestFirst];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Order::Scan => "scan",
            Order::Bisect => "bisect",
            Order::BestFirst => "best-first",
        }
    }
}

/// How a trace is made.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// Samples of each arm, at most; 2 are the fewest that can blame a step.
    pub samples: u32,
    /// Which step is tested next.
    pub order: Order,
    /// Whether the search ends when the earliest step with an effect is known.
    pub first: bool,
    /// What it may spend.
    pub budget: Budget,
    /// Executions at once.
    pub jobs: u32,
    /// Whether results of tools may differ from the record.
    pub any_tool_results: bool,
    /// Whether each agent as a whole is tested too: its replies all replaced, or emptied.
    pub agents: bool,
    /// What the ids of its runs are made from.
    pub salt: String,
}

/// Hears what a trace finds.
pub trait Watch: Sync {
    /// A step was tested.
    fn tested(&self, finding: &StepFinding);
}
