//! What a manipulator may have to ask a model before it can edit.
//!
//! It asks by returning a [`Question`]; whoever runs it asks the model, keeps the answer, and runs it again with all
//! answers so far. Nothing is asked here: equal questions get equal answers, so that a run again goes one step further.

use serde_json::{Value, json};

use crate::surface::{Conversation, Message, RequiredFormat, Role};

/// Name of the schema that answers must fit.
pub const ANSWER_SCHEMA: &str = "edited_message";

/// A question to the manipulator's own model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Which template it was made from, with its version, for the record.
    pub template: String,
    /// What the model is there for.
    pub system: String,
    /// What it is to do now.
    pub user: String,
    /// Answers to this question that could not be used, oldest first, each with the reason.
    pub refused: Vec<(String, String)>,
    /// The JSON schema of the answer.
    pub schema: Value,
    /// Longest answer, in tokens.
    pub max_tokens: u64,
}

impl Question {
    /// The question as a model is asked it; the model's name is the asker's to add.
    pub fn conversation(&self) -> Conversation {
        let mut messages = vec![Message::text_of(Role::System, &self.system), Message::text_of(Role::User, &self.user)];
        for (said, why) in &self.refused {
            messages.push(Message::text_of(Role::Assistant, said));
            let again = format!("That answer cannot be used: {why}. Answer again, with JSON of the schema only.");
            messages.push(Message::text_of(Role::User, again));
        }
        Conversation {
            messages,
            choices: 1,
            format: RequiredFormat::JsonSchema { name: ANSWER_SCHEMA.to_owned(), schema: self.schema.clone() },
            max_tokens: Some(self.max_tokens),
            ..Conversation::default()
        }
    }
}

/// The schema of an answer: why nothing is edited, or the edited text, tool calls where they may be edited, and how that shows the
/// behaviour.
pub(super) fn answer_schema(with_calls: bool) -> Value {
    let call = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "the id of the call that this one replaces"},
            "name": {"type": "string"},
            "arguments": {"type": "string", "description": "a JSON object as text"},
        },
        "required": ["id", "name", "arguments"],
        "additionalProperties": false,
    });
    let declined = json!({
        "type": ["string", "null"],
        "description": "null, or why nothing in this message can show the behaviour",
    });
    let mut fields = vec![
        ("does_not_apply", declined),
        ("edited_text", json!({"type": "string", "description": "the whole message as it is to read"})),
    ];
    if with_calls {
        fields.push(("calls", json!({"type": "array", "items": call})));
    }
    let shown = json!({"type": "string", "description": "one line: what was changed, and how that is the behaviour"});
    fields.push(("how_it_is_the_mode", shown));
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, field)| ((*name).to_owned(), field.clone())).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}
