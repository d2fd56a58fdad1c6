//! The history of a request in pieces that must stay together: a message, or a tool call with its results.

use crate::surface::{Message, Role};

/// Splits messages into system prompts and the rest, the rest into pieces that must stay together.
pub(super) fn pieces(messages: Vec<Message>) -> (Vec<Message>, Vec<Vec<Message>>) {
    let (system, rest): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| matches!(message.role, Role::System | Role::Developer));
    let mut pieces: Vec<Vec<Message>> = Vec::new();
    for message in rest {
        match pieces.last_mut() {
            Some(piece) if message.role == Role::Tool => piece.push(message),
            _ => pieces.push(vec![message]),
        }
    }
    (system, pieces)
}
