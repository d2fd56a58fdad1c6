//! A body as Aegis reads it.

use aegis::surface::{Conversation, Reply, Surface};

/// Reads a reply as it came.
pub fn read(surface: &dyn Surface, bytes: &[u8], streamed: bool) -> Result<Reply, String> {
    let read = if streamed { surface.read_stream(bytes) } else { surface.read_reply(bytes) };
    read.map_err(|error| error.to_string())
}

/// Reads a request as it came.
pub fn request(surface: &dyn Surface, bytes: &[u8]) -> Result<Conversation, String> {
    surface.read_request(bytes).map_err(|error| error.to_string())
}
