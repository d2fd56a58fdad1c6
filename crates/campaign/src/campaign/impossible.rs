//! What is planned on a task. Each edit is tried on the task's reference run first: what cannot be made there is neither executed nor
//! counted as planted, and the reason is kept.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{cell::Cell, definition::Campaign, funnel::Aim, sample, stages::aims, treatment::Aimed};
use crate::{
    plan::{self, DryRun},
    trajectory::{FailureMode, Step},
};

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

/// What is planned on a task.
#[derive(Debug, Default)]
pub(super) struct PlannedTask {
    /// The injected runs that can be made.
    pub(super) cells: Vec<Cell>,
    /// What cannot be planted.
    pub(super) impossible: Vec<ImpossiblePlan>,
}

impl Campaign {
    /// What is planned on the task of this clean run, whose steps these are.
    pub(super) fn planned_on(&self, reference: &Cell, steps: &[Step]) -> PlannedTask {
        let (dry_run, called) = (DryRun::new(steps), sample::called(steps));
        let mut planned = PlannedTask::default();
        for fixed in self.plans.iter().filter(|fixed| fixed.systems.contains(&reference.system)) {
            let resolved = plan::resolve(&fixed.plan, &called);
            let refused = resolved.as_ref().err().map(ToString::to_string);
            let plan = resolved.unwrap_or_else(|_| fixed.plan.clone());
            let aimed = Arc::new(Aimed { name: fixed.name.clone(), plan, position: None });
            for repeat in 0..fixed.repeats {
                planned.add(Cell::injected(self, reference, &aimed, repeat), &aimed, &dry_run, refused.clone());
            }
        }
        if let Some(space) = self.sample.as_ref().filter(|space| space.systems.contains(&reference.system)) {
            let drawn = sample::draw(space, self.seed, reference.task, steps);
            planned.impossible.extend(drawn.impossible);
            let dry_run = dry_run.keeping_to_modes();
            for aimed in drawn.plans.into_iter().map(Arc::new) {
                planned.add(Cell::injected(self, reference, &aimed, 0), &aimed, &dry_run, None);
            }
        }
        planned
    }
}

impl PlannedTask {
    /// Adds a run of a plan, or why it cannot be one.
    fn add(&mut self, cell: Cell, aimed: &Aimed, dry_run: &DryRun<'_>, refused: Option<String>) {
        let Some(why) = refused.or_else(|| dry_run.plan_obstacle(&aimed.plan, cell.run.as_str())) else {
            return self.cells.push(cell);
        };
        let impossible =
            |aim: Aim| ImpossiblePlan { plan: aimed.name.clone(), agent: aim.agent, mode: aim.mode, why: why.clone() };
        self.impossible.extend(aims(&aimed.plan).into_iter().map(impossible));
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
