//! Requests that are not the recorded one and may be answered by it all the same.

use crate::surface::{self, Conversation, Role, door};

/// Whether a body is the recorded one, of which secrets were overwritten by asterisks.
pub(super) fn fits_masked(recorded: &[u8], asked: &[u8]) -> bool {
    recorded.len() == asked.len()
        && recorded.iter().zip(asked).all(|(record, asked)| record == asked || *record == b'*')
}

/// A request with what tools gave taken out; `None` where it has no such thing or cannot be read.
pub(super) fn without_tool_results(surface: &str, body: &[u8]) -> Option<Conversation> {
    let surface = surface::named(surface)?;
    let mut conversation = door::request(surface, body).ok()?;
    let results = conversation.messages.iter_mut().filter(|message| message.role == Role::Tool);
    let results = results.map(|message| message.parts.clear()).count();
    (results > 0).then_some(conversation)
}
