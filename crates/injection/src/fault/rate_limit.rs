//! `rate_limit`: a window of requests, with refill.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Disturbance, Fault, WAIT_LIMIT_S, Window};

/// Answers 429 while a window of requests is used up, with the provider's headers.
///
/// The window holds `requests` and is refilled evenly over `per_s`. Tries count as requests, as they do for a provider,
/// so a client that asks again too soon is refused again. It is the only fault that looks at the clock.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.rate_limit = { requests = 3, per_s = 60 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "rate_limit"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Requests that the window holds; 0 refuses all until it is refilled.
    pub requests: u32,
    /// Seconds until an empty window is full again; above 0, at most an hour.
    pub per_s: f64,
    /// Whether each agent has its own window, instead of one for the run.
    #[serde(default = "yes")]
    pub per_agent: bool,
    /// Whether the answer says when to retry.
    #[serde(default = "yes")]
    pub retry_after: bool,
}

fn yes() -> bool {
    true
}

impl Fault for RateLimit {
    fn disturb(&self, _: u64, _: u32) -> Option<Disturbance> {
        let seconds = if self.check().is_ok() { self.per_s } else { WAIT_LIMIT_S };
        Some(Disturbance::Limit(Window {
            requests: self.requests,
            refill: Duration::from_secs_f64(seconds),
            per_agent: self.per_agent,
            retry_after: self.retry_after,
        }))
    }

    fn check(&self) -> Result<(), String> {
        if self.per_s > 0.0 && self.per_s <= WAIT_LIMIT_S {
            Ok(())
        } else {
            Err(format!("`per_s` is {}: expected more than 0 and at most {WAIT_LIMIT_S}", self.per_s))
        }
    }

    fn explain(&self) -> String {
        let whose = if self.per_agent { "each agent" } else { "the run" };
        format!("answers with HTTP 429 once {whose} has asked {} times in {} s", self.requests, self.per_s)
    }
}

/// What is left of a window: requests, and since when (in microseconds of any clock that never goes back).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    left: f64,
    at_us: u64,
}

impl Level {
    /// A full window.
    pub fn full(window: &Window, now_us: u64) -> Self {
        Self { left: f64::from(window.requests), at_us: now_us }
    }

    /// Takes one request out. How many whole ones are then left, or how long to wait for the next one.
    ///
    /// # Errors
    /// The time until there is one.
    pub fn take(&mut self, window: &Window, now_us: u64) -> Result<u32, Duration> {
        let capacity = f64::from(window.requests.max(1));
        let rate = capacity / window.refill.as_secs_f64();
        let passed = Duration::from_micros(now_us.saturating_sub(self.at_us)).as_secs_f64();
        self.left = (self.left + passed * rate).min(capacity);
        self.at_us = now_us;
        if self.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.left) / rate));
        }
        self.left -= 1.0;
        Ok((0..window.requests).take_while(|whole| f64::from(*whole) + 1.0 <= self.left).last().map_or(0, |last| last + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_empties_and_refills() {
        let limit = RateLimit { requests: 2, per_s: 10.0, per_agent: true, retry_after: true };
        let Some(Disturbance::Limit(window)) = limit.disturb(0, 5) else { panic!("a window") };
        let mut level = Level::full(&window, 0);
        let second = 1_000_000;
        assert_eq!(level.take(&window, 0), Ok(1));
        assert_eq!(level.take(&window, 0), Ok(0));
        assert_eq!(level.take(&window, 0), Err(Duration::from_secs(5)));
        assert_eq!(level.take(&window, 3 * second), Err(Duration::from_secs(2)));
        assert_eq!(level.take(&window, 5 * second), Ok(0));
        assert_eq!(level.take(&window, 1000 * second), Ok(1), "it holds no more than it holds");
        assert!(RateLimit { per_s: 0.0, ..limit }.check().is_err());
    }
}
