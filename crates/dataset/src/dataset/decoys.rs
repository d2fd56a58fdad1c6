//! What came of a campaign's decoys: neutral changes that were planted as if they were errors, and went through the same proof.

use serde::{Deserialize, Serialize};

use super::claims::percent;
use crate::proof;

/// How many decoys were taken for errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecoyCounts {
    /// Runs into which one was delivered.
    pub planted: u64,
    /// Those that failed, where the run without it had passed.
    pub flipped: u64,
    /// Those that the proof took for errors.
    pub verified: u64,
    /// The rate of such labels that this does not rule out, at 95 %; 1 without any decoy.
    pub at_most: f64,
}

impl DecoyCounts {
    /// So many of so many.
    pub fn new(planted: u64, flipped: u64, verified: u64) -> Self {
        Self { planted, flipped, verified, at_most: proof::rate_at_most(verified, planted) }
    }

    /// Whether more of them were verified than a set may hold wrong rows in the mean.
    pub fn breaks(&self, alpha: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "counts of runs")]
        let (verified, allowed) = (self.verified as f64, alpha * self.planted as f64);
        verified > allowed
    }

    /// In one line.
    pub fn in_words(&self) -> String {
        let Self { planted, verified, at_most, .. } = self;
        let at_most = (at_most * 1000.0).ceil() / 1000.0;
        format!("{verified} of {planted} decoys verified: at most {} of such labels (95 %)", percent(at_most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoys_in_words_and_against_the_promise() {
        for (planted, verified, breaks, words) in [
            (20, 0, false, "0 of 20 decoys verified: at most 14 % of such labels (95 %)"),
            (300, 3, false, "3 of 300 decoys verified: at most 2.6 % of such labels (95 %)"),
            (300, 4, true, "4 of 300 decoys verified: at most 3.1 % of such labels (95 %)"),
            (1, 1, true, "1 of 1 decoys verified: at most 100 % of such labels (95 %)"),
        ] {
            let counts = DecoyCounts::new(planted, verified, verified);
            assert_eq!((counts.breaks(0.01), counts.in_words().as_str()), (breaks, words));
        }
    }
}
