//! How sure a share is that was counted on few samples.

use serde::Serialize;

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proportion {
    /// Those that are so.
    pub hits: u32,
    /// All.
    pub of: u32,
}

impl Proportion {
    /// Hits of so many.
    pub fn new(hits: u32, of: u32) -> Self {
        Self { hits, of }
    }

    /// Its share, 0 of nothing, with Wilson's 95 % interval.
    pub fn share(self) -> (f64, Interval) {
        let (hits, of) = (f64::from(self.hits), f64::from(self.of));
        (if of > 0.0 { hits / of } else { 0.0 }, Interval::wilson(hits, of))
    }
}

/// The difference of two proportions, first less second, with Newcombe's 95 % interval (R. G. Newcombe, 1998,
/// method 10: squared distances to the ends of both Wilson intervals). Of nothing, the share is 0 and anything possible.
pub fn difference(first: impl Into<Proportion>, second: impl Into<Proportion>) -> (f64, Interval) {
    let ((p, one), (q, other)) = (first.into().share(), second.into().share());
    let effect = p - q;
    let low = effect - ((p - one.low).powi(2) + (other.high - q).powi(2)).sqrt();
    let high = effect + ((one.high - p).powi(2) + (q - other.low).powi(2)).sqrt();
    (effect, Interval { low: low.max(-1.0), high: high.min(1.0) })
}

/// The two-sided 95 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Halvings of the interval that a rate lies in.
const HALVINGS: u32 = 60;

/// The highest rate at which so many hits or fewer are as probable as `miss` (Clopper and Pearson, 1934, one-sided); 1 of none.
pub fn highest_rate(hits: u64, trials: u64, miss: f64) -> f64 {
    if hits >= trials {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if at_most_so_many(hits, trials, middle) > miss {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// How probable so many hits or fewer are, at a rate above 0 and below 1.
#[expect(clippy::cast_precision_loss, reason = "counts of runs")]
fn at_most_so_many(hits: u64, trials: u64, rate: f64) -> f64 {
    // In logarithms: a power of many trials would be no number.
    let mut log = trials as f64 * (-rate).ln_1p();
    let mut sum = log.exp();
    for hit in 0..hits {
        log += ((trials - hit) as f64 / (hit + 1) as f64).ln() + rate.ln() - (-rate).ln_1p();
        sum += log.exp();
    }
    sum
}

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The exact interval of `hits` of `of` (Clopper and Pearson, 1934): it misses the true share in 5 % of cases at most, whatever
    /// the share and however few the rows; Wilson's does so in the mean. Of nothing, everything is possible.
    pub fn exact(hits: u64, of: u64) -> Self {
        let missed = of.saturating_sub(hits);
        Self { low: 1.0 - highest_rate(missed, of, 0.025), high: highest_rate(hits, of, 0.025) }
    }

    /// Wilson's score interval of `hits` of `of` (E. B. Wilson, 1927): it stays inside 0 to 1 and holds near the ends,
    /// where the usual `p ± z·sd` does not. Of nothing, everything is possible.
    pub fn wilson(hits: f64, of: f64) -> Self {
        if of <= 0.0 {
            return Self { low: 0.0, high: 1.0 };
        }
        let share = hits / of;
        let denominator = 1.0 + Z * Z / of;
        let centre = (share + Z * Z / (2.0 * of)) / denominator;
        let half = Z / denominator * (share * (1.0 - share) / of + Z * Z / (4.0 * of * of)).sqrt();
        Self { low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_as_published() {
        // Newcombe 1998, table I, method 5; with all or none of n, 0.025^(1/n).
        for (hits, of, low, high) in [
            (81, 263, 0.2527, 0.3676),
            (15, 148, 0.0578, 0.1617),
            (0, 20, 0.0, 0.1684),
            (1, 29, 0.0009, 0.1776),
            (16, 16, 0.7941, 1.0),
            (17, 17, 0.8049, 1.0),
            (0, 0, 0.0, 1.0),
        ] {
            let found = Interval::exact(hits, of);
            let near = (found.low - low).abs() < 6e-5 && (found.high - high).abs() < 6e-5;
            assert!(near, "{hits} of {of}: {found:?}");
        }
    }

    #[test]
    fn wilson_as_published() {
        // Newcombe 1998 (two-sided intervals for the single proportion), table I, method 3.
        for (hits, of, low, high) in [
            (81.0, 263.0, 0.2553, 0.3662),
            (15.0, 148.0, 0.0624, 0.1605),
            (0.0, 20.0, 0.0, 0.1611),
            (1.0, 29.0, 0.0061, 0.1718),
            (29.0, 29.0, 0.8830, 1.0),
            (0.0, 0.0, 0.0, 1.0),
        ] {
            let found = Interval::wilson(hits, of);
            assert!((found.low - low).abs() < 5e-5 && (found.high - high).abs() < 5e-5, "{hits}/{of}: {found:?}");
        }
    }

    #[test]
    fn a_difference_as_published() {
        // Newcombe 1998 (interval estimation for the difference between independent proportions), table II, method 10.
        for (first, second, effect, low, high) in [
            ((56, 70), (48, 80), 0.2, 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.6, 0.1705, 0.8090),
            ((6, 7), (2, 7), 4.0 / 7.0, 0.0582, 0.8062),
            ((5, 56), (0, 29), 5.0 / 56.0, -0.0381, 0.1926),
            ((0, 10), (0, 20), 0.0, -0.1611, 0.2775),
            ((0, 10), (0, 10), 0.0, -0.2775, 0.2775),
            ((10, 10), (0, 20), 1.0, 0.6791, 1.0),
            ((10, 10), (0, 10), 1.0, 0.6075, 1.0),
            ((0, 20), (10, 10), -1.0, -1.0, -0.6791),
            // Of nothing, anything is possible.
            ((0, 0), (0, 0), 0.0, -1.0, 1.0),
        ] {
            let proportion = |(hits, of)| Proportion::new(hits, of);
            let (found, interval) = difference(proportion(first), proportion(second));
            assert!((found - effect).abs() < 1e-12, "{first:?} {second:?}: {found}");
            assert!(
                (interval.low - low).abs() < 5e-5 && (interval.high - high).abs() < 5e-5,
                "{first:?} {second:?}: {interval:?}"
            );
        }
    }
}
