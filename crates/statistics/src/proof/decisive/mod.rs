//! Which steps of a failed run are decisive: what to execute next, and what the executions amount to.
//!
//! A step is tried with other words, or a fresh draw, in two arms: *null* takes it as recorded, *treated* takes the other
//! words; the rest is live in both. A search holds the samples of all arms and answers two questions.
//!
//! - *What next?* [`Search::next`]. An [`Order`] only chooses among what is still open; it decides nothing.
//! - *What is shown?* [`Search::found`]. A step is blamed at `e ≥ n/α`, `n` all claims that could be made of the run, so that
//!   one wrong step among them is blamed with a probability of at most α, whatever the rate of chance errors, the order and the end. "The
//!   earliest" is said only where each earlier step is cleared, "the last" where each later one is: an effect of
//!   [`Terms::effect`](super::Terms::effect) excluded, [`Terms::miss`](super::Terms::miss) shared by the steps, or the same words to the same question in a run that
//!   succeeded. A step without a correction is not cleared.
//!
//! A claim of one step pairs the i-th sample of its two arms. Arms may be shared: where steps are drawn anew, the treated arm of
//! a step is the control arm of the one before. That the samples of an arm serve several claims, and who asked for them,
//! moves no bound: each claim reads its own pairs in order, and its e-value holds at every moment.

mod foretell;
mod found;
mod order;
mod question;

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod pursuit_tests;
#[cfg(test)]
mod systems;
#[cfg(test)]
mod tests;

pub use foretell::{most_executions, play};
pub use found::{Found, RuleAnswer};
pub use question::{Couple, Offer, Order, SearchEnding, SearchQuestion, Stands, TriedWords};

use std::cmp::Ordering;

use super::{
    claim::Claim,
    exclusion::Exclusion,
    pairs::Expected,
    sample::{ProofSample, counted, verdicts},
    terms::Terms,
};
use crate::trajectory::{Executed, Executions};

/// Executions of the treatment alone after which a look at a step that did not heal once is over.
const LOOKS: usize = 2;
/// Below this nothing speaks for an exclusion any more.
const FUTILE: f64 = 0.05;
/// Executions that say nothing, from which on it is asked whether the whole search can say anything.
const ENOUGH: u32 = 3;

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    pub(super) question: SearchQuestion,
    arms: Vec<Vec<ProofSample>>,
    /// The steps that have something to try, then the couples.
    pub(super) claims: Vec<TriedClaim>,
    /// By step: its place in `claims`.
    pub(super) of_step: Vec<Option<usize>>,
}

/// One claim of the search, kept up to date.
#[derive(Debug, Clone, Copy)]
pub(super) struct TriedClaim {
    control: usize,
    treated: usize,
    pub(super) by: TriedWords,
    pub(super) suspicion: f64,
    pub(super) stands: Stands,
    /// Whether the treatment healed the run once.
    pub(super) begun: bool,
    /// Executions with the treatment that failed, and that passed.
    pub(super) failed: usize,
    pub(super) passed: usize,
    /// The evidence for its effect.
    pub(super) e: f64,
    alone: Excluded,
    pairs: Excluded,
}

/// An exclusion, with how many samples it has read and the highest e-value that it reached.
#[derive(Debug, Clone, Copy)]
struct Excluded {
    exclusion: Exclusion,
    read: usize,
    highest: f64,
}

impl Excluded {
    fn read(&mut self, exclusion: Exclusion) {
        self.exclusion = exclusion;
        self.read += 1;
        self.highest = self.highest.max(exclusion.e());
    }
}

impl Search {
    /// A search of which nothing was executed yet.
    pub fn new(question: SearchQuestion) -> Self {
        let nothing = Exclusion::new(Expected::Heals, question.terms.effect);
        let nothing = Excluded { exclusion: nothing, read: 0, highest: nothing.e() };
        let tried = |control, treated, by, suspicion| TriedClaim {
            control,
            treated,
            by,
            suspicion,
            stands: Stands::Open,
            begun: false,
            failed: 0,
            passed: 0,
            e: 1.0,
            alone: nothing,
            pairs: nothing,
        };
        let (mut claims, mut of_step) = (Vec::new(), Vec::new());
        for step in &question.steps {
            of_step.push(match *step {
                Offer::Other { control, treated, by, suspicion } => {
                    claims.push(tried(control, treated, by, suspicion));
                    Some(claims.len() - 1)
                }
                Offer::None | Offer::Same => None,
            });
        }
        claims.extend(
            question.couples.iter().map(|couple| tried(couple.control, couple.treated, TriedWords::Given, 1.0)),
        );
        Self { arms: vec![Vec::new(); question.arms], claims, of_step, question }
    }

