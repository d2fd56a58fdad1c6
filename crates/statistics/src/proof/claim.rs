//! One claim, from its first execution to its standing.

use std::cmp::Ordering;

use super::{
    pairs::{Expected, PairEvidence},
    sample::{ProofSample, counted, verdicts},
    terms::Terms,
};
use crate::trajectory::{Executed, Executions, Proportion, Standing, difference};

/// Pairs after which a claim is given up where next to nothing speaks for it.
const LOOK: u32 = 8;
/// Below this e-value next to nothing speaks for a claim.
const FUTILE: f64 = 0.05;
/// Pairs in which the arm that is claimed to pass more often never passed, after which a claim is given up. Where such a
/// run passes four times in five, that is one claim in 125.
const BARREN: u32 = 3;
/// Executions of an arm from which on it is asked how many of them are void.
const ENOUGH: u32 = 3;

/// One of the two arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// Without the treatment.
    Control,
    /// With it.
    Treated,
}

/// What is to be done for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Execute this arm once more.
    Execute(Arm),
    /// Nothing more: this is where it stands.
    Stop(Standing),
}

/// A claim: what is expected of the treatment, and what its arms came to so far, each in the order of its executions.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// What the treatment is claimed to do.
    pub expected: Expected,
    /// Executions without it.
    pub control: &'a [ProofSample],
    /// Executions with it.
    pub treated: &'a [ProofSample],
    /// What the claim must reach. For one of `n` steps of which any may be blamed, `n/α`.
    pub target: f64,
    /// Pairs that it gets at most.
    pub pairs: u32,
    /// What the order of its arms is drawn from.
    pub draw: u64,
    /// Whether the treatment did what is claimed in an execution that is no sample.
    pub has_flipped: bool,
    /// Whether each sample had [neutral changes](super::Perturbation) of its own.
    pub perturbed: bool,
}

impl<'a> Claim<'a> {
    /// A claim that an injection breaks a run, on the usual terms.
    pub fn injection(terms: &Terms, control: &'a [ProofSample], treated: &'a [ProofSample]) -> Self {
        let (target, pairs, draw) = (terms.target(), terms.pairs, terms.draw);
        Self { expected: Expected::Breaks, control, treated, target, pairs, draw, has_flipped: false, perturbed: false }
    }

    /// The same of a run that failed once with the injection, by executions that are perturbed. That run is no sample, for it
    /// is not.
    pub fn perturbed(terms: &Terms, control: &'a [ProofSample], treated: &'a [ProofSample]) -> Self {
        Self { has_flipped: true, perturbed: true, ..Self::injection(terms, control, treated) }
    }

    /// What to execute next, or where the claim stands. The treatment is executed first; where it does not do what is
    /// claimed, no more is spent. Else it is executed once more, then the other arm as often, and from then on pair by pair, so
    /// that a provider's bad minutes fall on both; which arm goes first in a pair is drawn. Whatever decides looks at whole pairs.
    pub fn next(&self) -> Next {
        if self.is_void() {
            return Next::Stop(Standing::Void);
        }
        let (control, treated) = (verdicts(self.control), verdicts(self.treated));
        if !treated.is_empty() && !self.has_begun() {
            return Next::Stop(Standing::Unproven);
        }
        if treated.len() < 2 {
            return Next::Execute(Arm::Treated);
        }
        if let Some(standing) = self.settled(&self.evidence()) {
            return Next::Stop(standing);
        }
        let treated_first = Terms::treated_first(self.draw, treated.len());
        Next::Execute(match control.len().cmp(&treated.len()) {
            Ordering::Less => Arm::Control,
            Ordering::Greater => Arm::Treated,
            Ordering::Equal => {
                if treated_first {
                    Arm::Treated
                } else {
                    Arm::Control
                }
            }
        })
    }

    /// Where the claim stands with what was executed so far, whatever could follow.
    pub fn standing(&self) -> Standing {
        match self.next() {
            Next::Stop(standing) => standing,
            Next::Execute(_) => Standing::Unproven,
        }
    }

    /// Whether the treatment did once what is claimed of it.
    pub fn has_begun(&self) -> bool {
        self.has_flipped || self.treated.iter().any(|sample| sample.verdict() == Some(self.expected == Expected::Heals))
    }

    /// What was executed, and what it amounts to: what is kept beside a label.
    pub fn executed(&self) -> Executed {
        let evidence = self.evidence();
        // A treatment that never did what is claimed was given up in the middle of its first pair.
        let e = if self.has_begun() { evidence.e } else { 0.0 };
        Executed {
            control: counted(self.control),
            treated: counted(self.treated),
            pairs: evidence.pairs(),
            e: Some(e),
            target: Some(self.target),
            repeatable: false,
            dependent: None,
            chaotic: false,
            perturbed: self.perturbed,
            shams: Vec::new(),
        }
    }

