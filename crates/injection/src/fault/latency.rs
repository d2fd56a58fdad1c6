//! `latency`: the call takes longer.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Attempts, Disturbance, Fault, WAIT_LIMIT_S};

/// Delays the request by a fixed or drawn time.
///
/// Times are in milliseconds; a drawn time is at least 0 and at most an hour. Retries of a call wait as long as the
/// first try did.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.every = 2
/// fault.latency = { normal = { mean_ms = 800, sd_ms = 200 } }
///
/// [[check]]
/// agent = "solver"
/// call = 2
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "latency"
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Fixed delay.
    pub ms: Option<u64>,
    /// Uniform distribution between two times.
    pub uniform: Option<Uniform>,
    /// Normal distribution.
    pub normal: Option<Normal>,
    /// Lognormal distribution with a long tail, as real services show.
    pub lognormal: Option<Lognormal>,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

/// Bounds of a uniform distribution.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// Minimum in milliseconds.
    pub min_ms: u64,
    /// Maximum in milliseconds.
    pub max_ms: u64,
}

/// Parameters of a normal distribution.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Normal {
    /// Mean in milliseconds.
    pub mean_ms: u64,
    /// Standard deviation in milliseconds.
    pub sd_ms: u64,
}

/// Parameters of a lognormal distribution.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lognormal {
    /// Median in milliseconds.
    pub median_ms: u64,
    /// Standard deviation of the logarithm, 0 to 5.
    pub sigma: f64,
}

impl Fault for Latency {
    fn disturb(&self, draw: u64, attempt: u32) -> Option<Disturbance> {
        let seconds = self.seconds(draw).clamp(0.0, WAIT_LIMIT_S);
        self.attempts.include(attempt).then(|| Disturbance::Delay(Duration::from_secs_f64(seconds)))
    }

    fn check(&self) -> Result<(), String> {
        let given = [self.ms.is_some(), self.uniform.is_some(), self.normal.is_some(), self.lognormal.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            return Err("expected one of `ms`, `uniform`, `normal` and `lognormal`".to_owned());
        }
        match (self.uniform, self.lognormal) {
            (Some(bounds), _) if bounds.min_ms > bounds.max_ms => {
                Err(format!("`min_ms` {} is above `max_ms` {}", bounds.min_ms, bounds.max_ms))
            }
            (_, Some(shape)) if !(0.0..=5.0).contains(&shape.sigma) => {
                Err(format!("`sigma` is {}: expected a number from 0 to 5", shape.sigma))
            }
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        let time = match self {
            Self { uniform: Some(bounds), .. } => format!("{} to {} ms", bounds.min_ms, bounds.max_ms),
            Self { normal: Some(bell), .. } => format!("about {} ms (normal, sd {} ms)", bell.mean_ms, bell.sd_ms),
            Self { lognormal: Some(tail), .. } => {
                format!("about {} ms (lognormal, sigma {})", tail.median_ms, tail.sigma)
            }
            Self { ms, .. } => format!("{} ms", ms.unwrap_or_default()),
        };
        format!("waits {time} before the upstream is asked, {}", self.attempts.words())
    }
}

impl Latency {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of any real wait are far below 2^52")]
    fn seconds(&self, draw: u64) -> f64 {
        let ms = match self {
            Self { uniform: Some(bounds), .. } => {
                let (low, high) = (bounds.min_ms as f64, bounds.max_ms as f64);
                low + (high - low) * unit(draw)
            }
            Self { normal: Some(bell), .. } => bell.mean_ms as f64 + bell.sd_ms as f64 * standard_normal(draw),
            Self { lognormal: Some(tail), .. } => tail.median_ms as f64 * (tail.sigma * standard_normal(draw)).exp(),
            Self { ms, .. } => ms.unwrap_or_default() as f64,
        };
        ms / 1000.0
    }
}

/// A number from 0 to less than 1 of the top 53 bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits are what an f64 holds exactly")]
fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

/// A draw of the standard normal distribution (Box and Muller 1958).
fn standard_normal(draw: u64) -> f64 {
    // The finaliser of SplitMix64 makes a second, independent number of the one draw.
    let mut second = draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
    second = (second ^ (second >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    second = (second ^ (second >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let radius = (-2.0 * (1.0 - unit(draw)).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(second ^ (second >> 31))).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(latency: &Latency, draw: u64) -> f64 {
        match latency.disturb(draw, 0) {
            Some(Disturbance::Delay(time)) => time.as_secs_f64(),
            other => panic!("{other:?}"),
        }
    }

    /// Draws as a plan makes them: spread over the whole range.
    fn draws() -> impl Iterator<Item = u64> {
        (0..4000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn median(latency: &Latency) -> f64 {
        let mut all: Vec<f64> = draws().map(|draw| seconds(latency, draw)).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    }

    #[test]
    fn each_distribution_has_its_middle_and_its_bounds() {
        let fixed = Latency { ms: Some(250), ..Latency::default() };
        assert!(draws().all(|draw| (seconds(&fixed, draw) - 0.25).abs() < 1e-9));
        let uniform = Latency { uniform: Some(Uniform { min_ms: 100, max_ms: 300 }), ..Latency::default() };
        assert!(draws().all(|draw| (0.1..=0.3).contains(&seconds(&uniform, draw))));
        assert!((median(&uniform) - 0.2).abs() < 0.01);
        let normal = Latency { normal: Some(Normal { mean_ms: 800, sd_ms: 200 }), ..Latency::default() };
        assert!((median(&normal) - 0.8).abs() < 0.02);
        let inside = draws().filter(|draw| (seconds(&normal, *draw) - 0.8).abs() < 0.2).count();
        assert!((2600..2860).contains(&inside), "68 % of 4000 lie within one deviation, got {inside}");
        let lognormal = Latency { lognormal: Some(Lognormal { median_ms: 500, sigma: 1.0 }), ..Latency::default() };
        assert!((median(&lognormal) - 0.5).abs() < 0.03);
    }

    #[test]
    fn no_time_is_negative_or_endless() {
        for latency in [
            Latency { ms: Some(u64::MAX), ..Latency::default() },
            Latency { normal: Some(Normal { mean_ms: 0, sd_ms: u64::MAX }), ..Latency::default() },
            Latency { lognormal: Some(Lognormal { median_ms: u64::MAX, sigma: 5.0 }), ..Latency::default() },
        ] {
            for draw in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!((0.0..=WAIT_LIMIT_S).contains(&seconds(&latency, draw)));
            }
        }
    }

    #[test]
    fn attempts_and_contradictions() {
        let first = Latency { ms: Some(1), attempts: Attempts::First(1), ..Latency::default() };
        assert!(first.disturb(0, 0).is_some() && first.disturb(0, 1).is_none());
        let two = Latency { uniform: Some(Uniform { min_ms: 1, max_ms: 2 }), ..first };
        let upside_down = Latency { uniform: Some(Uniform { min_ms: 3, max_ms: 2 }), ..Latency::default() };
        for bad in [two, upside_down, Latency::default()] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
