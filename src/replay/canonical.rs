//! The canonical form of a request body: what two requests must have in common to be the same request.

use serde_json::Value;

use super::Rules;
use crate::surface::{self, Conversation, Role};

/// A body as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// JSON, keys in order, volatile parts replaced.
    Json(Value),
    /// Other text, volatile parts replaced.
    Text(String),
    /// No text: its length and hash.
    Bytes(String),
}

impl Form {
    /// Reads a body.
    pub(super) fn of(body: &[u8], rules: &Rules) -> Self {
        if let Ok(mut value) = serde_json::from_slice::<Value>(body) {
            value.sort_all_objects();
            rules.apply(&mut value);
            return Form::Json(value);
        }
        match std::str::from_utf8(body) {
            Ok(text) => Form::Text(rules.apply_text(text)),
            Err(_) => Form::Bytes(format!("{} bytes, blake3 {}", body.len(), blake3::hash(body).to_hex())),
        }
    }

    /// The form as one text: equal forms, equal texts.
    pub(super) fn text(&self) -> String {
        match self {
            Form::Json(value) => value.to_string(),
            Form::Text(text) | Form::Bytes(text) => text.clone(),
        }
    }
}

/// Whether a body is the recorded one, of which secrets were overwritten by asterisks.
pub(super) fn fits_masked(recorded: &[u8], asked: &[u8]) -> bool {
    recorded.len() == asked.len()
        && recorded.iter().zip(asked).all(|(record, asked)| record == asked || *record == b'*')
}

/// A request with what tools gave taken out; `None` where it has no such thing or cannot be read.
pub(super) fn without_tool_results(surface: &str, body: &[u8]) -> Option<Conversation> {
    let surface = surface::ALL.iter().find(|known| known.name() == surface)?;
    let mut conversation = surface.read_request(body).ok()?;
    let results = conversation.messages.iter_mut().filter(|message| message.role == Role::Tool);
    let results = results.map(|message| message.parts.clear()).count();
    (results > 0).then_some(conversation)
}
