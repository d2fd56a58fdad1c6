//! Messages as events of a stream, and back: what was a message is it again, byte for byte.

use bytes::{Bytes, BytesMut};

/// What gateways put behind a stream: it ends a body, and is no message.
const DONE: &[u8] = b"[DONE]";

/// A message as an event, with its type as the name of that where it can be one.
pub fn event(kind: &str, message: &[u8]) -> Bytes {
    let mut event = BytesMut::with_capacity(message.len() + kind.len() + 32);
    if !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_graphic()) {
        event.extend_from_slice(b"event: ");
        event.extend_from_slice(kind.as_bytes());
        event.extend_from_slice(b"\n");
    }
    for line in message.split(|byte| *byte == b'\n') {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.extend_from_slice(b"\n");
    }
    event.extend_from_slice(b"\n");
    event.freeze()
}

/// Takes the messages out of a stream of events. Comments and events without data are none.
#[derive(Debug, Default)]
pub struct EventReader {
    held: BytesMut,
    /// Where the line begins that is not whole yet.
    line: usize,
    /// How much of it was looked at.
    looked_at: usize,
}

impl EventReader {
    /// Takes in what has come, and gives the messages that are whole with it.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Bytes> {
        self.held.extend_from_slice(chunk);
        let mut messages = Vec::new();
        while let Some(found) = memchr::memchr(b'\n', self.held.get(self.looked_at..).unwrap_or_default()) {
            let end = self.looked_at + found;
            let line = self.held.get(self.line..end).unwrap_or_default();
            // Only a stream whose lines end with CRLF has such a line: in an event of ours each begins with a field.
            let (is_blank, is_crlf) = (line.is_empty() || line == b"\r", line == b"\r");
            (self.line, self.looked_at) = (end + 1, end + 1);
            if is_blank {
                let event = self.held.split_to(end + 1);
                (self.line, self.looked_at) = (0, 0);
                messages.extend(data(&event, is_crlf).filter(|data| data != DONE));
            }
        }
        self.looked_at = self.held.len();
        messages
    }

    /// What has come of a message that is not whole.
    pub fn begun(&self) -> Option<Bytes> {
        data(&self.held, false)
    }
}

/// The data of an event; `None` where it has none.
fn data(event: &[u8], is_crlf: bool) -> Option<Bytes> {
    let mut joined: Option<BytesMut> = None;
    for line in event.split(|byte| *byte == b'\n') {
        let Some(value) = line.strip_prefix(b"data:") else { continue };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let value = if is_crlf { value.strip_suffix(b"\r").unwrap_or(value) } else { value };
        match &mut joined {
            Some(joined) => {
                joined.extend_from_slice(b"\n");
                joined.extend_from_slice(value);
            }
            none => *none = Some(BytesMut::from(value)),
        }
    }
    joined.map(BytesMut::freeze)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> (Vec<Bytes>, Option<Bytes>) {
        let mut reader = EventReader::default();
        let messages = chunks.iter().flat_map(|chunk| reader.push(chunk)).collect();
        (messages, reader.begun())
    }

    #[test]
    fn streams_of_others() {
        let stream = b"\r\n: alive\r\n\r\nevent: a\r\ndata: {\"a\":\r\ndata:1}\r\n\r\ndata: [DONE]\r\n\r\nid: 1\n\ndata: b\n\ndata: c";
        let (messages, begun) = read(&[stream]);
        assert_eq!(messages, ["{\"a\":\n1}", "b"]);
        assert_eq!(begun.as_deref(), Some(&b"c"[..]));
    }

    proptest! {
        #[test]
        fn a_message_is_itself_again(
            messages in prop::collection::vec("(?s)[a\r\n {}:\"é]{0,12}|.{0,20}", 0..6),
            kind in "[a-z.]{0,6}|.{0,4}",
            cuts in prop::collection::vec(0usize..200, 0..10),
        ) {
            let stream: Vec<u8> = messages.iter().flat_map(|message| event(&kind, message.as_bytes())).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            let (read, begun) = read(&chunks);
            let expected: Vec<&[u8]> = messages.iter().map(String::as_bytes).filter(|message| *message != DONE).collect();
            prop_assert_eq!(read, expected);
            prop_assert_eq!(begun, None);
        }
    }
}
