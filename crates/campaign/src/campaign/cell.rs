//! Cells: what is run once. A cell is named by what it is, so that it is the same cell in every process that sees the
//! campaign, and its name tells an agent nothing.

use std::sync::Arc;

use super::{
    definition::Campaign,
    treatment::{TargetedPlan, Treatment},
};
use crate::{
    plan::Planted,
    replay::{AtFork, ForkPoint},
    trajectory::{RunId, StepIndex},
};

/// What perturbed cells are named by. Earlier versions named plain ones `null` and `again`: those are other executions.
const PERTURBED_CONTROL: &str = "perturbed null";
const PERTURBED_AGAIN: &str = "perturbed again";
const SHAM: &str = "sham";

/// One run to be made.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// The run's id.
    pub(super) run: RunId,
    /// What it is within the campaign, wherever the upstream listens: what draws depend on.
    pub(super) key: RunId,
    /// The system, by index.
    pub(super) system: usize,
    /// The task, by index.
    pub(super) task: usize,
    /// What is run.
    pub(super) kind: CellKind,
}

/// What a cell runs.
#[derive(Debug, Clone)]
pub(super) enum CellKind {
    /// The system as it is.
    Clean { repeat: u32 },
    /// The system with a plan, after the prefix of a clean run.
    Injected { aimed: Arc<TargetedPlan>, repeat: u32, reference: RunId },
    /// The treatment of an earlier cell once more: the same bytes where it leaves the reference, its draws from there, and neutral
    /// changes of its own.
    Again { of: RunId, arm: RunId, index: u32, treatment: Arc<Treatment>, reference: RunId },
    /// The same prefix without the plan; `perturbed` with neutral changes of its own.
    Control { fork: Fork, arm: RunId, index: u32, perturbed: bool },
    /// The neutral change of an earlier run without the plan once more, as if it were planted: the same bytes where it leaves the reference,
    /// and further neutral changes of its own. `control_arm` and `control`: the arm of that run, and its number there.
    Sham { fork: Fork, control_arm: RunId, control: u32, arm: RunId, index: u32 },
    /// An injected cell less what one injection did to one agent, left where that one left the reference.
    Without { of: RunId, planted: Planted, treatment: Arc<Treatment>, reference: RunId },
}

/// Where a run leaves its reference: what control executions share with all cells that leave it there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Fork {
    /// The clean run.
    pub(super) reference: RunId,
    /// The first step that differs, or whose reply does.
    pub(super) step: StepIndex,
    /// Whether the step's own reply is the recorded one: only the reply was altered.
    pub(super) replied: bool,
}

impl Cell {
    /// A clean run.
    pub(super) fn clean(campaign: &Campaign, system: usize, task: usize, repeat: u32) -> Self {
        let words = ["clean", &repeat.to_string()];
        let (run, key) = (name(campaign, system, task, &words), key(campaign, system, task, &words));
        Self { run, key, system, task, kind: CellKind::Clean { repeat } }
    }

    /// A run of a plan.
    pub(super) fn injected(campaign: &Campaign, of: &Cell, aimed: &Arc<TargetedPlan>, repeat: u32) -> Self {
        let (plan, times) = (&aimed.plan, repeat.to_string());
        let seed = plan.seed.to_string();
        let words = ["injected", &aimed.name, &plan.digest, &seed, &times];
        let (run, key) = (name(campaign, of.system, of.task, &words), key(campaign, of.system, of.task, &words));
        let kind = CellKind::Injected { aimed: Arc::clone(aimed), repeat, reference: of.run.clone() };
        Self { run, key, kind, ..of.clone() }
    }

    /// A control execution, plain or perturbed.
    pub(super) fn control(campaign: &Campaign, of: &Cell, fork: &Fork, index: u32, perturbed: bool) -> Self {
        let (step, number) = (fork.step.to_string(), index.to_string());
        let own = place_name(fork);
        let words = [if perturbed { PERTURBED_CONTROL } else { "null" }, fork.reference.as_str(), &step, own, &number];
        let run = name(campaign, of.system, of.task, &words);
        let arm = key(campaign, of.system, of.task, &["null", &step, own]);
        Self { run, kind: CellKind::Control { fork: fork.clone(), arm, index, perturbed }, ..of.clone() }
    }

    /// The neutral change that the control execution of a number got, once more; 0 is the first repeat.
    pub(super) fn sham(campaign: &Campaign, of: &Cell, fork: &Fork, control: u32, index: u32) -> Option<Self> {
        let CellKind::Control { arm: control_arm, .. } = Self::control(campaign, of, fork, control, true).kind else {
            return None;
        };
        let [step, control_number, number] = [fork.step, control, index].map(|number| number.to_string());
        let own = place_name(fork);
        let words = [SHAM, fork.reference.as_str(), &step, own, &control_number, &number];
        let run = name(campaign, of.system, of.task, &words);
        let arm = key(campaign, of.system, of.task, &[SHAM, &step, own, &control_number]);
        Some(Self { run, kind: CellKind::Sham { fork: fork.clone(), control_arm, control, arm, index }, ..of.clone() })
    }

    /// The treatment of a cell once more; 0 is the first repeat.
    pub(super) fn repeat_of_treatment(
        campaign: &Campaign,
        of: &Cell,
        treatment: &Arc<Treatment>,
        index: u32,
    ) -> Option<Self> {
        Self::repeat(campaign, of, treatment, None, index)
    }

    /// The treatment of a cell once more, in turn with runs of another cell, which leaves a part of it out: no run of the first
    /// kind, for those are older.
    pub(super) fn repeat_in_turn(
        campaign: &Campaign,
        of: &Cell,
        treatment: &Arc<Treatment>,
        other: &Cell,
        index: u32,
    ) -> Option<Self> {
        Self::repeat(campaign, of, treatment, Some(other), index)
    }

