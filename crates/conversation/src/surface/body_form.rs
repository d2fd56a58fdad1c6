//! The form of a body that is not packed: whether it is a stream, and which of its bytes are JSON.

use super::sse;

/// Whether a body is an event stream: its bytes tell, whatever it was typed as. `streamed`: what it was typed as, for bytes that do
/// not tell.
pub fn is_stream(plain: &[u8], streamed: bool) -> bool {
    sse::is_stream(plain).unwrap_or(streamed)
}

/// A whole reply and what stands behind it: some servers put the end marker of a stream there.
pub fn whole_and_rest(body: &[u8]) -> (&[u8], &[u8]) {
    let text = body.trim_ascii_end();
    let before = text.strip_suffix(b"[DONE]").map(<[u8]>::trim_ascii_end);
    let before = before.map(|before| before.strip_suffix(b"data:").unwrap_or(before).trim_ascii_end());
    match before.filter(|before| before.ends_with(b"}")) {
        Some(before) => body.split_at(before.len()),
        None => (body, b""),
    }
}

/// JSON without the byte order mark that some senders put before it.
pub fn json(plain: &[u8]) -> &[u8] {
    plain.strip_prefix(b"\xef\xbb\xbf").unwrap_or(plain)
}
