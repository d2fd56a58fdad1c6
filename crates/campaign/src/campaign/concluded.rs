//! What came of a campaign: what came of its chains, added up. It does not grow with their number.

use std::collections::BTreeMap;

use super::{
    catch_run::CatchFunnel,
    decoy::counted,
    ended::{Class, EndedCell},
    funnel::{ConcludedChain, ControlCounts, InjectedRun, LeftOut, TaskState},
    natural::NaturalFunnel,
    sitting::OlderControls,
};
use crate::{
    budget::Cost,
    dataset::DecoyCounts,
    trajectory::{JointCause, Necessity, Need},
};

/// Most tasks that are left out of which it is said why.
pub(super) const TOLD: usize = 3;
/// Most kinds of difference between clean runs that are counted.
const LEARNED_MAX: usize = 16;

/// The sums of a campaign, as `campaign --format json` prints them.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub struct CampaignSums {
    /// Tasks, each counted for each system.
    tasks: usize,
    /// Those that were gone on with.
    kept_tasks: usize,
    /// Injected runs that were to be made.
    attempts: usize,
    /// What cannot be planted: plans of a task, and templates in an agent of it. Nothing of it was executed.
    impossible: usize,
    /// Those in which altered bytes were delivered.
    delivered: usize,
    /// Those that failed for it, shown or not.
    flipped: usize,
    /// Failures that are shown.
    verified: usize,
    /// What came of clean runs that failed; `null` where none is searched.
    natural: Option<NaturalFunnel>,
    /// What is shown of agents that spoke after a proven error; left out where none is searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed_catch: Option<CatchFunnel>,
    /// What was charged.
    spent: Cost,
    /// Whether every cell is finished.
    complete: bool,
}

/// What came of a campaign.
#[derive(Debug, Default)]
pub struct Concluded {
    /// Tasks, each counted for each system.
    pub tasks: usize,
    /// Those that were gone on with.
    pub kept: usize,
    /// Those in which neutral changes alone turn the outcome too often.
    pub(super) chaotic: usize,
    /// What differs between runs although nothing else does, and in how many tasks.
    pub(super) learned: BTreeMap<String, usize>,
    /// Finished clean runs.
    pub clean_runs: usize,
    /// Those that passed.
    pub clean_passed: usize,
    /// Clean and injected runs that ended in order and had made no model call.
    pub(super) silent: usize,
    /// Tasks that were left out, by why.
    pub(super) left_out: BTreeMap<LeftOut, usize>,
    /// What the first of them came to.
    pub(super) summaries: Vec<String>,
    /// Of how many more it could be said.
    pub(super) untold: usize,
    /// Injected runs that were to be made.
    pub attempts: usize,
    /// Those that were finished.
    pub(super) made: usize,
    /// Plans of a task, and templates in an agent of it, that cannot be planted in its reference run.
    pub(super) impossible: usize,
    /// Those in which altered bytes were delivered.
    pub(super) delivered: usize,
    /// Those that failed for it, shown or not.
    pub(super) flipped: usize,
    /// All that were finished, by class; and those that flipped.
    pub(super) classes: BTreeMap<Class, usize>,
    pub(super) flips: BTreeMap<Class, usize>,
    /// Runs of claims whose executions depend on each other, by what was seen of these.
    pub(super) dependent: BTreeMap<String, usize>,
    /// Runs that are verified because their system repeats itself.
    pub(super) repeated_and_shown: usize,
    /// Failures that are shown: claims, each of which is one row of the dataset.
    pub(super) verified: usize,
    /// Claims that stand because their system repeats itself.
    pub(super) repeated: usize,
    /// Failures with several errors, and what is shown of these.
    pub(super) necessity: NecessityCounts,
    /// Claims that were begun: runs that met the same treatment are one.
    pub claims: usize,
    /// What came of clean runs that failed; `None` where none is searched.
    pub(super) natural: Option<NaturalFunnel>,
    /// What is shown of agents that spoke after a proven error; `None` where none is searched.
    pub(super) missed_catch: Option<CatchFunnel>,
    /// What came of the decoys.
    pub(super) decoys: DecoyCounts,
    /// Control executions.
    pub controls: ControlCounts,
    /// Those of them that are older than runs that they would stand against.
    pub older: OlderControls,
    /// Plans less one injection that were tried.
    pub without: usize,
    /// Systems that are declared to repeat themselves, and do not.
    pub revoked: Vec<String>,
    /// What was charged in all, unfinished cells and earlier starts of the campaign included.
    pub spent: Cost,
    /// What the cells of this campaign were charged, the finished ones.
    pub spent_by_cells: Cost,
    /// What records answered instead of an upstream.
    pub prefix: Cost,
    /// Calls that unfinished runs had paid for and finished ones did not pay again.
    pub salvaged: u64,
    /// Cells that were not finished.
    pub unfinished: usize,
    /// Chains that are missing or not made to their end, where a data set was made of shards all the same.
    pub missing_chains: usize,
    /// Whether the budget ended it.
    pub exhausted: bool,
    /// Whether somebody ended it.
    pub stopped: bool,
    /// The fewest cells at once that the upstream's refusals left room for.
    pub lowest_jobs: usize,
}

/// Failures with several planted errors, and what is shown of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NecessityCounts {
    pub(super) failures: usize,
    pub(super) errors: usize,
    pub(super) necessary: usize,
    pub(super) not_needed: usize,
    pub(super) not_shown: usize,
    /// Failures of which any error would have done; those that several did together.
    pub(super) overdetermined: usize,
    pub(super) joint: usize,
}

