//! Whether a failure needs one of several planted errors: runs without it and runs with all of them, made in turn.
//!
//! Three answers. *Necessary*: without the error the run fails less often, by the evidence that any claim must reach. *Not
//! needed*: an effect that counts is [excluded](Exclusion). *Not shown*: neither, or too many runs say nothing.

use std::cmp::Ordering;

use super::{
    claim::{Arm, Claim},
    exclusion::Exclusion,
    pairs::{Expected, PairEvidence},
    sample::{ProofSample, counted, verdicts},
    terms::Terms,
};
use crate::trajectory::{EffectExcluded, Evidence, Executed, Executions, Need};

/// The part of an effect that is excluded of one of several errors: two of them may each bring about half of it, and neither is
/// needless for that.
const PART: f64 = 0.5;
/// The smallest effect of a whole failure that is reckoned with.
const SMALLEST: f64 = 0.05;

/// On what terms it is asked whether a failure needs one of several errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NeedTerms {
    /// The e-value that shows an error to be necessary.
    target: f64,
    /// Pairs of runs that the question gets at most.
    pairs: u32,
    /// From this size on an effect counts, as a difference of chances to pass.
    effect: f64,
    /// The e-value that excludes such an effect.
    excludes: f64,
    /// The share of runs with all errors that may pass, where they fail as they did for the failure as a whole.
    passes_at_most: f64,
    /// What the order of the arms is drawn from.
    draw: u64,
}

impl NeedTerms {
    /// The terms for each of so many errors. `whole` is what was executed for all of them together: where those turn the outcome of
    /// less than every run, what one of them must do to count is less in the same measure. That an effect is missed may be as
    /// probable as the terms say of any of them.
    pub fn new(terms: &Terms, whole: &Executed, errors: usize) -> Self {
        let [control, treated] = [&whole.control, &whole.treated].map(|arm| arm.tally().share().unwrap_or_default());
        let errors = u32::try_from(errors).unwrap_or(u32::MAX).max(1);
        Self {
            target: terms.target(),
            pairs: terms.pairs,
            effect: terms.effect * PART * (control - treated).clamp(SMALLEST, 1.0),
            excludes: f64::from(errors) / terms.miss,
            passes_at_most: f64::midpoint(control, treated),
            draw: terms.draw,
        }
    }

    /// The same terms, with an order of arms that is drawn from the name of what is asked.
    #[must_use]
    pub fn drawn_for(self, terms: &Terms, name: &str) -> Self {
        Self { draw: terms.drawn_for(name).draw, ..self }
    }
}

/// What is to be done to know whether an error is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextForNeed {
    /// Execute this arm once more: *null* is without the error, *treated* with all.
    Execute(Arm),
    /// Nothing more: this is what is shown.
    Stop(Need),
}

/// One of several errors, and what the runs for it came to so far, each arm in the order of its executions.
#[derive(Debug, Clone, Copy)]
pub struct LeaveOneOut<'a> {
    /// Runs without the error, and with all others.
    pub without: &'a [ProofSample],
    /// Runs with all, made in turn with these.
    pub with_all: &'a [ProofSample],
    /// On what terms.
    pub terms: NeedTerms,
}

/// What pairs of runs say for an effect and against it.
#[derive(Debug, Clone, Copy)]
struct NeedEvidence {
    shown: PairEvidence,
    excluded: Exclusion,
    with_all_passed: u32,
}

impl NeedEvidence {
    fn none(effect: f64) -> Self {
        let excluded = Exclusion::new(Expected::Breaks, effect);
        Self { shown: PairEvidence::none(Expected::Breaks), excluded, with_all_passed: 0 }
    }

    fn and(self, without: bool, with_all: bool) -> Self {
        Self {
            shown: self.shown.and(without, with_all),
            excluded: self.excluded.and_pair(without, with_all),
            with_all_passed: self.with_all_passed + u32::from(with_all),
        }
    }
}

