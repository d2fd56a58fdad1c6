//! How sure a share and a difference of shares are, from few samples.

use serde::Serialize;

pub use crate::trajectory::Interval;

/// Successes of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Share {
    /// Samples that succeeded.
    pub successes: u32,
    /// Samples that have a verdict.
    pub samples: u32,
}

impl Share {
    /// The share of successes, 0 to 1; 0 of nothing.
    pub fn rate(self) -> f64 {
        if self.samples == 0 { 0.0 } else { f64::from(self.successes) / f64::from(self.samples) }
    }

    /// Wilson's interval.
    pub fn wilson(self) -> Interval {
        Interval::wilson(f64::from(self.successes), f64::from(self.samples))
    }
}

/// The difference `treated − null` with Newcombe's interval (R. G. Newcombe, 1998, method 10: squared distances to
/// the ends of both Wilson intervals).
pub fn difference(treated: Share, null: Share) -> (f64, Interval) {
    let (p, q) = (treated.rate(), null.rate());
    let (t, n) = (treated.wilson(), null.wilson());
    let effect = p - q;
    let low = effect - ((p - t.low).powi(2) + (n.high - q).powi(2)).sqrt();
    let high = effect + ((t.high - p).powi(2) + (q - n.low).powi(2)).sqrt();
    (effect, Interval { low: low.max(-1.0), high: high.min(1.0) })
}

/// The highest probability with which a step without any effect is blamed, when both arms have `samples` samples:
/// exact, over all rates that the two arms could share (in steps of a hundredth).
pub fn false_blame(samples: u32) -> f64 {
    let at = |rate: f64| power(samples, rate, rate);
    (0..=100).map(|percent| at(f64::from(percent) / 100.0)).fold(0.0, f64::max)
}

/// The probability with which a step is blamed, when both arms have `samples` samples and succeed at these rates: exact.
pub fn power(samples: u32, treated: f64, null: f64) -> f64 {
    let all = (0..=samples).flat_map(|treated| (0..=samples).map(move |null| (treated, null)));
    let share = |successes| Share { successes, samples };
    let blamed = all.filter(|(treated, null)| difference(share(*treated), share(*null)).1.low > 0.0);
    blamed.map(|(of, none)| binomial(samples, of, treated) * binomial(samples, none, null)).sum()
}

/// The probability of exactly `successes` of `samples`.
fn binomial(samples: u32, successes: u32, rate: f64) -> f64 {
    let ways = (0..successes).map(|i| f64::from(samples - i) / f64::from(i + 1)).product::<f64>();
    let powers = |rate: f64, times: u32| (0..times).map(|_| rate).product::<f64>();
    ways * powers(rate, successes) * powers(1.0 - rate, samples - successes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(successes: u32, samples: u32) -> Share {
        Share { successes, samples }
    }

    #[test]
    fn known_intervals() {
        // Newcombe (1998), table II: 56/70 − 48/80 is 0.2000, method 10 gives 0.0524 to 0.3339.
        let (effect, interval) = difference(share(56, 70), share(48, 80));
        assert!((effect - 0.2).abs() < 1e-9);
        assert!((interval.low - 0.0524).abs() < 5e-5 && (interval.high - 0.3339).abs() < 5e-5, "{interval:?}");
        // 9/10 − 3/10: 0.1705 to 0.8090.
        let (_, interval) = difference(share(9, 10), share(3, 10));
        assert!((interval.low - 0.1705).abs() < 5e-5 && (interval.high - 0.8090).abs() < 5e-5, "{interval:?}");
        assert_eq!(share(0, 0).wilson(), Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn a_step_with_effect_is_blamed_as_often_as_the_arms_can_tell() {
        // Three of three against none of three is all that blames at 3 samples; at 5, three of five and none are enough.
        for (samples, treated, null, expected) in
            [(3, 1.0, 0.0, 1.0), (3, 0.5, 0.0, 0.125), (5, 0.5, 0.0, 0.5), (3, 1.0, 1.0, 0.0), (1, 1.0, 0.0, 0.0)]
        {
            let found = power(samples, treated, null);
            assert!((found - expected).abs() < 1e-9, "{samples} {treated} {null}: {found}");
        }
    }

    #[test]
    fn a_step_without_effect_is_seldom_blamed() {
        assert_eq!(false_blame(1), 0.0, "one sample proves nothing");
        for (samples, most) in [(2, 0.0626), (3, 0.0157), (4, 0.04), (5, 0.06), (10, 0.06)] {
            assert!(false_blame(samples) <= most, "{samples}: {}", false_blame(samples));
        }
    }
}