    /// Whether the evidence reached the target, however much of it was executed since.
    pub(super) fn is_shown(&self) -> bool {
        self.has_begun() && self.evidence().e >= self.target
    }

    /// Whether no further pair counts: the target is reached, or out of reach.
    pub(super) fn is_settled(&self) -> bool {
        self.settled(&self.evidence()).is_some()
    }

    /// The pairs up to the one that settled the claim: what others executed of the same arms later does not move it.
    fn evidence(&self) -> PairEvidence {
        let (control, treated) = (verdicts(self.control), verdicts(self.treated));
        let mut evidence = PairEvidence::none(self.expected);
        for (control, treated) in control.into_iter().zip(treated) {
            evidence = evidence.and(control, treated);
            if self.settled(&evidence).is_some() {
                break;
            }
        }
        evidence
    }

    /// Whether the pairs so far settle the claim.
    fn settled(&self, evidence: &PairEvidence) -> Option<Standing> {
        if evidence.e >= self.target {
            return Some(Standing::Verified);
        }
        let left = self.pairs.saturating_sub(evidence.pairs());
        let futile = (evidence.pairs() >= LOOK && evidence.e < FUTILE) || evidence.is_barren(BARREN);
        if !futile && evidence.could_reach(self.target, left) {
            return None;
        }
        Some(self.given_up())
    }

    /// Where a claim stands that is not shown, where nothing more is executed for it.
    pub fn given_up(&self) -> Standing {
        let treated = counted(self.treated);
        let mixed = treated.passed > 0 && (treated.failed > 0 || self.has_flipped);
        if mixed { Standing::Contradicted } else { Standing::Unproven }
    }

