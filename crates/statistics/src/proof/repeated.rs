//! Systems that do not react to neutral changes: what is declared of them is checked, and one difference takes it back.

use super::sample::{ProofSample, counted};
use crate::trajectory::{Executed, Need, Standing};

/// The fewest executions of an arm that are compared.
const FEWEST: usize = 2;

/// Arms of a system that is said not to react to neutral changes: in each arm one execution is plain, and another has
/// [some](super::Perturbation). Each stands with what was seen of it: a digest of its requests, its replies (neutral changes,
/// volatile ids and times aside) and what the checker read.
#[derive(Debug, Clone, Copy)]
pub struct Repetition<'a, Seen> {
    /// Executions without the treatment.
    pub control: &'a [(ProofSample, Seen)],
    /// Executions with it.
    pub treated: &'a [(ProofSample, Seen)],
}

impl<Seen: PartialEq> Repetition<'_, Seen> {
    /// Two executions of an arm that differ in anything: then the system does not repeat itself.
    pub fn difference(&self) -> Option<(&Seen, &Seen)> {
        let pairs = [self.control, self.treated].into_iter().flat_map(|arm| arm.windows(2));
        pairs.into_iter().find_map(|pair| match pair {
            [one, other] if one != other => Some((&one.1, &other.1)),
            _ => None,
        })
    }

    /// Where a claim that an injection breaks a run stands; `None` where too little was executed to say, or where the
    /// system does not repeat itself.
    pub fn standing(&self) -> Option<Standing> {
        if self.difference().is_some() || self.control.len().min(self.treated.len()) < FEWEST {
            return None;
        }
        match (self.control.first()?.0, self.treated.first()?.0) {
            (ProofSample::Passed, ProofSample::Failed) => Some(Standing::Verified),
            (ProofSample::Void(_), _) | (_, ProofSample::Void(_)) => Some(Standing::Void),
            _ => Some(Standing::Unproven),
        }
    }

    /// Whether a failure needs what *null* is without; `None` where too little was executed to say. Equal verdicts of both arms
    /// exclude an effect; no verdict excludes nothing.
    pub fn need(&self) -> Option<Need> {
        let standing = self.standing()?;
        let both_fail =
            [self.control, self.treated].iter().all(|arm| arm.iter().all(|(sample, _)| *sample == ProofSample::Failed));
        Some(match standing {
            Standing::Verified => Need::Necessary,
            _ if both_fail => Need::NotNeeded,
            _ => Need::NotShown,
        })
    }

    /// What was executed.
    pub fn executed(&self) -> Executed {
        let samples = |arm: &[(ProofSample, Seen)]| counted(&arm.iter().map(|(sample, _)| *sample).collect::<Vec<_>>());
        Executed {
            control: samples(self.control),
            treated: samples(self.treated),
            repeatable: true,
            perturbed: true,
            ..Executed::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Void;

    #[test]
    fn one_difference_takes_it_back() {
        let (pass, fail, void) = (ProofSample::Passed, ProofSample::Failed, ProofSample::Void(Void::Crashed));
        let (verified, unproven, empty) = (Some(Standing::Verified), Some(Standing::Unproven), Some(Standing::Void));
        let (needed, needless, open) = (Some(Need::Necessary), Some(Need::NotNeeded), Some(Need::NotShown));
        for (control, treated, revoked, standing, need) in [
            (&[(pass, "n"), (pass, "n")][..], &[(fail, "t"), (fail, "t")][..], false, verified, needed),
            (&[(pass, "n"), (pass, "n")], &[(fail, "t")], false, None, None),
            (&[(pass, "n"), (pass, "m")], &[(fail, "t"), (fail, "t")], true, None, None),
            (&[(pass, "n"), (pass, "n")], &[(fail, "t"), (pass, "t")], true, None, None),
            (&[(fail, "n"), (fail, "n")], &[(fail, "t"), (fail, "t")], false, unproven, needless),
            (&[(pass, "n"), (pass, "n")], &[(void, "t"), (void, "t")], false, empty, open),
            (&[(void, "n"), (void, "n")], &[(fail, "t"), (fail, "t")], false, empty, open),
        ] {
            let arms = Repetition { control, treated };
            assert_eq!((arms.difference().is_some(), arms.standing()), (revoked, standing), "{control:?} {treated:?}");
            assert_eq!(arms.need(), need, "{control:?} {treated:?}");
        }
    }

    #[test]
    fn what_was_executed_is_counted_and_has_no_e_value() {
        let (control, treated) = ([(ProofSample::Passed, "n"); 3], [(ProofSample::Failed, "t"); 2]);
        let executed = Repetition { control: &control, treated: &treated }.executed();
        assert_eq!((executed.control.passed, executed.control.all()), (3, 3));
        assert_eq!((executed.treated.failed, executed.treated.all()), (2, 2));
        assert!(executed.repeatable && executed.perturbed);
        assert_eq!((executed.repeatable, executed.pairs, executed.e, executed.target), (true, 0, None, None));
    }
}
