//! `reset`: the connection breaks.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Attempts, Disturbance, Fault, Moment};

/// Resets the connection to the client.
///
/// SDKs send a call again whose connection broke before the head of the reply; after it, the agent program gets the
/// error at once.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 1
/// fault.reset = { at = { after_frames = 3 } }
///
/// [[check]]
/// agent = "solver"
/// call = 1
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "reset"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// When.
    #[serde(default = "before_body")]
    pub at: Moment,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

fn before_body() -> Moment {
    Moment::BeforeBody
}

impl Fault for Reset {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reset(self.at))
    }

    fn explain(&self) -> String {
        format!("resets the connection {}, {}", self.at, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meets_the_tries_that_it_names() {
        let reset = Reset { at: Moment::AfterBytes(7), attempts: Attempts::First(2) };
        let met = [0, 1, 2].map(|attempt| reset.disturb(0, attempt));
        let expected = Some(Disturbance::Reset(Moment::AfterBytes(7)));
        assert_eq!(met, [expected.clone(), expected, None]);
    }
}
