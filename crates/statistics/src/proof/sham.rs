//! Shams: neutral changes that are executed again the way a planted edit is.
//!
//! A planted edit is one text. At temperature 0 an edit without any effect of its own may still hit one of the few wordings that a model
//! stumbles over at this place, and it then fails each time. The pairs of a claim cannot tell such an edit from an error: runs without it
//! get another wording each, so most of them pass. What tells is a run without the edit that failed. Its own neutral change
//! is executed again, each time with further neutral changes, as the edit is. If it fails as steadily, then the place is
//! *fragile*: any wording may do there what the edit did. If it passes once, the run failed by chance.
//!
//! Let a share c of all neutral wordings fail steadily at a place. A neutral edit comes through n runs without it with a chance of
//! c·(1 − c)ⁿ. From six runs on that is less than 0.4/(n + 1), whatever c is.

use serde::{Deserialize, Serialize};

use super::{ProofSample, counted};
use crate::trajectory::{Executed, Executions};

/// Executions of a sham that must all fail for it to be steady. A program that fails three times in ten by chance has a steady sham
/// once in 120.
const STEADY: u32 = 4;

/// The shams of one claim, each of a run without the planted edit that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Shams(Vec<Sham>);

/// The neutral change of a run without the planted edit, and what it came to when it was executed again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
struct Sham {
    /// The run's number in its arm, 0-based.
    control: u32,
    /// What each further execution says, in order.
    samples: Vec<ProofSample>,
    /// Whether no further execution can be made: what stands there takes no neutral change, or none is left.
    #[serde(skip)]
    exhausted: bool,
}

/// A further execution of a sham.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShamDraw {
    /// The run without the edit, by its number in its arm, 0-based.
    pub control: u32,
    /// The number of the execution, 0-based.
    pub number: u32,
}

impl Shams {
    /// What to execute next, of the neutral changes of these failed runs in order; `None` where nothing more is to be learned.
    pub fn next(&self, failed: &[u32]) -> Option<ShamDraw> {
        if self.0.iter().any(|sham| is_steady(&sham.executions())) {
            return None;
        }
        failed.iter().find_map(|control| {
            let known = self.0.iter().find(|sham| sham.control == *control);
            let number = known.map_or(Some(0), Sham::next)?;
            Some(ShamDraw { control: *control, number })
        })
    }

    /// Adds what an execution says; `None` where none can be made.
    pub fn add(&mut self, control: u32, sample: Option<ProofSample>) {
        let place = self.0.iter().position(|sham| sham.control == control).unwrap_or_else(|| {
            self.0.push(Sham { control, ..Sham::default() });
            self.0.len() - 1
        });
        let Some(sham) = self.0.get_mut(place) else { return };
        match sample {
            Some(sample) => sham.samples.push(sample),
            None => sham.exhausted = true,
        }
    }

