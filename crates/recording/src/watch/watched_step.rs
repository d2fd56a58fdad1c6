//! A step as rules see it.

use serde_json::Value;

use super::text::{first, folded_words, hash};
use crate::{
    surface::{RequiredFormat, Tool, ToolCall},
    trajectory::StepIndex,
};

/// A step as rules see it. What is not known is left out, and rules that need it are silent.
#[derive(Debug, Clone, Default)]
pub struct WatchedStep {
    /// Its number.
    pub step: StepIndex,
    /// The agent.
    pub agent: String,
    /// Its instance, 0-based.
    pub instance: u32,
    /// What is new in its request.
    pub given: String,
    /// Hashes of the messages of its request, prompts and what belongs to tools aside.
    pub history: Option<Vec<u64>>,
    /// Each message of its request as it was written, with a hash of its words.
    pub request_messages: Option<Vec<(u64, u64)>>,
    /// Results of tools that are new in its request.
    pub results: Vec<WatchedResult>,
    /// What form its reply must have.
    pub format: RequiredFormat,
    /// The tools on offer.
    pub tools: Option<Vec<Tool>>,
    /// What it said.
    pub reply: String,
    /// The tools that it called.
    pub calls: Vec<WatchedCall>,
    /// Whether the reply holds something that is no text.
    pub says_more: bool,
    /// Why the model stopped, in the API's word.
    pub finish: Option<String>,
    /// The status, where a log says that it was not good; 0 where no answer came.
    pub status: Option<u16>,
    /// What the upstream said instead of an answer, where it refused the request.
    pub refused: Option<String>,
    /// Tokens of the request.
    pub input_tokens: Option<u64>,
    /// How many the model takes; whoever watches sets it.
    pub window: Option<u64>,
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedCall {
    /// Its id; empty where none is known.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, as the model wrote them.
    pub arguments: String,
}

/// What a tool answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedResult {
    /// The id of the call that it answers.
    pub id: String,
    /// The call, where the request holds it too.
    pub call: Option<WatchedCall>,
    /// What it says.
    pub text: String,
}

impl WatchedCall {
    /// Equal for calls of one tool with the same arguments, however they are written.
    pub(super) fn key(&self) -> u64 {
        let arguments = serde_json::from_str::<Value>(&self.arguments).map(|value| sorted(&value).to_string());
        hash(&format!("{} {}", self.tool, arguments.unwrap_or_else(|_| folded_words(&self.arguments))))
    }

    /// The call, to be quoted.
    pub(super) fn quote(&self) -> String {
        format!("{}({})", self.tool, first(&self.arguments))
    }
}

impl From<&ToolCall> for WatchedCall {
    fn from(call: &ToolCall) -> Self {
        Self { id: call.id.clone(), tool: call.name.clone(), arguments: call.arguments.clone() }
    }
}

/// A value with its keys in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
