//! A message of a sample.

use serde::{Deserialize, Serialize};

use crate::surface::{self, Part};

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SampleMessage {
    /// `system`, `developer`, `user`, `assistant`, `tool` or `other`.
    pub role: String,
    /// The speaker's name, where the API carries one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text; several parts are joined by line breaks.
    pub text: String,
    /// Tool calls that the message makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Called>,
    /// The id of the tool call that the message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Parts that are not text (images, audio): how many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub opaque: u32,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Called {
    /// The id that its result names: `call_0`, `call_1`, … in the order in which the sample's calls appear. What the
    /// backend or the program called it is in the run's recording.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: JSON text as the model wrote it, valid or not.
    pub arguments: String,
}

impl SampleMessage {
    /// Its texts: name, words, tool calls.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let calls = self.calls.iter().flat_map(|call| [call.name.as_str(), call.arguments.as_str()]);
        self.name.as_deref().into_iter().chain(std::iter::once(self.text.as_str())).chain(calls)
    }
}

impl From<&surface::Message> for SampleMessage {
    fn from(message: &surface::Message) -> Self {
        let calls = message.tool_calls.iter().map(|call| Called {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let opaque = message.parts.iter().filter(|part| matches!(part, Part::Opaque(_))).count();
        Self {
            role: message.role.name().to_owned(),
            name: message.name.clone(),
            text: message.text(),
            calls: calls.collect(),
            answers: message.answers_call.clone(),
            opaque: u32::try_from(opaque).unwrap_or(u32::MAX),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
