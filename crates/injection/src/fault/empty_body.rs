//! `empty_body`: an answer without a body.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};

/// Removes the reply's body; its head stays, with status 200.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.empty_body = {}
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "empty_body"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmptyBody {
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for EmptyBody {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        if reply.body.is_empty() { Err("the reply is already empty".to_owned()) } else { Ok(Bytes::new()) }
    }

    fn explain(&self) -> String {
        format!("takes the whole body out of the reply, {}", self.attempts.words())
    }
}
