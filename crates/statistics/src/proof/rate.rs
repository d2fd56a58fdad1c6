//! The highest rate at which something that was counted can be.

use crate::trajectory::highest_rate;

/// How probable it is that the rate is higher.
const MISS: f64 = 0.05;

/// The highest rate that so many hits in so many trials leave possible at 95 % (Clopper and Pearson, 1934, one-sided); 1 of none.
pub fn rate_at_most(hits: u64, trials: u64) -> f64 {
    highest_rate(hits, trials, MISS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bounds() {
        // 1 - 0.05^(1/n) without a hit; else from tables of the binomial distribution.
        for (hits, trials, bound) in [
            (0, 0, 1.0),
            (0, 1, 0.95),
            (0, 20, 0.139_108),
            (0, 300, 0.009_936),
            (1, 20, 0.216_106),
            (3, 300, 0.025_655),
            (5, 5, 1.0),
            (0, 100_000, 0.000_029_957),
        ] {
            let found = rate_at_most(hits, trials);
            assert!((found - bound).abs() < 2e-5, "{hits} of {trials}: {found}");
        }
    }

    #[test]
    fn more_hits_leave_more_possible_and_more_trials_less() {
        for trials in 1..60 {
            for hits in 0..trials {
                assert!(rate_at_most(hits, trials) < rate_at_most(hits + 1, trials));
                assert!(rate_at_most(hits, trials + 1) < rate_at_most(hits, trials));
            }
        }
    }
}
