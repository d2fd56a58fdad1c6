//! How sure a share is that was counted on few samples.

use serde::Serialize;

/// The two-sided 95 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
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
