//! Requests that are not the recorded one and may be answered by it all the same.

use crate::surface::{self, Role, door};

/// Whether a body is the recorded one, of which secrets were overwritten by asterisks.
pub(super) fn fits_masked(recorded: &[u8], asked: &[u8]) -> bool {
    recorded.len() == asked.len()
        && recorded.iter().zip(asked).all(|(record, asked)| record == asked || *record == b'*')
}

/// Whether a request holds what tools gave.
pub(super) fn holds_tool_results(surface: &str, body: &[u8]) -> bool {
    let asked = surface::named(surface).and_then(|surface| door::request(surface, body).ok());
    asked.is_some_and(|asked| asked.messages.iter().any(|message| message.role == Role::Tool))
}
