//! `rpc_error`: a tool server refuses in its protocol's own way.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{AnswerBody, Attempts, Disturbance, Fault};

/// The code of JSON-RPC for an error of the server.
const INTERNAL_ERROR: i32 = -32603;

/// Answers a call of a tool with an error of JSON-RPC and HTTP status 200, instead of asking its server.
///
/// Codes are those of <https://www.jsonrpc.org/specification#error_object>: -32603 is an internal error, -32602 invalid parameters.
///
/// ```toml
/// [[injection]]
/// tool = "add"
/// when.call = 0
/// fault.rpc_error = { message = "database is locked" }
///
/// [[check]]
/// tool = "calc/add"
/// messages = ['assistant calls add({"a": 12, "b": 30})']
/// expect_fault = "rpc_error"
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RpcError {
    /// Code of the error. Default: -32603.
    pub code: Option<i32>,
    /// Error message. Default: one of the server.
    pub message: Option<String>,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl RpcError {
    fn code(&self) -> i32 {
        self.code.unwrap_or(INTERNAL_ERROR)
    }
}

impl Fault for RpcError {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        let message = self.message.clone().unwrap_or_else(|| "Internal error".to_owned());
        let body = AnswerBody::Error { message: Some(message), kind: None, code: Some(self.code().to_string()) };
        let answer = Disturbance::Answer { status: 200, headers: Vec::new(), retry_after_date: None, body };
        self.attempts.include(attempt).then_some(answer)
    }

    fn explain(&self) -> String {
        format!("answers with error {} of JSON-RPC instead of asking the tool, {}", self.code(), self.attempts.words())
    }
}
