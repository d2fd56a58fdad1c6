//! How sure a figure is: Wilson's interval for shares, the percentile bootstrap for everything else, both at 95 %.

use serde::Serialize;

use super::{ratio, real};
pub use crate::trajectory::Interval;

/// Resamples of a bootstrap. The ends of a percentile interval are steady to about a tenth of its width here.
const RESAMPLES: usize = 1000;

/// A share of rows, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Share {
    /// Rows that count.
    pub hits: usize,
    /// All rows.
    pub of: usize,
    /// `hits / of`, 0 to 1.
    pub share: f64,
    /// 95 % interval: Wilson's, or the exact one.
    #[serde(flatten)]
    pub interval: Interval,
}

impl Share {
    /// `hits` of `of`.
    pub fn new(hits: usize, of: usize) -> Self {
        Self { hits, of, share: ratio(hits, of), interval: wilson(hits, of) }
    }

    /// The same with the exact interval, for claims of which each is to hold.
    pub fn exact(hits: usize, of: usize) -> Self {
        Self { interval: Interval::exact(hits as u64, of as u64), ..Self::new(hits, of) }
    }
}

/// Wilson's interval of `hits` of `of`.
pub fn wilson(hits: usize, of: usize) -> Interval {
    Interval::wilson(real(hits), real(of))
}

/// Fewest rows whose resamples say anything at 95 %: five that all point one way do so by chance once in sixteen, and no
/// resample of theirs would point the other.
pub const RESAMPLED_MIN: usize = 6;

/// The percentile bootstrap over `rows` rows: `figure` is computed on resamples of row numbers. The draws are a keyed
/// hash of `seed` and `rows`, so that the same data has the same interval on every machine. `None` below [`RESAMPLED_MIN`].
pub fn bootstrap(rows: usize, seed: u64, figure: impl Fn(&[usize]) -> f64) -> Option<Interval> {
    if rows < RESAMPLED_MIN {
        return None;
    }
    let mut stream = blake3::Hasher::new_derive_key("aegis score bootstrap v1")
        .update(&seed.to_le_bytes())
        .update(&(rows as u64).to_le_bytes())
        .finalize_xof();
    let mut sample = vec![0; rows];
    let mut bytes = vec![0_u8; rows.saturating_mul(8)];
    let mut figures: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            stream.fill(&mut bytes);
            for (slot, draw) in sample.iter_mut().zip(bytes.chunks_exact(8)) {
                let draw = draw.try_into().map_or(0, u64::from_le_bytes);
                // The high half of draw × rows is even over 0..rows, but for 2^-64.
                *slot = usize::try_from((u128::from(draw) * rows as u128) >> 64).unwrap_or_default();
            }
            figure(&sample)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    let at = |rank: usize| figures.get(rank).copied().unwrap_or_default();
    Some(Interval { low: at(RESAMPLES / 40), high: at(RESAMPLES - 1 - RESAMPLES / 40) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_as_published() {
        // Newcombe 1998, table I, method 3.
        for (hits, of, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let interval = wilson(hits, of);
            assert!(
                (interval.low - low).abs() < 5e-5 && (interval.high - high).abs() < 5e-5,
                "{hits}/{of}: {interval:?}"
            );
        }
        assert_eq!(wilson(0, 0), Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn the_bootstrap_of_a_mean_finds_its_error() {
        let mean =
            |sample: &[usize]| sample.iter().map(|row| if row % 4 == 0 { 1.0 } else { 0.0 }).sum::<f64>() / 400.0;
        let interval = bootstrap(400, 1, mean).expect("enough rows");
        // sd of a share of a quarter over 400 rows is 0.0217; 95 % is ± 0.042.
        assert!((interval.low - 0.2076).abs() < 0.01 && (interval.high - 0.2924).abs() < 0.01, "{interval:?}");
        assert_eq!(Some(interval), bootstrap(400, 1, mean), "the same seed, the same interval");
        assert_ne!(Some(interval), bootstrap(400, 2, mean));
        for (rows, expected) in [(0, None), (5, None), (6, Some(Interval { low: 1.0, high: 1.0 }))] {
            assert_eq!(bootstrap(rows, 1, |_| 1.0), expected, "{rows} rows");
        }
    }

    #[test]
    fn as_many_resamples_lie_below_the_interval_as_above_it() {
        let drawn = std::cell::Cell::new(0.0);
        let interval = bootstrap(RESAMPLED_MIN, 1, |_| drawn.replace(drawn.get() + 1.0));
        assert_eq!((interval, drawn.get()), (Some(Interval { low: 25.0, high: 974.0 }), 1000.0));
    }
}
