//! Proof: controls for what flipped, runs less one injection for plans of several, verified labels.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Progress,
    bench::Bench,
    cell::{Cell, Fork, keeps_reply},
    ended::{Class, Ended},
    error::CampaignError,
    funnel::{Attempt, Concluded},
    stages::count,
};
use crate::trajectory::{RunId, Verdict};

impl Bench {
    /// Runs the controls of what flipped, each once for all cells that share it, and writes the labels that they prove.
    pub(super) async fn prove(
        self: &Arc<Self>,
        cells: &[Option<Cell>],
        concluded: &mut Concluded,
        progress: &dyn Progress,
    ) -> Result<(), CampaignError> {
        let campaign = &self.house.campaign;
        let mut forks: BTreeMap<Fork, Cell> = BTreeMap::new();
        let mut of: Vec<Option<Fork>> = Vec::new();
        for (attempt, cell) in concluded.attempts.iter().zip(cells) {
            let fork = cell.as_ref().filter(|_| attempt.flipped).and_then(|cell| Some((fork(cell, attempt)?, cell)));
            if let Some((fork, cell)) = &fork {
                forks.entry(fork.clone()).or_insert_with(|| (*cell).clone());
            }
            of.push(fork.map(|(fork, _)| fork));
        }
        let mut controls = Vec::new();
        for (fork, cell) in &forks {
            // Before the first reply a control is a clean run, and those are made already.
            if fork.step > 0 || fork.replied {
                controls.extend((0..campaign.controls).map(|index| Cell::control(campaign, cell, fork, index)));
            }
        }
        let ended = self.stage("verify", &controls, progress).await?;
        concluded.unfinished += ended.iter().filter(|ended| ended.is_none()).count();
        let proven = self.verdicts(&forks, &controls, &ended, concluded);
        for (attempt, fork) in concluded.attempts.iter_mut().zip(&of) {
            if let Some(controls) = fork.as_ref().and_then(|fork| proven.get(fork)) {
                attempt.controls = Some((controls.passed, controls.runs));
                attempt.class = Some(controls.class(campaign.controls));
            }
        }
        progress.done(&concluded.verify_line());
        Ok(())
    }

    /// What the controls of each fork say.
    fn verdicts(
        &self,
        forks: &BTreeMap<Fork, Cell>,
        controls: &[Cell],
        ended: &[Option<Ended>],
        concluded: &mut Concluded,
    ) -> BTreeMap<Fork, Controls> {
        let campaign = &self.house.campaign;
        let mut verdicts: BTreeMap<Fork, Controls> = BTreeMap::new();
        for (cell, ended) in controls.iter().zip(ended) {
            let super::cell::Kind::Control { fork, .. } = &cell.kind else { continue };
            let verdict = verdicts.entry(fork.clone()).or_insert_with(|| Controls::wanting(campaign.controls_pass));
            let Some(ended) = ended else { continue };
            count(concluded, ended);
            concluded.controls += 1;
            concluded.controls_passed += usize::from(ended.passed());
            verdict.take(ended);
        }
        for fork in forks.keys() {
            // The clean runs of a task that is gone on with have all passed.
            let clean =
                || Controls { runs: campaign.clean, passed: campaign.clean, ..Controls::wanting(campaign.clean) };
            verdicts.entry(fork.clone()).or_insert_with(clean);
        }
        verdicts
    }

    /// Runs proven plans of several injections again, less one each: which of them did the failure need?
    pub(super) async fn leave_one_out(
        self: &Arc<Self>,
        cells: &[Option<Cell>],
        concluded: &mut Concluded,
        progress: &dyn Progress,
    ) -> Result<(), CampaignError> {
        let mut less = Vec::new();
        for (number, (attempt, cell)) in concluded.attempts.iter().zip(cells).enumerate() {
            let (Some(cell), Some(Class::Verified)) = (cell, attempt.class) else { continue };
            let delivered = delivered(attempt);
            if delivered.len() > 1 {
                let without = |injection: &u32| {
                    Some((number, *injection, Cell::without(&self.house.campaign, cell, *injection)?))
                };
                less.extend(delivered.iter().filter_map(without));
            }
        }
        if less.is_empty() {
            return Ok(());
        }
        let runs: Vec<Cell> = less.iter().map(|(_, _, cell)| cell.clone()).collect();
        let ended = self.stage("narrow", &runs, progress).await?;
        for ((number, injection, _), ended) in less.iter().zip(&ended) {
            let Some(ended) = ended else {
                concluded.unfinished += 1;
                continue;
            };
            count(concluded, ended);
            concluded.without += 1;
            let told = ended.defect().is_none() && ended.outcome.verdict != Verdict::Unknown;
            if let (true, Some(attempt)) = (told, concluded.attempts.get_mut(*number)) {
                attempt.needed.insert(*injection, ended.outcome.verdict == Verdict::Success);
            }
        }
        progress.done(&concluded.narrow_line());
        Ok(())
    }
}

/// What the controls of a fork came to.
#[derive(Debug, Clone, Default)]
struct Controls {
    /// How many must pass.
    needed: u32,
    runs: u32,
    passed: u32,
    /// Runs that are no evidence: the upstream failed, or the prefix was left.
    defect: Option<Class>,
}

impl Controls {
    fn wanting(needed: u32) -> Self {
        Self { needed, ..Self::default() }
    }

    fn take(&mut self, ended: &Ended) {
        self.runs += 1;
        self.passed += u32::from(ended.passed());
        self.defect =
            self.defect.or(ended.defect().filter(|class| matches!(class, Class::InfraError | Class::Diverged)));
    }

    fn class(&self, wanted: u32) -> Class {
        match self.defect {
            _ if self.passed >= self.needed && self.runs > 0 => Class::Verified,
            Some(Class::Diverged) => Class::Diverged,
            Some(_) => Class::Unproven,
            None if self.runs < wanted => Class::Unproven,
            None => Class::FlakyTask,
        }
    }
}

/// Where an injected run leaves its reference.
fn fork(cell: &Cell, attempt: &Attempt) -> Option<Fork> {
    let reference: RunId = cell.reference()?.clone();
    let errors = &attempt.ended.as_ref()?.label.as_ref()?.errors;
    let step = errors.iter().map(|entry| entry.error.step).min()?;
    let sides = errors.iter().filter(|entry| entry.error.step == step).map(|entry| entry.error.side);
    Some(Fork { reference, step, replied: keeps_reply(sides) })
}

/// The injections of an attempt that were delivered, by index.
fn delivered(attempt: &Attempt) -> Vec<u32> {
    let label = attempt.ended.as_ref().and_then(|ended| ended.label.as_ref());
    let mut indices: Vec<u32> =
        label.iter().flat_map(|label| &label.errors).map(|entry| entry.error.injection).collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}
