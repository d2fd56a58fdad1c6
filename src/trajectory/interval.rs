//! How sure a share is that was counted on few samples.

use serde::Serialize;

/// The difference of two shares, each `(hits, of)`, first less second, with Newcombe's 95 % interval (R. G. Newcombe, 1998,
/// method 10: squared distances to the ends of both Wilson intervals). Of nothing, the share is 0 and anything possible.
pub fn difference(first: (u32, u32), second: (u32, u32)) -> (f64, Interval) {
    let of = |(hits, of): (u32, u32)| {
        let (hits, of) = (f64::from(hits), f64::from(of));
        (if of > 0.0 { hits / of } else { 0.0 }, Interval::wilson(hits, of))
    };
    let ((p, one), (q, other)) = (of(first), of(second));
    let effect = p - q;
    let low = effect - ((p - one.low).powi(2) + (other.high - q).powi(2)).sqrt();
    let high = effect + ((one.high - p).powi(2) + (q - other.low).powi(2)).sqrt();
    (effect, Interval { low: low.max(-1.0), high: high.min(1.0) })
}

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
