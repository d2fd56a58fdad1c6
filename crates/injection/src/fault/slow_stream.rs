//! `slow_stream`: the reply trickles.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Attempts, Disturbance, Fault, Pace, WAIT_LIMIT_S};

/// Slows the reply: delays the first byte and each frame, limits bytes per second.
///
/// No byte changes. A client's own time limit counts between bytes or over the whole, which this tells apart.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.slow_stream = { first_ms = 500, frame_ms = 100 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "slow_stream"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowStream {
    /// Milliseconds before the first byte; at most an hour.
    #[serde(default)]
    pub first_ms: u32,
    /// Milliseconds before each further frame of an event stream; at most an hour.
    #[serde(default)]
    pub frame_ms: u32,
    /// Maximum bytes per second, at least 1.
    pub bytes_per_s: Option<u32>,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for SlowStream {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        let ms = |ms: u32| Duration::from_millis(ms.into());
        let pace = Pace { first: ms(self.first_ms), frame: ms(self.frame_ms), bytes_per_s: self.bytes_per_s };
        self.attempts.include(attempt).then_some(Disturbance::Pace(pace))
    }

    fn check(&self) -> Result<(), String> {
        if self.first_ms == 0 && self.frame_ms == 0 && self.bytes_per_s.is_none() {
            return Err("expected at least one of `first_ms`, `frame_ms` and `bytes_per_s`".to_owned());
        }
        if self.bytes_per_s == Some(0) {
            return Err("`bytes_per_s` is 0: expected at least 1, or the fault `hang`".to_owned());
        }
        match [self.first_ms, self.frame_ms].iter().find(|ms| f64::from(**ms) > WAIT_LIMIT_S * 1000.0) {
            Some(ms) => Err(format!("a wait of {ms} ms: expected at most an hour")),
            None => Ok(()),
        }
    }

    fn explain(&self) -> String {
        let rate = self.bytes_per_s.map(|rate| format!(", at most {rate} bytes a second")).unwrap_or_default();
        let (first, frame) = (self.first_ms, self.frame_ms);
        format!("waits {first} ms before the reply and {frame} ms before each frame{rate}, {}", self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_that_is_none_is_refused() {
        for (text, fine) in
            [("first_ms = 1", true), ("", false), ("bytes_per_s = 0", false), ("frame_ms = 4000000", false), ("bytes_per_s = 10", true)]
        {
            let slow: SlowStream = toml::from_str(text).expect(text);
            assert_eq!(slow.check().is_ok(), fine, "{text}");
        }
    }
}
