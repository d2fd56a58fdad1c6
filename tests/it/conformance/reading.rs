//! A body as Aegis reads it.

use aegis::surface::{Conversation, Reply, Surface, door};

/// Reads a reply as it came.
pub fn read(surface: &dyn Surface, bytes: &[u8], streamed: bool) -> Result<Reply, String> {
    door::reply(surface, bytes, streamed).map_err(|error| error.to_string())
}

/// Reads a request as it came.
pub fn request(surface: &dyn Surface, bytes: &[u8]) -> Result<Conversation, String> {
    door::request(surface, bytes).map_err(|error| error.to_string())
}
