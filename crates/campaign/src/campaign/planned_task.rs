//! What is planned on a task. Each edit is tried on the task's reference run first: what cannot be made there is neither executed nor
//! counted as planted, and the reason is kept.

use std::sync::Arc;

use super::{aim::Aim, cell::Cell, definition::Campaign, impossible::ImpossiblePlan, sample, treatment::TargetedPlan};
use crate::{
    plan::{self, DryRun},
    trajectory::Step,
};

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
            let aimed = Arc::new(TargetedPlan { name: fixed.name.clone(), plan, position: None });
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
    fn add(&mut self, cell: Cell, aimed: &TargetedPlan, dry_run: &DryRun<'_>, refused: Option<String>) {
        let Some(why) = refused.or_else(|| dry_run.plan_obstacle(&aimed.plan, cell.run.as_str())) else {
            return self.cells.push(cell);
        };
        let impossible =
            |aim: Aim| ImpossiblePlan { plan: aimed.name.clone(), agent: aim.agent, mode: aim.mode, why: why.clone() };
        self.impossible.extend(Aim::all_in(&aimed.plan).into_iter().map(impossible));
    }
}
