//! What a play of a campaign draws: figures that nothing was measured of, and how far measured ones are off.

use rand::{RngExt, rngs::ChaCha8Rng};

/// How often an injected run is taken to flip where none was made. These ranges hold what the campaigns of the examples came to.
pub(super) const FLIPS: Range = Range(0.15, 0.65);
/// The share of its reference's calls that an injected run is taken to pay for where none was made: records answer its beginning, and
/// what was planted may lengthen what follows.
pub(super) const LIVE: Range = Range(0.5, 1.05);
/// The same of a run of a proof: what flips an outcome stands late more often, and may send a team round once more (agentverse: 2.6).
const LIVE_IN_PROOF: Range = Range(0.25, 1.6);
/// The share of planned runs that can be made, since a plan may meet no call.
const MADE: Range = Range(0.85, 1.0);
/// How often a run comes out wrong by chance.
pub(super) const NOISE: Range = Range(0.0, 0.2);
/// The share of the runs without the error that a claim has for itself: claims that leave the reference at one step share them.
const OWN: Range = Range(0.5, 1.0);
/// Runs that a flip takes, for each that a label takes: what is not to be shown is given up earlier, void runs are made up for.
const PURSUED: Range = Range(0.7, 1.1);
/// How often errors are left out in turn, for each that is planted beside others: runs with several flip more often than the rest.
const NARROWED: Range = Range(0.8, 2.4);
/// Runs that an error takes which is left out, those with all among them: 6 pairs where it is necessary, 16 where it is not.
const LEFT_OUT: Range = Range(12.0, 32.0);
/// How much longer requests are after the beginning that records answer, where no injected run shows it.
const LONGER: Range = Range(0.9, 1.4);
/// How often a decoy flips.
pub(super) const DECOY_FLIPS: f64 = 0.05;

/// From where to where a figure is taken to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range(pub(super) f64, pub(super) f64);

impl Range {
    fn at(self, share: f64) -> f64 {
        self.0 + (self.1 - self.0) * share
    }
}

/// Draws of one play. What is true of all systems alike is drawn once.
pub(super) struct PlayDraws<'a> {
    random: &'a mut ChaCha8Rng,
    pub(super) live: f64,
    pub(super) live_in_proof: f64,
    pub(super) flips: f64,
    pub(super) made: f64,
    pub(super) noise: f64,
    pub(super) own: f64,
    pub(super) pursued: f64,
    pub(super) narrowed: f64,
    pub(super) left_out: f64,
    pub(super) longer: f64,
}

impl<'a> PlayDraws<'a> {
    pub(super) fn new(random: &'a mut ChaCha8Rng) -> Self {
        let mut drawn = |range: Range| range.at(random.random());
        let (flips, made, noise, own) = (drawn(FLIPS), drawn(MADE), drawn(NOISE), drawn(OWN));
        let (pursued, narrowed, left_out, longer) = (drawn(PURSUED), drawn(NARROWED), drawn(LEFT_OUT), drawn(LONGER));
        // Where records answer little of an injected run they answer little of its proof.
        let little = drawn(Range(0.0, 1.0));
        let (live, live_in_proof) = (LIVE.at(little), LIVE_IN_PROOF.at(little));
        Self { random, live, live_in_proof, flips, made, noise, own, pursued, narrowed, left_out, longer }
    }

    /// A deviation: 0 in the mean, 1 usually.
    fn deviation(&mut self) -> f64 {
        // Twelve uniform draws are as good as normal where one in twenty is asked for.
        (0..12).map(|_| self.random.random::<f64>()).sum::<f64>() - 6.0
    }

    /// A figure around one, never below zero.
    pub(super) fn around(&mut self, mean: f64, variation: f64) -> f64 {
        mean * (variation * self.deviation() - variation * variation / 2.0).exp()
    }

    /// A share of which so many were seen, in so many that are still to come.
    pub(super) fn share(&mut self, hits: f64, of: f64, further: f64) -> f64 {
        // A little towards both ends: what was always seen so far is not certain.
        let share = (hits + 0.4) / (of + 0.8);
        let spread = (share * (1.0 - share) * (1.0 / (of + 0.8) + 1.0 / further.max(1.0))).sqrt();
        (share + spread * self.deviation()).clamp(0.0, 1.0)
    }
}