impl NecessityCounts {
    /// Adds what is shown of the errors of one failure.
    fn add(&mut self, necessity: &[Necessity]) {
        self.failures += 1;
        for one in necessity {
            self.errors += 1;
            match one.state {
                Need::Necessary => self.necessary += 1,
                Need::NotNeeded => self.not_needed += 1,
                Need::NotShown => self.not_shown += 1,
            }
        }
        let cause = JointCause::from_necessities(necessity);
        self.overdetermined += usize::from(cause == Some(JointCause::Overdetermined));
        self.joint += usize::from(cause == Some(JointCause::Joint));
    }
}

impl Concluded {
    /// Adds what came of a further chain. What holds of the whole campaign (what was spent, how it ended) is left as it is.
    pub(super) fn add(&mut self, chain: &ConcludedChain) {
        chain.tasks.iter().for_each(|task| self.add_task(task));
        chain.attempts.iter().for_each(|attempt| self.add_attempt(attempt));
        self.impossible += chain.impossible.len();
        self.decoys = chain.decoys.iter().fold(self.decoys, counted);
        for run in &chain.naturals {
            self.natural.get_or_insert_default().add(run);
        }
        for run in &chain.catches {
            self.missed_catch.get_or_insert_default().add(run);
        }
        let mut narrowed = BTreeMap::new();
        for attempt in chain.attempts.iter().filter(|attempt| !attempt.necessity.is_empty()) {
            narrowed.insert(attempt.claim, &attempt.necessity);
        }
        for necessity in narrowed.values() {
            self.necessity.add(necessity);
        }
        self.verified += chain.verified();
        self.repeated += chain.repeated();
        self.claims += chain.claims;
        self.controls.passed += chain.controls.passed;
        self.controls.failed += chain.controls.failed;
        self.controls.void += chain.controls.void;
        self.older.add(&chain.older);
        self.without += chain.without;
        self.spent_by_cells.add(&chain.spent_by_cells);
        self.prefix.add(&chain.prefix);
        self.salvaged += chain.salvaged;
        self.unfinished += chain.unfinished;
    }

    fn add_task(&mut self, task: &TaskState) {
        self.tasks += 1;
        self.kept += usize::from(task.reference.is_some());
        self.chaotic += usize::from(task.chaotic);
        for learned in &task.learned {
            if self.learned.len() < LEARNED_MAX || self.learned.contains_key(learned) {
                *self.learned.entry(learned.clone()).or_default() += 1;
            }
        }
        self.clean_runs += usize::try_from(task.runs).unwrap_or_default();
        self.clean_passed += usize::try_from(task.passed).unwrap_or_default();
        self.silent += usize::try_from(task.silent).unwrap_or_default();
        let Some(why) = task.left_out else { return };
        *self.left_out.entry(why).or_default() += 1;
        let Some(said) = &task.why else { return };
        if self.summaries.len() < TOLD {
            self.summaries.push(format!("{}/{} is left out, {}: {said}", task.system, task.task, why.name()));
        } else {
            self.untold += 1;
        }
    }

    fn add_attempt(&mut self, attempt: &InjectedRun) {
        self.attempts += 1;
        self.silent += usize::from(attempt.ended.as_ref().is_some_and(EndedCell::was_silent));
        self.delivered += usize::from(attempt.delivered);
        self.flipped += usize::from(attempt.flipped);
        let Some(class) = attempt.class else { return };
        self.made += 1;
        *self.classes.entry(class).or_default() += 1;
        if attempt.flipped {
            *self.flips.entry(class).or_default() += 1;
        }
        if let Some(dependence) = attempt.executed.as_ref().and_then(|executed| executed.dependent.as_ref()) {
            *self.dependent.entry(dependence.words()).or_default() += 1;
        }
        let repeated = attempt.executed.as_ref().is_some_and(|executed| executed.repeatable);
        self.repeated_and_shown += usize::from(class == Class::Verified && repeated);
    }

    /// How many attempts are of a class.
    pub fn count(&self, class: Class) -> usize {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    /// What came of the decoys; `None` where none was delivered.
    pub(super) fn decoys_if_any(&self) -> Option<DecoyCounts> {
        (self.decoys.planted > 0).then_some(self.decoys)
    }

    /// How many attempts were delivered.
    pub fn delivered(&self) -> usize {
        self.delivered
    }

    /// How many failures are shown: claims, each of which is one row of the dataset.
    pub fn verified(&self) -> usize {
        self.verified
    }

    /// How many clean runs that failed have a proven label.
    pub fn natural_labelled(&self) -> usize {
        self.natural.map_or(0, |natural| natural.labelled)
    }

    /// Whether the upstream's failures left no task to go on with.
    pub fn is_unreachable(&self) -> bool {
        self.tasks > 0 && self.left_out.get(&LeftOut::InfraError) == Some(&self.tasks)
    }

    /// The sums as data.
    pub fn sums(&self) -> CampaignSums {
        CampaignSums {
            tasks: self.tasks,
            kept_tasks: self.kept,
            attempts: self.attempts,
            impossible: self.impossible,
            delivered: self.delivered,
            flipped: self.flipped,
            verified: self.verified,
            natural: self.natural,
            missed_catch: self.missed_catch,
            spent: self.spent,
            complete: self.is_complete(),
        }
    }

    /// Whether every cell is finished.
    pub fn is_complete(&self) -> bool {
        self.unfinished == 0 && !self.exhausted && !self.stopped
    }
}