    /// Takes in what an execution of an arm came to.
    pub fn take(&mut self, arm: usize, sample: ProofSample) {
        let Some(samples) = self.arms.get_mut(arm) else { return };
        samples.push(sample);
        for index in 0..self.claims.len() {
            let touched = self.claims.get(index).is_some_and(|tried| tried.control == arm || tried.treated == arm);
            if touched {
                self.update(index);
            }
        }
    }

    /// A step that was cleared is not: something else than its executions speaks against it.
    pub fn doubt(&mut self, step: usize) {
        let claim = self.of_step.get(step).copied().flatten();
        if let Some(tried) = claim.and_then(|claim| self.claims.get_mut(claim)) {
            tried.stands = Stands::Unsettled;
        }
    }

    /// The samples of an arm, in order.
    pub fn samples(&self, arm: usize) -> &[ProofSample] {
        self.arms.get(arm).map(Vec::as_slice).unwrap_or_default()
    }

    /// The samples of an arm, counted.
    pub fn counted(&self, arm: usize) -> Executions {
        counted(self.samples(arm))
    }

    /// How many claims can be made of the run; none is made at less than this many times 1/α.
    pub fn claims(&self) -> usize {
        self.claims.len()
    }

    /// The e-value that blames a step, before it is shared by the claims.
    pub fn target(&self) -> f64 {
        as_number(self.claims.len().max(1)) / self.question.terms.alpha
    }

    /// The e-value that clears a step. Each may be cleared by the treated arm alone or by pairs, at half the price each.
    pub fn clearing(&self) -> f64 {
        let steps = self.of_step.iter().flatten().count();
        2.0 * as_number(steps.saturating_sub(1).max(1)) / self.question.terms.miss
    }

    /// Where a step stands.
    pub fn stands(&self, step: usize) -> Stands {
        match (self.question.steps.get(step), self.of_step.get(step)) {
            (Some(Offer::Same), _) => Stands::Same,
            (Some(Offer::Other { .. }), Some(Some(claim))) => {
                self.claims.get(*claim).map_or(Stands::Untouched, |tried| tried.stands)
            }
            _ => Stands::Untouched,
        }
    }

    /// What was executed for a step, where there is something to try, as evidence that the search names no step wrongly.
    pub fn executed(&self, step: usize) -> Option<Executed> {
        let claim = self.of_step.get(step).copied().flatten()?;
        Some(self.shared(self.claims.get(claim)?))
    }

    /// The same of a couple, by its place in the question.
    pub fn executed_of_couple(&self, couple: usize) -> Option<Executed> {
        self.couple(couple).map(|tried| self.shared(tried))
    }

    /// What was executed for a claim. Any claim of the run might name a step wrongly, so the e-value, and what it has to reach,
    /// are shared by all of them: such a number may stand beside those of other runs, and it is the only one that is told.
    fn shared(&self, tried: &TriedClaim) -> Executed {
        let claims = as_number(self.claims.len().max(1));
        let executed = self.claim(tried).executed();
        Executed {
            e: executed.e.map(|e| e / claims),
            target: executed.target.map(|target| target / claims),
            ..executed
        }
    }

    /// The claim of a couple.
    pub(super) fn couple(&self, couple: usize) -> Option<&TriedClaim> {
        self.claims.get(self.claims.len().saturating_sub(self.question.couples.len()) + couple)
    }

    /// What comes of the record as it is, and whether most of all executions say nothing: either ends the search.
    pub fn ended(&self) -> Option<SearchEnding> {
        if self.sanity().iter().filter(|passed| **passed).count() >= 2 {
            return Some(SearchEnding::NotReproduced);
        }
        let mut all = Executions::default();
        for arm in &self.arms {
            let arm = counted(arm);
            all.passed += arm.passed;
            all.failed += arm.failed;
            for (why, times) in arm.void {
                *all.void.entry(why).or_default() += times;
            }
        }
        let most = all.void.iter().max_by_key(|(_, times)| **times).map(|(why, _)| *why);
        most.filter(|_| all.voids() >= ENOUGH && 2 * all.voids() > all.all()).map(SearchEnding::Void)
    }

