//! `refuse_connection`: nobody answers.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Attempts, Disturbance, Fault, Moment};

/// Closes the connection properly, without sending a byte.
///
/// SDKs send such a call again.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.refuse_connection = { attempts = "first" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "refuse_connection"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefuseConnection {
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for RefuseConnection {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        let closed = Disturbance::Cut { at: Moment::BeforeRequest, clean: false, end_marker: false };
        self.attempts.include(attempt).then_some(closed)
    }

    fn explain(&self) -> String {
        format!("closes the connection without an answer, {}", self.attempts.words())
    }
}
