//! What a claim is expected to cost, before any of it is spent.

use super::{
    claim::{Arm, Claim, Next},
    sample::ProofSample,
    terms::Terms,
};
use crate::trajectory::Standing;

/// Claims that are played out for a forecast.
const PLAYED: u32 = 2_000;

/// What claims of a kind come to in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Foretold {
    /// The share that is shown.
    pub shown: f64,
    /// Executions of a claim that has flipped once, both arms, the first included.
    pub executions: f64,
    /// Of them, those of the control arm, which claims that share a fork point share.
    pub control: f64,
}

/// Plays claims of injections whose arms pass at these rates (0 to 1) and whose first execution, which is no sample, failed. The draws are the same each time.
pub fn foretell(terms: &Terms, control: f64, treated: f64) -> Foretold {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"aegis foretell 1");
    let mut draws = hasher.finalize_xof();
    let mut passes = |rate: f64| {
        let mut bytes = [0; 4];
        draws.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0) < rate
    };
    let (mut shown, mut executions, mut controls) = (0_u32, 0_usize, 0_usize);
    for _ in 0..PLAYED {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        let standing = loop {
            let (arm, rate) = match Claim::perturbed(terms, &without, &with).next() {
                Next::Stop(standing) => break standing,
                Next::Execute(Arm::Control) => (&mut without, control),
                Next::Execute(Arm::Treated) => (&mut with, treated),
            };
            arm.push(if passes(rate) { ProofSample::Passed } else { ProofSample::Failed });
        };
        shown += u32::from(standing == Standing::Verified);
        executions += 1 + without.len() + with.len();
        controls += without.len();
    }
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let mean = |count: usize| count as f64 / f64::from(PLAYED);
    Foretold { shown: f64::from(shown) / f64::from(PLAYED), executions: mean(executions), control: mean(controls) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_noise_needs_six_pairs() {
        let sure = Foretold { shown: 1.0, executions: 13.0, control: 6.0 };
        assert_eq!(foretell(&Terms::default(), 1.0, 0.0), sure);
        // Where the run fails without the treatment too, three pairs say so.
        let barren = Foretold { shown: 0.0, executions: 7.0, control: 3.0 };
        assert_eq!(foretell(&Terms::default(), 0.0, 0.0), barren);
    }

    #[test]
    fn forecasts_are_what_was_worked_out_apart() {
        let terms = Terms::default();
        // Shares and mean pairs of the second design, section 1 (each conditional on a first flip here).
        for (control, treated, shown, pairs) in [
            (1.0, 0.0, 1.0, 6.0),
            (0.95, 0.05, 0.99, 8.0),
            (0.9, 0.1, 0.99, 11.0),
            (0.8, 0.2, 0.88, 21.0),
            (0.9, 0.3, 0.88, 20.0),
        ] {
            let foretold = foretell(&terms, control, treated);
            assert!(foretold.shown >= shown, "{control} {treated}: {foretold:?}");
            assert!((foretold.executions / 2.0 - pairs).abs() < 2.5, "{control} {treated}: {foretold:?}");
        }
        assert_eq!(foretell(&terms, 0.9, 0.2), foretell(&terms, 0.9, 0.2));
        let chance = foretell(&terms, 0.8, 0.8);
        println!("a flip by chance at 20 % noise: {chance:?}");
        assert!(chance.shown < 0.005);
    }
}
