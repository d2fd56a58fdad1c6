//! What is asked of a failed run, and the words of the answer.

use serde::Serialize;

use crate::{proof::Terms, trajectory::Void};

/// What there is to try instead of a step's reply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Offer {
    /// Nothing, and nothing says that the step is right.
    None,
    /// Nothing: asked the same, a run that succeeded said the same.
    Same,
    /// Other words, or a fresh draw.
    Other {
        /// The arm with the recorded reply.
        control: usize,
        /// The arm with the other one.
        treated: usize,
        /// Whose words they are.
        by: TriedWords,
        /// How likely the step is thought to be decisive, above 0: only the order of the search heeds it.
        suspicion: f64,
    },
}

/// Whose words are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriedWords {
    /// Those of a run that succeeded, or of a person.
    Given,
    /// Those that a model proposes. They may turn a right reply into one that makes up for a later error, and may fail to
    /// correct a wrong one: such words show a flip, and clear no step.
    Proposed,
    /// The live model's, once more.
    Drawn,
}

/// Two steps, corrected together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Couple {
    /// The steps, the earlier first.
    pub steps: (usize, usize),
    /// The arm in which both are as recorded.
    pub control: usize,
    /// The arm in which both are corrected.
    pub treated: usize,
}

/// Which step is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// From the first step on.
    #[default]
    Scan,
    /// By halves: for one error that is carried on.
    Bisect,
    /// The most suspicious step and the first one by turns, where one step that is shown is enough; else as [`Scan`](Self::Scan),
    /// which pays for nothing but what has to be known.
    BestFirst,
}

/// What is asked of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchQuestion {
    /// Its steps, in order.
    pub steps: Vec<Offer>,
    /// Pairs of steps that may be at fault together.
    pub couples: Vec<Couple>,
    /// How many arms there are.
    pub arms: usize,
    /// The arm that takes all of the record: what comes of it without a correction.
    pub sanity: usize,
    /// Which step is tried next.
    pub order: Order,
    /// Whether the earliest decisive step is sought: the steps before one that is shown are to be cleared.
    pub earliest: bool,
    /// Whether the last one is sought.
    pub last: bool,
    /// On what terms something counts as shown.
    pub terms: Terms,
}

/// Where a step, or a couple of steps, stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stands {
    /// Its own effect is shown.
    Shown,
    /// Cleared: asked the same, a run that succeeded said the same.
    Same,
    /// Cleared: an effect of the size that counts is excluded.
    Excluded,
    /// There is nothing to try instead.
    Untouched,
    /// Too many of its executions say nothing.
    Void,
    /// More executions may settle it.
    Open,
    /// As many executions as may be made have not settled it.
    Unsettled,
}

impl Stands {
    /// Whether nothing decisive can stand here.
    pub fn is_cleared(self) -> bool {
        matches!(self, Stands::Same | Stands::Excluded)
    }
}

/// Why a search ends before its steps are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnding {
    /// The record, taken as it is, succeeds: there is no failure to explain.
    NotReproduced,
    /// Most executions say nothing, mostly for this reason.
    Void(Void),
}
