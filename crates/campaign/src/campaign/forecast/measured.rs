//! What the runs cost that a campaign's directory holds: measured, for what is foretold of the rest.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;

use super::super::{
    cell::Cell,
    conclusion,
    decoy::is_decoy,
    definition::Campaign,
    ended::{EndedCell, Ran},
    impossible::ImpossibleSums,
};
use crate::{
    budget::Cost,
    proof::{ProofSample, is_chaotic},
    recording::{self, RunFile},
};

/// What clean runs cost in the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MeasuredRuns {
    /// Clean runs that were looked at.
    pub runs: u64,
    /// Calls of one.
    pub calls: f64,
    /// Tokens of its requests.
    pub input_tokens: f64,
    /// Tokens of its replies.
    pub output_tokens: f64,
    /// Tasks that were seen to be chaotic: neutral changes alone turn their outcome too often, and they get no label.
    pub chaotic_tasks: u64,
}

/// Runs of one kind: how many, and what they were charged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RunSum {
    pub(super) runs: u64,
    pub(super) cost: Cost,
}

impl RunSum {
    fn add(&mut self, ended: &EndedCell) {
        self.runs += 1;
        self.cost.add(&ended.spent);
    }

    /// Calls of these runs, with the questions to a judge about each.
    pub(super) fn calls(&self, judged: f64) -> f64 {
        real(self.cost.calls) + real(self.runs) * judged
    }
}

/// What was made of one task by one system.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ChainRuns {
    pub(super) clean: RunSum,
    /// Clean runs that passed.
    pub(super) passed: u64,
    /// Runs with a planned error.
    pub(super) injected: RunSum,
    /// Of them, those whose outcome flipped.
    pub(super) flipped: u64,
    /// Calls of them that the record of the reference answered.
    pub(super) recorded: u64,
    pub(super) decoys: RunSum,
    /// Runs that show why others failed: with and without the error again, less one error, shams.
    pub(super) proof: RunSum,
    /// Runs of the proof without any error, that passed and that failed.
    pub(super) controls: (usize, usize),
    /// Injected runs that can be planted in its reference run; `None` where that is not known.
    pub(super) possible: Option<u64>,
    /// Whether nothing of it is left to be made.
    pub(super) whole: bool,
}

impl ChainRuns {
    fn add(&mut self, ended: &EndedCell) {
        match &ended.kind {
            Ran::Clean { .. } => {
                self.clean.add(ended);
                self.passed += u64::from(ended.passed());
            }
            Ran::Injected { plan, .. } if is_decoy(plan) => self.decoys.add(ended),
            Ran::Injected { .. } => {
                self.injected.add(ended);
                self.flipped += u64::from(ended.class().is_none());
                self.recorded += ended.prefix.calls;
            }
            Ran::Again { .. } | Ran::Control { .. } | Ran::Sham { .. } | Ran::Without { .. } => self.proof.add(ended),
        }
        match (&ended.kind, ended.proof_sample()) {
            (Ran::Control { .. }, ProofSample::Passed) => self.controls.0 += 1,
            (Ran::Control { .. }, ProofSample::Failed) => self.controls.1 += 1,
            _ => {}
        }
    }

    /// All that its runs were charged.
    pub(super) fn spent(&self) -> RunSum {
        let mut sum = RunSum::default();
        for part in [self.clean, self.injected, self.decoys, self.proof] {
            sum.runs += part.runs;
            sum.cost.add(&part.cost);
        }
        sum
    }

    /// Calls of one of its clean runs; `None` where none is finished.
    pub(super) fn clean_calls(&self, judged: f64) -> Option<f64> {
        (self.clean.runs > 0).then(|| self.clean.calls(judged) / real(self.clean.runs))
    }

    /// Whether it was gone on with after its clean runs; `None` where some of these are not finished.
    pub(super) fn goes_on(&self, clean: u32) -> Option<bool> {
        (self.clean.runs >= u64::from(clean)).then_some(self.passed >= self.clean.runs)
    }
}

/// What was made of the chosen tasks of a system.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SystemRuns {
    /// By task, in their order; a task of which nothing was made is none of them.
    pub(super) chains: Vec<ChainRuns>,
    /// Tasks that are chosen.
    pub(super) tasks: u64,
    /// Whether it was seen not to repeat itself, whatever is declared of it.
    pub(super) is_revoked: bool,
}

/// What a campaign's directory holds.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCampaign {
    /// The clean runs of all systems.
    pub(super) clean: MeasuredRuns,
    /// What cannot be planted.
    pub(super) impossible: ImpossibleSums,
    /// By system, in the order of the file.
    pub(super) systems: Vec<SystemRuns>,
}

/// What the runs of the chosen tasks cost that a campaign's directory holds; `None` where no clean run is among them.
pub fn measured(campaign: &Campaign, root: &Path, only: &[regex::Regex]) -> Option<MeasuredCampaign> {
    let mut chains: BTreeMap<(String, String), ChainRuns> = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("cells")).ok()? {
        let bytes = entry.and_then(|entry| RunFile::bytes(&entry.path()));
        let read = bytes.ok().and_then(|bytes| serde_json::from_slice::<EndedCell>(&bytes).ok());
        let Some(ended) = read else { continue };
        chains.entry((ended.system.clone(), ended.task.clone())).or_default().add(&ended);
    }
    let mut impossible = ImpossibleSums::default();
    let mut systems: Vec<SystemRuns> = vec![SystemRuns::default(); campaign.systems.len()];
    for chain in campaign.chains(only) {
        let Some(system) = systems.get_mut(chain.system) else { continue };
        system.tasks += 1;
        let (name, task) = campaign.names_of(chain);
        let Some(runs) = chains.remove(&(name.to_owned(), task.to_owned())) else { continue };
        let facts = conclusion::facts(root, campaign, chain);
        let whole = facts.as_ref().is_some_and(|facts| facts.settled);
        system.is_revoked |= facts.is_some_and(|facts| facts.revokes);
        let reference = Cell::clean(campaign, chain.system, chain.task, 0);
        let recorded = (runs.goes_on(campaign.clean) == Some(true))
            .then(|| recording::read(&root.join("logs").join(reference.run.as_str())).ok());
        let planned = recorded.flatten().map(|read| campaign.planned_on(&reference, &read.trajectory.steps));
        let possible = planned.map(|planned| {
            impossible.add(name, &planned.impossible);
            planned.cells.len() as u64
        });
        system.chains.push(ChainRuns { possible, whole, ..runs });
    }
    let clean = clean_of(campaign, &systems)?;
    Some(MeasuredCampaign { clean, impossible, systems })
}

fn clean_of(campaign: &Campaign, systems: &[SystemRuns]) -> Option<MeasuredRuns> {
    let chains = || systems.iter().flat_map(|system| &system.chains);
    let mut clean = RunSum::default();
    for chain in chains() {
        clean.runs += chain.clean.runs;
        clean.cost.add(&chain.clean.cost);
    }
    let chaotic = |chain: &&ChainRuns| is_chaotic(chain.controls.0, chain.controls.1, campaign.chaotic);
    let mean = |sum: u64| real(sum) / real(clean.runs);
    (clean.runs > 0).then(|| MeasuredRuns {
        runs: clean.runs,
        calls: mean(clean.cost.calls),
        input_tokens: mean(clean.cost.input),
        output_tokens: mean(clean.cost.output),
        chaotic_tasks: chains().filter(chaotic).count() as u64,
    })
}

/// A count, to reckon with.
#[expect(clippy::cast_precision_loss, reason = "counts of runs and calls, for an estimate")]
pub(super) fn real(count: u64) -> f64 {
    count as f64
}
