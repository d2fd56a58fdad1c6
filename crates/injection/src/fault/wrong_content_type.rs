//! `wrong_content_type`: the reply is called what it is not.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Attempts, Disturbance, Fault, HeaderValue};

/// Changes the reply's content type, not its bytes.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.wrong_content_type = { content_type = "text/plain" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "wrong_content_type"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongContentType {
    /// New content type.
    pub content_type: HeaderValue,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for WrongContentType {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then(|| Disturbance::ContentType(self.content_type.to_string()))
    }

    fn explain(&self) -> String {
        format!("calls the reply `{}`, {}", self.content_type, self.attempts.words())
    }
}