    fn repeat(
        campaign: &Campaign,
        of: &Cell,
        treatment: &Arc<Treatment>,
        beside: Option<&Cell>,
        index: u32,
    ) -> Option<Self> {
        let number = index.to_string();
        let (mut words, mut of_arm) = (vec![PERTURBED_AGAIN, of.run.as_str(), &number], vec!["again", of.key.as_str()]);
        if let Some(beside) = beside {
            words.extend(["beside", beside.run.as_str()]);
            of_arm.extend(["beside", beside.key.as_str()]);
        }
        let run = name(campaign, of.system, of.task, &words);
        let arm = key(campaign, of.system, of.task, &of_arm);
        let (treatment, reference) = (Arc::clone(treatment), of.reference()?.clone());
        let kind = CellKind::Again { of: of.run.clone(), arm, index, treatment, reference };
        Some(Self { run, kind, ..of.clone() })
    }

    /// An injected cell less what one injection did to one agent.
    pub(super) fn without(campaign: &Campaign, of: &Cell, planned: &ForkPoint, planted: &Planted) -> Option<Self> {
        let CellKind::Injected { aimed, reference, .. } = &of.kind else { return None };
        let [injection, instance] = [planted.injection, planted.instance].map(|number| number.to_string());
        let words = ["without", of.run.as_str(), &injection, planted.agent.as_str(), &instance];
        let run = name(campaign, of.system, of.task, &words);
        let words = ["without", of.key.as_str(), &injection, planted.agent.as_str(), &instance];
        let key = key(campaign, of.system, of.task, &words);
        let mut less = TargetedPlan::clone(aimed);
        // The others keep their numbers and their draws.
        less.plan.draws_of = Some(of.run.as_str().to_owned());
        less.plan.left_out = Some(planted.clone());
        less.plan.without_faults = true;
        let treatment = Arc::new(Treatment { aimed: Arc::new(less), fork: planned.clone() });
        let (planted, reference) = (planted.clone(), reference.clone());
        let kind = CellKind::Without { of: of.run.clone(), planted, treatment, reference };
        Some(Self { run, key, kind, ..of.clone() })
    }

    /// The arm of which it is an execution with neutral changes, and its number there; `None` of runs without such changes.
    pub(super) fn perturbed(&self) -> Option<(&str, u32)> {
        match &self.kind {
            CellKind::Again { arm, index, .. }
            | CellKind::Sham { arm, index, .. }
            | CellKind::Control { arm, index, perturbed: true, .. } => Some((arm.as_str(), *index)),
            _ => None,
        }
    }

    /// The plan that is applied.
    pub(super) fn plan(&self) -> Option<&Arc<TargetedPlan>> {
        match &self.kind {
            CellKind::Injected { aimed, .. } => Some(aimed),
            CellKind::Again { treatment, .. } | CellKind::Without { treatment, .. } => Some(&treatment.aimed),
            CellKind::Clean { .. } | CellKind::Control { .. } | CellKind::Sham { .. } => None,
        }
    }

    /// The clean run whose beginning it shares.
    pub(super) fn reference(&self) -> Option<&RunId> {
        match &self.kind {
            CellKind::Clean { .. } => None,
            CellKind::Injected { reference, .. }
            | CellKind::Again { reference, .. }
            | CellKind::Without { reference, .. } => Some(reference),
            CellKind::Control { fork, .. } | CellKind::Sham { fork, .. } => Some(&fork.reference),
        }
    }
}

impl Fork {
    /// Where a cell with this plan leaves its reference.
    pub(super) fn at_point(reference: &RunId, planned: &ForkPoint) -> Self {
        Self { reference: reference.clone(), step: planned.step, replied: planned.at == AtFork::Recorded }
    }
}

/// How a place is named.
fn place_name(fork: &Fork) -> &'static str {
    if fork.replied { "after the reply" } else { "before the reply" }
}

/// Everything that a run depends on, hashed: program, task, seed, and which of the task's cells it is.
fn name(campaign: &Campaign, system: usize, task: usize, words: &[&str]) -> RunId {
    hashed(campaign, campaign.upstream.as_deref().unwrap_or_default(), system, task, words)
}

/// The same wherever the upstream listens: two servers of one model draw alike.
fn key(campaign: &Campaign, system: usize, task: usize, words: &[&str]) -> RunId {
    hashed(campaign, "", system, task, words)
}

fn hashed(campaign: &Campaign, upstream: &str, system: usize, task: usize, words: &[&str]) -> RunId {
    let mut text = String::new();
    let mut add = |part: &str| {
        // Lengths keep `ab` + `c` apart from `a` + `bc`.
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    };
    add("aegis cell 2");
    add(&campaign.seed.to_string());
    add(upstream);
    if let Some(system) = campaign.systems.get(system) {
        add(&system.name);
        add(&system.config_text);
        add(system.directory.as_deref().unwrap_or_default());
        for word in &system.command {
            add(&word.text);
        }
        for (name, value) in &system.environment {
            add(name);
            add(&value.text);
        }
        add(&format!("{:?} {} {:?}", system.timeout, system.max_calls, system.exit_codes));
    }
    if let Some(task) = campaign.tasks.get(task) {
        // A value that would not serialise must not leave two tasks with one name.
        add(&serde_json::to_string(task).unwrap_or_else(|_| format!("{task:?}")));
    }
    add(&serde_json::to_string(&campaign.verify).unwrap_or_else(|_| format!("{:?}", campaign.verify)));
    for word in words {
        add(word);
    }
    RunId::hashed("c", text.as_bytes())
}