impl LeaveOneOut<'_> {
    /// What to execute next, or what is shown. Which arm goes first is drawn for each pair.
    pub fn next(&self) -> NextForNeed {
        if self.is_void() {
            return NextForNeed::Stop(Need::NotShown);
        }
        let evidence = self.evidence();
        if let Some(need) = self.settled(&evidence) {
            return NextForNeed::Stop(need);
        }
        if self.is_hopeless(&evidence) {
            return NextForNeed::Stop(Need::NotShown);
        }
        let (without, with_all) = (verdicts(self.without).len(), verdicts(self.with_all).len());
        let treated_first = Terms::treated_first(self.terms.draw, with_all);
        NextForNeed::Execute(match without.cmp(&with_all) {
            Ordering::Less => Arm::Control,
            Ordering::Equal if !treated_first => Arm::Control,
            Ordering::Equal | Ordering::Greater => Arm::Treated,
        })
    }

    /// What was executed, and what it amounts to.
    pub fn executed(&self) -> Executed {
        let evidence = self.evidence();
        Executed {
            control: counted(self.without),
            treated: counted(self.with_all),
            pairs: evidence.shown.pairs(),
            e: Some(evidence.shown.e),
            target: Some(self.terms.target),
            repeatable: false,
            perturbed: true,
            shams: Vec::new(),
            dependent: None,
            chaotic: false,
        }
    }

    /// What that says against an effect.
    pub fn exclusion(&self) -> EffectExcluded {
        let NeedTerms { effect, excludes: target, .. } = self.terms;
        EffectExcluded { effect, e: self.evidence().excluded.e(), target }
    }

    fn evidence(&self) -> NeedEvidence {
        let mut evidence = NeedEvidence::none(self.terms.effect);
        for (without, with_all) in verdicts(self.without).into_iter().zip(verdicts(self.with_all)) {
            evidence = evidence.and(without, with_all);
            if self.settled(&evidence).is_some() {
                break;
            }
        }
        evidence
    }

    /// Whether the pairs so far settle the question.
    fn settled(&self, evidence: &NeedEvidence) -> Option<Need> {
        if evidence.shown.e >= self.terms.target {
            return Some(Need::Necessary);
        }
        (evidence.excluded.e() >= self.terms.excludes).then(|| self.excluded(evidence))
    }

    /// Whether no pair that may follow would say more.
    fn is_hopeless(&self, evidence: &NeedEvidence) -> bool {
        let left = self.terms.pairs.saturating_sub(evidence.shown.pairs());
        let speaks_for = || evidence.shown.could_reach(self.terms.excludes, left);
        left == 0 || (!speaks_for() && !self.could_exclude(evidence, left))
    }

    /// What an excluded effect says: nothing, where the runs with all errors do not fail any more as they did.
    fn excluded(&self, evidence: &NeedEvidence) -> Need {
        let passed = f64::from(evidence.with_all_passed);
        let at_most = self.terms.passes_at_most * f64::from(evidence.shown.pairs());
        if passed <= at_most { Need::NotNeeded } else { Need::NotShown }
    }

    /// Whether so many more pairs that all end alike could exclude the effect.
    fn could_exclude(&self, evidence: &NeedEvidence, left: u32) -> bool {
        [false, true].into_iter().any(|passes| {
            let ahead = std::iter::successors(Some(evidence.excluded), |next| Some(next.and_pair(passes, passes)));
            ahead.take(left as usize + 1).any(|exclusion| exclusion.e() >= self.terms.excludes)
        })
    }

    /// Whether so many runs say nothing, or so many more in one arm, that the rest is no fair sample.
    fn is_void(&self) -> bool {
        let NeedTerms { target, pairs, draw, .. } = self.terms;
        let (control, treated) = (self.without, self.with_all);
        let claim = Claim::perturbed(&Terms::default(), control, treated);
        Claim { target, pairs, draw, ..claim }.is_void()
    }
}

/// Reads off the runs what a label of an earlier version says of errors that it had not shown to be necessary: it wrote no more than
/// that, and kept their counts. An error is not needed only where these exclude an effect, however they were paired. Returns
/// whether there was such an error.
pub fn read_former_states(evidence: &mut Evidence) -> bool {
    let Some(whole) = &evidence.executed else { return false };
    let terms = NeedTerms::new(&Terms::default(), whole, evidence.necessity.len());
    let is_former = |one: &&mut crate::trajectory::Necessity| one.state == Need::NotShown && one.exclusion.is_none();
    let mut read = false;
    for one in evidence.necessity.iter_mut().filter(is_former) {
        read = true;
        if one.executed.repeatable {
            let fails = |arm: &Executions| arm.failed > 0 && arm.failed == arm.all();
            if fails(&one.executed.control) && fails(&one.executed.treated) {
                one.state = Need::NotNeeded;
            }
        } else {
            let (state, exclusion) = counts_exclude(&one.executed, terms);
            (one.state, one.exclusion) = (state, Some(exclusion));
        }
    }
    if read {
        *evidence = std::mem::take(evidence).with_joint_cause();
    }
    read
}

/// Whether counts alone exclude an effect: of all pairs that could have made them, by those that speak least against it.
fn counts_exclude(executed: &Executed, terms: NeedTerms) -> (Need, EffectExcluded) {
    let told = |arm: &Executions| arm.passed + arm.failed;
    let (without, with_all) = (&executed.control, &executed.treated);
    let pairs = told(without).min(told(with_all));
    let passed = without.passed.min(pairs);
    let with_all_passed = with_all.passed.saturating_sub(told(with_all) - pairs);
    let mut evidence = NeedEvidence::none(terms.effect);
    for pair in 0..pairs {
        let evenly = |of: u32| {
            u64::from(pair + 1) * u64::from(of) / u64::from(pairs) > u64::from(pair) * u64::from(of) / u64::from(pairs)
        };
        evidence = evidence.and(evenly(passed), evenly(with_all_passed));
    }
    let samples = |arm: &Executions| -> Vec<ProofSample> {
        let many = |sample, count: u32| std::iter::repeat_n(sample, count as usize);
        let void = arm.void.iter().flat_map(|(why, count)| many(ProofSample::Void(*why), *count));
        many(ProofSample::Passed, arm.passed).chain(many(ProofSample::Failed, arm.failed)).chain(void).collect()
    };
    let (without, with_all) = (samples(without), samples(with_all));
    let left_out = LeaveOneOut { without: &without, with_all: &with_all, terms };
    let excluded = evidence.excluded.e() >= terms.excludes && !left_out.is_void();
    let state = if excluded { left_out.excluded(&evidence) } else { Need::NotShown };
    (state, EffectExcluded { effect: terms.effect, e: evidence.excluded.e(), target: terms.excludes })
}