    /// Whether so many executions say nothing, or so many more in one arm than in the other, that the rest is no fair
    /// sample.
    pub(super) fn is_void(&self) -> bool {
        let (control, treated) = (counted(self.control), counted(self.treated));
        let spoilt = |arm: &Executions| arm.all() >= ENOUGH && 3 * arm.voids() > arm.all();
        if spoilt(&control) || spoilt(&treated) {
            return true;
        }
        let told = control.all() >= ENOUGH && treated.all() >= ENOUGH;
        let void = |arm: &Executions| Proportion::new(arm.voids(), arm.all());
        let (_, interval) = difference(void(&control), void(&treated));
        told && (interval.low > 0.0 || interval.high < 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Void;

    fn samples(text: &str) -> Vec<ProofSample> {
        let sample = |letter| match letter {
            'p' => ProofSample::Passed,
            'f' => ProofSample::Failed,
            _ => ProofSample::Void(Void::Unanswered),
        };
        text.chars().map(sample).collect()
    }

    fn next(control: &str, treated: &str) -> Next {
        let (control, treated) = (samples(control), samples(treated));
        Claim::injection(&Terms::default(), &control, &treated).next()
    }

    #[test]
    fn a_claim_says_whether_its_executions_were_perturbed() {
        let terms = Terms::default();
        assert!(Claim::perturbed(&terms, &[], &[]).executed().perturbed);
        assert!(!Claim::injection(&terms, &[], &[]).executed().perturbed);
    }

    /// What goes first in a pair, where nothing but the draw says it.
    fn drawn(pair: usize) -> Next {
        Next::Execute(if Terms::treated_first(0, pair) { Arm::Treated } else { Arm::Control })
    }

    #[test]
    fn what_is_executed_next() {
        let (control, treated) = (Next::Execute(Arm::Control), Next::Execute(Arm::Treated));
        let (third, fourth) = (drawn(2), drawn(3));
        let stop = Next::Stop;
        for (controls, treateds, expected) in [
            ("", "", treated),
            ("", "v", treated),
            // Benign: what did not flip claims nothing.
            ("", "p", stop(Standing::Unproven)),
            ("", "f", treated),
            ("", "ff", control),
            ("p", "ff", control),
            ("pp", "ff", third),
            ("ppp", "ff", treated),
            ("ppp", "fff", fourth),
            ("pp", "fff", control),
            ("pvp", "ff", third),
            ("pppppp", "ffffff", stop(Standing::Verified)),
            // A repeat that passes does not end it, but it counts.
            ("", "fp", control),
            ("pppppppp", "fppppppp", drawn(8)),
            (&"p".repeat(30), &format!("f{}", "p".repeat(29)), stop(Standing::Contradicted)),
            // The control arm fails too: nothing speaks for the claim, nor was it contradicted.
            ("ff", "ff", third),
            ("fff", "fff", stop(Standing::Unproven)),
            ("", "vvv", stop(Standing::Void)),
            ("", "fvv", stop(Standing::Void)),
            ("pppp", "ffvfv", stop(Standing::Void)),
        ] {
            assert_eq!(next(controls, treateds), expected, "null {controls}, treated {treateds}");
        }
    }

    #[test]
    fn a_claim_that_cannot_get_there_is_given_up() {
        let (control, treated) = (samples("pppp"), samples("fppf"));
        let claim = Claim { pairs: 5, ..Claim::injection(&Terms::default(), &control, &treated) };
        assert_eq!(claim.next(), Next::Stop(Standing::Contradicted));
        let untouched = Claim { pairs: 40, ..claim };
        assert_eq!(untouched.next(), drawn(4));
    }

    #[test]
    fn a_claim_for_which_next_to_nothing_speaks_is_given_up_after_eight_pairs() {
        // e is 0.028 after three pairs and 0.012 after eight.
        let (control, treated) = ("fpfpfpfp", "fppfpfpp");
        for pairs in 3..8 {
            assert_eq!(next(&control[..pairs], &treated[..pairs]), drawn(pairs), "{pairs}");
        }
        assert_eq!(next(control, treated), Next::Stop(Standing::Contradicted));
    }

    #[test]
    fn a_repair_that_passes_whatever_is_done_is_not_contradicted() {
        let passed = samples(&"p".repeat(40));
        let claim = Claim::injection(&Terms::default(), &passed, &passed);
        let repair = Claim { expected: Expected::Heals, ..claim };
        assert_eq!((repair.has_begun(), repair.standing()), (true, Standing::Unproven));
        assert_eq!((claim.has_begun(), claim.standing()), (false, Standing::Unproven));
    }

    #[test]
    fn a_claim_is_settled_where_no_further_pair_counts() {
        for (control, treated, settled, shown) in [
            ("", "", false, false),
            ("ppppp", "fffff", false, false),
            ("pppppp", "ffffff", true, true),
            ("fff", "fff", true, false),
            ("ff", "ff", false, false),
        ] {
            let (control, treated) = (samples(control), samples(treated));
            let claim = Claim::injection(&Terms::default(), &control, &treated);
            assert_eq!((claim.is_settled(), claim.is_shown()), (settled, shown), "{control:?} {treated:?}");
        }
    }

    #[test]
    fn arms_of_which_one_says_nothing_far_more_often_are_no_fair_sample() {
        let void = |void: usize, of: usize| format!("{}{}", "v".repeat(void), "f".repeat(of - void));
        for (control, treated, expected) in [
            ((0, 20), (6, 20), true),
            ((6, 20), (0, 20), true),
            ((0, 20), (3, 20), false),
            ((6, 20), (6, 20), false),
            // A third is not too many, more are; and three executions are the fewest that are asked about.
            ((1, 3), (1, 3), false),
            ((2, 5), (1, 3), true),
            ((1, 3), (2, 5), true),
            ((2, 2), (0, 20), false),
            ((0, 20), (2, 2), false),
            ((0, 0), (0, 0), false),
        ] {
            let (controls, treateds) = (samples(&void(control.0, control.1)), samples(&void(treated.0, treated.1)));
            let claim = Claim::injection(&Terms::default(), &controls, &treateds);
            assert_eq!(claim.is_void(), expected, "void {control:?} without, {treated:?} with");
        }
    }

    #[test]
    fn what_was_executed_says_how_far_it_got() {
        let (control, treated) = (samples("pvp"), samples("ffp"));
        let executed = Claim::injection(&Terms::default(), &control, &treated).executed();
        assert_eq!((executed.control.passed, executed.control.voids(), executed.treated.failed), (2, 1, 2));
        assert_eq!((executed.pairs, executed.target, executed.repeatable), (2, Some(Terms::default().target()), false));
        // Two pairs without a flaw: 3.24, and 0.92² / 0.25 more.
        assert!(executed.e.is_some_and(|e| (e - 3.24 * 0.92 * 0.92 / 0.25).abs() < 1e-9), "{executed:?}");
    }

    #[test]
    fn what_did_not_flip_is_worth_nothing() {
        let passed = samples("p");
        let claim = Claim::injection(&Terms::default(), &[], &passed);
        assert_eq!((claim.executed().e, claim.has_begun()), (Some(0.0), false));
    }

    #[test]
    fn executions_beyond_what_a_claim_asked_for_do_not_count_against_it() {
        let (control, treated) = (samples("ppppppfff"), samples("ffffffppp"));
        let claim = Claim::injection(&Terms::default(), &control, &treated);
        assert_eq!(claim.next(), Next::Stop(Standing::Verified));
        assert_eq!(claim.executed().pairs, 6);
    }
}
