//! Systems that do not react to neutral changes: what is declared of them is checked, and one difference takes it back.

use super::sample::{ProofSample, counted};
use crate::trajectory::{Executed, Standing};

/// The fewest executions of an arm that are compared.
const FEWEST: usize = 2;

/// Arms of a system that is said not to react to neutral changes: in each arm one execution is plain, and another has
/// [some](super::Perturbation). Each stands with what was seen of it: a digest of its requests, its replies (neutral changes,
/// volatile ids and times aside) and what the checker read.
#[derive(Debug, Clone, Copy)]
pub struct Repetition<'a, Seen> {
    /// Executions without the treatment.
    pub null: &'a [(ProofSample, Seen)],
    /// Executions with it.
    pub treated: &'a [(ProofSample, Seen)],
}

impl<Seen: PartialEq> Repetition<'_, Seen> {
    /// Whether two executions of an arm differ in anything: then the system does not repeat itself.
    pub fn is_revoked(&self) -> bool {
        [self.null, self.treated].iter().any(|arm| arm.windows(2).any(|pair| matches!(pair, [a, b] if a != b)))
    }

    /// Where a claim that an injection breaks a run stands; `None` where too little was executed to say, or where the
    /// system does not repeat itself.
    pub fn standing(&self) -> Option<Standing> {
        if self.is_revoked() || self.null.len().min(self.treated.len()) < FEWEST {
            return None;
        }
        match (self.null.first()?.0, self.treated.first()?.0) {
            (ProofSample::Passed, ProofSample::Failed) => Some(Standing::Verified),
            (ProofSample::Void(_), _) | (_, ProofSample::Void(_)) => Some(Standing::Void),
            _ => Some(Standing::Unproven),
        }
    }

    /// What was executed.
    pub fn executed(&self) -> Executed {
        let samples = |arm: &[(ProofSample, Seen)]| counted(&arm.iter().map(|(sample, _)| *sample).collect::<Vec<_>>());
        Executed {
            null: samples(self.null),
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
        for (null, treated, revoked, standing) in [
            (&[(pass, "n"), (pass, "n")][..], &[(fail, "t"), (fail, "t")][..], false, Some(Standing::Verified)),
            (&[(pass, "n"), (pass, "n")], &[(fail, "t")], false, None),
            (&[(pass, "n"), (pass, "m")], &[(fail, "t"), (fail, "t")], true, None),
            (&[(pass, "n"), (pass, "n")], &[(fail, "t"), (pass, "t")], true, None),
            (&[(fail, "n"), (fail, "n")], &[(fail, "t"), (fail, "t")], false, Some(Standing::Unproven)),
            (&[(pass, "n"), (pass, "n")], &[(void, "t"), (void, "t")], false, Some(Standing::Void)),
        ] {
            let arms = Repetition { null, treated };
            assert_eq!((arms.is_revoked(), arms.standing()), (revoked, standing), "{null:?} {treated:?}");
        }
    }

    #[test]
    fn what_was_executed_is_counted_and_has_no_e_value() {
        let (null, treated) = ([(ProofSample::Passed, "n"); 3], [(ProofSample::Failed, "t"); 2]);
        let executed = Repetition { null: &null, treated: &treated }.executed();
        assert_eq!((executed.null.passed, executed.null.all()), (3, 3));
        assert_eq!((executed.treated.failed, executed.treated.all()), (2, 2));
        assert_eq!((executed.repeatable, executed.pairs, executed.e, executed.target), (true, 0, None, None));
    }
}