    /// What each came to that was executed.
    pub fn executions(&self) -> Vec<Executions> {
        self.0.iter().map(Sham::executions).filter(|executions| executions.all() > 0).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Sham {
    /// The number of its next execution: until it passed, or failed often enough. Executions that say nothing are not made for ever.
    fn next(&self) -> Option<u32> {
        let executions = self.executions();
        let is_open = executions.passed == 0 && executions.failed < STEADY && executions.voids() < STEADY;
        (is_open && !self.exhausted).then(|| executions.all())
    }

    fn executions(&self) -> Executions {
        counted(&self.samples)
    }
}

/// Whether the place at which the claim was executed is fragile: a neutral change alone fails there each time.
pub fn is_fragile(executed: &Executed) -> bool {
    executed.shams.iter().any(is_steady)
}

/// Whether a sham fails each time.
pub(super) fn is_steady(sham: &Executions) -> bool {
    sham.passed == 0 && sham.failed >= STEADY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        proof::{Arm, Claim, Next, Terms, systems_tests::Draws},
        trajectory::{Standing, Void},
    };

    /// A place in a system: the share of wordings at which a run fails each time, and the share of runs that fail by chance.
    struct Place {
        steady: f64,
        noise: f64,
    }

    impl Place {
        /// Whether a wording is one that fails each time.
        fn wording(&self, draws: &mut Draws) -> bool {
            draws.uniform() < self.steady
        }

        fn sample(&self, fails_each_time: bool, draws: &mut Draws) -> ProofSample {
            let fails = draws.uniform() < self.noise || fails_each_time;
            if fails { ProofSample::Failed } else { ProofSample::Passed }
        }

        /// A claim on an edit that failed once already, as the pairs leave it and as the shams do.
        fn claim(&self, edit_fails: bool, draws: &mut Draws) -> (bool, bool) {
            let terms = Terms::default();
            let (mut control_arm, mut wordings, mut treated) = (Vec::new(), Vec::new(), Vec::new());
            let standing = loop {
                match Claim::perturbed(&terms, &control_arm, &treated).next() {
                    Next::Stop(standing) => break standing,
                    Next::Execute(Arm::Treated) => treated.push(self.sample(edit_fails, draws)),
                    Next::Execute(Arm::Control) => {
                        wordings.push(self.wording(draws));
                        control_arm.push(self.sample(wordings.last() == Some(&true), draws));
                    }
                }
            };
            let by_pairs = standing == Standing::Verified;
            let failed = control_arm.iter().zip(0..).filter(|(sample, _)| **sample == ProofSample::Failed);
            let failed: Vec<u32> = failed.map(|(_, number)| number).collect();
            let mut shams = Shams::default();
            while let Some(ShamDraw { control, .. }) = shams.next(&failed) {
                let wording = wordings.get(control as usize) == Some(&true);
                shams.add(control, Some(self.sample(wording, draws)));
            }
            let executed = Executed { shams: shams.executions(), ..Executed::default() };
            (by_pairs, by_pairs && !is_fragile(&executed))
        }
    }

    #[test]
    fn failed_runs_are_asked_in_turn_until_one_is_steady() {
        let mut shams = Shams::default();
        let draw = |control, number| Some(ShamDraw { control, number });
        assert_eq!((shams.next(&[]), shams.is_empty()), (None, true));
        assert_eq!(shams.next(&[1, 4, 6]), draw(1, 0));
        shams.add(1, None);
        assert!(!shams.is_empty());
        assert_eq!((shams.next(&[1, 4, 6]), shams.executions().len()), (draw(4, 0), 0));
        shams.add(4, Some(ProofSample::Failed));
        assert_eq!(shams.next(&[1, 4, 6]), draw(4, 1));
        shams.add(4, Some(ProofSample::Passed));
        assert_eq!(shams.next(&[1, 4, 6]), draw(6, 0));
        samples("ffff").into_iter().for_each(|sample| shams.add(6, Some(sample)));
        assert_eq!((shams.next(&[1, 4, 6, 8]), shams.executions().len()), (None, 2));
    }

    #[test]
    fn of_edits_that_mean_nothing_few_come_through_whatever_share_of_wordings_fails_each_time() {
        let of = 4_000;
        for steady in [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3] {
            let (place, mut draws) = (Place { steady, noise: 0.0 }, Draws::seeded(&format!("fragile {steady}")));
            let decoys = (0..of).map(|_| {
                let fails = place.wording(&mut draws);
                if fails { place.claim(fails, &mut draws) } else { (false, false) }
            });
            let (by_pairs, by_shams) = decoys.fold((0, 0), |(pairs, shams), (by_pairs, by_shams)| {
                (pairs + usize::from(by_pairs), shams + usize::from(by_shams))
            });
            println!("{steady} of wordings fail each time: {by_pairs} of {of} by pairs, {by_shams} with shams");
            // Six runs without the edit are the fewest that show anything: less than 0.4 / 7 come through.
            assert!(by_shams * 70 <= of * 4 + 70 * 40, "{steady}: {by_shams}");
            assert!(steady < 0.15 || by_shams * 2 <= by_pairs, "{steady}: {by_shams} of {by_pairs}");
        }
    }

    #[test]
    fn chance_costs_few_labels_their_weight() {
        let of = 2_000;
        for (noise, at_most) in [(0.0, 0.0), (0.1, 0.01), (0.2, 0.02), (0.3, 0.08)] {
            let (place, mut draws) = (Place { steady: 0.0, noise }, Draws::seeded(&format!("chance {noise}")));
            let claims = (0..of).map(|_| place.claim(true, &mut draws));
            let (by_pairs, by_shams) = claims.fold((0_u32, 0_u32), |(pairs, shams), (by_pairs, by_shams)| {
                (pairs + u32::from(by_pairs), shams + u32::from(by_shams))
            });
            let lost = f64::from(by_pairs - by_shams) / f64::from(by_pairs);
            println!("{noise} fail by chance: {by_pairs} shown by pairs, {by_shams} with shams");
            assert!(lost <= at_most, "{noise}: {lost}");
        }
    }

    fn samples(text: &str) -> Vec<ProofSample> {
        let sample = |letter| match letter {
            'p' => ProofSample::Passed,
            'f' => ProofSample::Failed,
            _ => ProofSample::Void(Void::Unanswered),
        };
        text.chars().map(sample).collect()
    }

    #[test]
    fn a_sham_is_executed_until_it_passes_or_is_steady() {
        for (samples, open, steady) in [
            ("", true, false),
            ("f", true, false),
            ("p", false, false),
            ("fp", false, false),
            ("fff", true, false),
            ("fffp", false, false),
            ("ffff", false, true),
            ("fvfvff", false, true),
            ("vvv", true, false),
            ("vvvv", false, false),
        ] {
            let mut shams = Shams::default();
            self::samples(samples).into_iter().for_each(|sample| shams.add(3, Some(sample)));
            let next = open.then(|| ShamDraw { control: 3, number: u32::try_from(samples.len()).expect("few") });
            assert_eq!(shams.next(&[3]), next, "{samples}");
            let executed = Executed { shams: shams.executions(), ..Executed::default() };
            assert_eq!(is_fragile(&executed), steady, "{samples}");
        }
    }
}
