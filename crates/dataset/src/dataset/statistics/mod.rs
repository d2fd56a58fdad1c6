//! Statistics of a dataset: what is in it, how balanced it is, and whether its injections give themselves away.
//!
//! [`statistics`] reads a dataset twice (once to count, once to look at failures beside their twins) and holds a few
//! numbers a sample.

mod counting;
mod pairs;
mod probe;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Dataset, DatasetError};

pub(super) use pairs::{TwinPair, pairs};
pub(super) use probe::{FEW_TASKS, FEWEST, Replies, area};

/// What is in a dataset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Statistics {
    /// Samples.
    pub samples: u64,
    /// Samples by kind: `clean`, `failure`, `benign`.
    pub kinds: BTreeMap<String, u64>,
    /// How sure the labels are, all together, in words.
    pub sure: String,
    /// Samples by part; `none` for those in no part.
    pub splits: BTreeMap<String, u64>,
    /// Samples by multi-agent system.
    pub systems: BTreeMap<String, u64>,
    /// Samples by backend.
    pub backends: BTreeMap<String, u64>,
    /// Tasks.
    pub tasks: u64,
    /// Agents, by system and name.
    pub agents: Vec<AgentFacts>,
    /// What the labels of failures say.
    pub labels: LabelFacts,
    /// How long samples are.
    pub lengths: Lengths,
    /// Where errors are.
    pub position: Position,
    /// Failures beside their twins.
    pub twins: TwinFacts,
    /// How well a shallow classifier tells injected replies: all manipulators together, then each.
    pub probe: Vec<Probed>,
}

/// An agent of a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct AgentFacts {
    /// The system.
    pub system: String,
    /// The agent.
    pub agent: String,
    /// Its steps.
    pub steps: u64,
    /// Its labelled errors in failures.
    pub errors: u64,
}

/// What the labels of failures say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct LabelFacts {
    /// Errors.
    pub errors: u64,
    /// What was planted besides, and is shown to be not needed.
    pub others: u64,
    /// What was planted besides, and of which nothing is shown.
    pub not_shown: u64,
    /// Errors by failure mode: code and name.
    pub modes: BTreeMap<String, u64>,
    /// Errors by side.
    pub sides: BTreeMap<String, u64>,
    /// Errors by manipulator.
    pub manipulators: BTreeMap<String, u64>,
    /// Errors by what erred: `agent`, `tool`, `peer`; empty where only agents did.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub culprits: BTreeMap<String, u64>,
    /// Failures that another reply of a later agent is shown to save, by agent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missed_catch: BTreeMap<String, u64>,
    /// Labels by definition.
    pub definitions: BTreeMap<String, u64>,
    /// Failures by how many errors they have.
    pub errors_per_sample: BTreeMap<u64, u64>,
    /// How even the modes are: entropy of their shares over that of equal shares of all 14; 1 is even, `None` without
    /// a mode.
    pub mode_evenness: Option<f64>,
    /// Modes of the taxonomy that no failure has, by code.
    pub modes_missing: Vec<String>,
}

/// How long samples are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Lengths {
    /// Steps a sample.
    pub steps: Summary,
    /// Characters a sample: new input and output, each said once.
    pub characters: Summary,
}

/// Where errors are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Position {
    /// Errors by step, 0-based.
    pub step: BTreeMap<u32, u64>,
    /// Errors by tenth of the run.
    pub tenth: [u64; 10],
    /// Errors at their agent's first call.
    pub first_call: u64,
}

/// Failures beside their twins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct TwinFacts {
    /// Clean runs.
    pub clean: u64,
    /// Failures with a twin in the dataset.
    pub paired: u64,
    /// Failures without.
    pub unpaired: u64,
    /// Failures a clean run.
    pub failures_per_clean: Summary,
}

/// A row of numbers in short.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The middle one; of two the lower.
    pub median: u64,
    /// The mean.
    pub mean: f64,
    /// The greatest.
    pub max: u64,
    /// All together.
    pub total: u64,
}

/// How well a shallow classifier tells injected replies from the twins' replies.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Probed {
    /// The manipulator; `all` for all together.
    pub manipulator: String,
    /// Replies at labelled steps.
    pub injected: u64,
    /// Replies of twins at the same calls.
    pub clean: u64,
    /// Area under the curve, cross-validated by task: 0.5 is chance, 1 is a perfect tell. `None` where there are
    /// fewer than four tasks.
    pub auc: Option<f64>,
    /// Its 95 % interval (Hanley, `McNeil` 1982; below ten tasks Wilson's, of so many draws).
    pub interval: Option<(f64, f64)>,
    /// The words that tell most, digits shown as `0`.
    pub tells: Vec<String>,
}

impl Summary {
    /// Of some numbers.
    pub fn from_numbers(mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        let (Some(min), Some(max)) = (numbers.first(), numbers.last()) else { return Self::default() };
        let total: u64 = numbers.iter().sum();
        let median = numbers.get((numbers.len() - 1) / 2).copied().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
        let mean = total as f64 / numbers.len() as f64;
        Self { count: numbers.len() as u64, min: *min, median, mean, max: *max, total }
    }
}

/// Counts a dataset.
///
/// # Errors
/// A file cannot be read, or a line is no sample.
pub fn statistics(dataset: &Dataset) -> Result<Statistics, DatasetError> {
    let mut gathered = counting::SampleCounts::default();
    for placed in dataset.samples() {
        gathered.add(&placed?);
    }
    let probe = probe::probe(dataset, &gathered.index)?;
    let stated = dataset.manifest().and_then(|manifest| manifest.claims);
    let sure = gathered.grounds.in_words(stated.as_ref());
    Ok(Statistics { sure, ..gathered.finish(probe) })
}
