//! `hang`: nothing more comes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Attempts, Disturbance, Fault, Moment, WAIT_LIMIT_S};

/// Stops sending and keeps the connection open until the client gives up or the time is over.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.hang = { at = "before_request", at_most_s = 30, attempts = "first" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "hang"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hang {
    /// When.
    #[serde(default = "before_body")]
    pub at: Moment,
    /// Maximum time in seconds, above 0, at most an hour; then the connection is reset.
    #[serde(default = "an_hour")]
    pub at_most_s: f64,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

fn before_body() -> Moment {
    Moment::BeforeBody
}

fn an_hour() -> f64 {
    WAIT_LIMIT_S
}

impl Fault for Hang {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        // A value that `check` would refuse waits for the hour: no other value is left to hang for.
        let seconds = if self.check().is_ok() { self.at_most_s } else { WAIT_LIMIT_S };
        let at_most = Duration::from_secs_f64(seconds);
        self.attempts.include(attempt).then_some(Disturbance::Hang { at: self.at, at_most })
    }

    fn check(&self) -> Result<(), String> {
        if self.at_most_s > 0.0 && self.at_most_s <= WAIT_LIMIT_S {
            Ok(())
        } else {
            Err(format!("`at_most_s` is {}: expected more than 0 and at most {WAIT_LIMIT_S}", self.at_most_s))
        }
    }

    fn explain(&self) -> String {
        format!("falls silent {} for up to {} s, {}", self.at, self.at_most_s, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_bounded() {
        let hang = |at_most_s| Hang { at: Moment::BeforeBody, at_most_s, attempts: Attempts::All };
        for (at_most_s, allowed) in [(0.5, true), (3600.0, true), (0.0, false), (f64::NAN, false), (1e9, false)] {
            let hang = hang(at_most_s);
            assert_eq!(hang.check().is_ok(), allowed, "{at_most_s}");
            let Some(Disturbance::Hang { at_most, .. }) = hang.disturb(0, 5) else { panic!("hangs on every try") };
            assert!(at_most > Duration::ZERO && at_most <= Duration::from_hours(1));
        }
    }
}
