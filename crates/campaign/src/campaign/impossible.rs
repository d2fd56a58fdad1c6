//! What cannot be planted, and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::trajectory::FailureMode;

/// A plan that cannot be planted in a task, or a template that cannot be planted in an agent of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ImpossiblePlan {
    /// The plan or template.
    pub plan: String,
    /// The agents, as plans write them; empty where none may be hit.
    pub agent: String,
    /// The failure mode; none for a fault.
    pub mode: Option<FailureMode>,
    /// What the reference run does not have.
    pub why: String,
}

impl ImpossiblePlan {
    /// That of a sample of which nothing can be drawn.
    pub(super) fn of_sample(why: String) -> Self {
        Self { plan: "sample".to_owned(), agent: String::new(), mode: None, why }
    }
}

/// What cannot be planted in tasks of a system.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ImpossibleRow {
    /// The system.
    pub system: String,
    /// What cannot be planted, and why.
    #[serde(flatten)]
    pub impossible: ImpossiblePlan,
    /// Runs of a plan, or tasks of a template, in which it is so.
    pub times: usize,
}

/// What cannot be planted, added up over tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ImpossibleSums(BTreeMap<(String, ImpossiblePlan), usize>);

impl ImpossibleSums {
    /// Adds what cannot be planted in a task of a system.
    pub(super) fn add(&mut self, system: &str, impossible: &[ImpossiblePlan]) {
        for one in impossible {
            *self.0.entry((system.to_owned(), one.clone())).or_default() += 1;
        }
    }

    /// A row for each system, plan, agent and reason.
    pub(super) fn rows(&self) -> Vec<ImpossibleRow> {
        let row = |((system, impossible), times): (&(String, ImpossiblePlan), &usize)| ImpossibleRow {
            system: system.clone(),
            impossible: impossible.clone(),
            times: *times,
        };
        self.0.iter().map(row).collect()
    }
}

impl ImpossibleRow {
    /// One line: what cannot be planted in whom, how often, and why.
    pub(super) fn in_words(&self) -> String {
        let ImpossiblePlan { plan, agent, mode, why } = &self.impossible;
        let mode = mode.map(|mode| format!(" ({})", mode.code())).unwrap_or_default();
        let agent = if agent.is_empty() { String::new() } else { format!(" in {agent}") };
        format!("{}: {plan}{mode}{agent}, {} ×: {why}", self.system, self.times)
    }
}