    /// Which arms to execute now, at most `room`, each for another step; none: the search is over. Nothing is executed of
    /// a claim before what it has so far is known.
    pub fn next(&self, room: usize) -> Vec<usize> {
        if self.ended().is_some() {
            return Vec::new();
        }
        if self.is_sanity_open() {
            return vec![self.question.sanity];
        }
        let mut arms = Vec::new();
        for claim in self.queue() {
            let arm = self.claims.get(claim).map(|tried| self.wanted(tried));
            if let Some(arm) = arm.filter(|arm| arms.len() < room && !arms.contains(arm)) {
                arms.push(arm);
            }
        }
        arms
    }

    /// The first outcomes of the record as it is.
    fn sanity(&self) -> Vec<bool> {
        let mut outcomes = verdicts(self.samples(self.question.sanity));
        outcomes.truncate(ENOUGH as usize);
        outcomes
    }

    /// One failure is enough; a success is asked again, up to three in all.
    fn is_sanity_open(&self) -> bool {
        let outcomes = self.sanity();
        outcomes.first() != Some(&false) && outcomes.len() < ENOUGH as usize
    }

    /// The arm that tells most of a claim. The treatment goes first and, until it heals once, alone: that is what clears a
    /// step at half the price. From then on the arms are in pairs, and which goes first is drawn.
    fn wanted(&self, tried: &TriedClaim) -> usize {
        let told = |arm| self.samples(arm).iter().filter(|sample| sample.verdict().is_some()).count();
        let (control, treated) = (told(tried.control), told(tried.treated));
        if !tried.begun || treated < LOOKS {
            return tried.treated;
        }
        let treated_first = Terms::treated_first(self.question.terms.draw, treated);
        match control.cmp(&treated) {
            Ordering::Less => tried.control,
            Ordering::Greater => tried.treated,
            Ordering::Equal => {
                if treated_first {
                    tried.treated
                } else {
                    tried.control
                }
            }
        }
    }

    fn claim(&self, tried: &TriedClaim) -> Claim<'_> {
        Claim {
            expected: Expected::Heals,
            control: self.samples(tried.control),
            treated: self.samples(tried.treated),
            target: self.target(),
            pairs: self.question.terms.pairs,
            draw: self.question.terms.draw,
            has_flipped: false,
            perturbed: true,
        }
    }

    fn update(&mut self, index: usize) {
        let Some(mut tried) = self.claims.get(index).copied() else { return };
        let (control, treated) = (verdicts(self.samples(tried.control)), verdicts(self.samples(tried.treated)));
        while let Some(passed) = treated.get(tried.alone.read) {
            tried.alone.read(tried.alone.exclusion.and_alone(*passed));
        }
        while let (Some(without), Some(with)) = (control.get(tried.pairs.read), treated.get(tried.pairs.read)) {
            tried.pairs.read(tried.pairs.exclusion.and_pair(*without, *with));
        }
        tried.passed = treated.iter().filter(|passed| **passed).count();
        tried.failed = treated.len() - tried.passed;
        tried.begun = tried.passed > 0;
        tried.e = self.claim(&tried).executed().e.unwrap_or_default();
        tried.stands = self.settled(&tried, treated.len(), control.len());
        if let Some(claim) = self.claims.get_mut(index) {
            *claim = tried;
        }
    }

    fn settled(&self, tried: &TriedClaim, treated: usize, control: usize) -> Stands {
        let claim = self.claim(tried);
        let excluded = tried.alone.highest.max(tried.pairs.highest) >= self.clearing();
        let most = self.question.terms.pairs as usize;
        let hopeless = claim.is_settled() && tried.alone.exclusion.e().max(tried.pairs.exclusion.e()) < FUTILE;
        match () {
            () if claim.is_void() => Stands::Void,
            () if claim.is_shown() => Stands::Shown,
            // What a model proposes may leave an error as it is: that it does not heal clears nothing.
            () if tried.by == TriedWords::Proposed && !tried.begun && treated >= LOOKS => Stands::Unsettled,
            () if tried.by == TriedWords::Proposed && claim.is_settled() => Stands::Unsettled,
            () if excluded && tried.by != TriedWords::Proposed => Stands::Excluded,
            () if hopeless || (treated >= most && (control >= most || !tried.begun)) => Stands::Unsettled,
            () => Stands::Open,
        }
    }
}

impl TriedClaim {
    /// Whether a look at it is over: it was tried, and has not healed the run once.
    pub(super) fn is_looked_at(&self) -> bool {
        !self.begun && self.failed >= LOOKS
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of steps are far below 2^52")]
fn as_number(count: usize) -> f64 {
    count as f64
}
