//! A body as Aegis reads it.

use aegis::surface::{Conversation, Reply, Surface, Unplaced, door};

/// Reads a reply as it came.
pub fn read(surface: &dyn Surface, bytes: &[u8], streamed: bool) -> Result<Reply, String> {
    door::reply(surface, bytes, streamed).map_err(|error| error.to_string())
}

/// Reads a request as it came.
pub fn request(surface: &dyn Surface, bytes: &[u8]) -> Result<Conversation, String> {
    door::request(surface, bytes).map_err(|error| error.to_string())
}

/// Whether a reply is accounted for: a piece is unplaced where the list says so, and none where it does not.
pub fn accounts(surface: &dyn Surface, bytes: &[u8], streamed: bool, unplaced: Option<&str>) -> Result<(), String> {
    let reading = door::reading(surface, bytes, streamed).map_err(|error| error.to_string())?;
    held(&reading.unplaced, unplaced)
}

/// The same of a request.
pub fn request_accounts(surface: &dyn Surface, bytes: &[u8], unplaced: Option<&str>) -> Result<(), String> {
    let reading = door::request_reading(surface, bytes).map_err(|error| error.to_string())?;
    held(&reading.unplaced, unplaced)
}

fn held(found: &[Unplaced], unplaced: Option<&str>) -> Result<(), String> {
    match (found.first(), unplaced) {
        (None, Some(what)) => Err(format!("the account is empty, and {what}")),
        (Some(piece), None) => Err(format!("the account is not empty: {piece}")),
        _ => Ok(()),
    }
}
