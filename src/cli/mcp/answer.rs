//! What the client gets of the proxy's reply to a message: standard output has no status and no end of an answer, so that what HTTP
//! says by these becomes an error that answers the request.

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{Response, StatusCode, body::Incoming, header};
use serde_json::Value;

use super::{
    console::ClientOutput,
    message::{MessageKind, RpcId, one_line},
};

/// Longest reply, in bytes.
const REPLY_MAX: usize = 64 << 20;
/// How much of a text that is no message is shown.
const SHOWN: usize = 300;
/// What a client is told whose answer never came, or not to its end.
const BROKEN: &str = "the connection was closed before the answer was whole";

/// Writes a reply to the client. `id`: of the request that it answers; without one nothing is expected.
pub(super) async fn write(response: Response<Incoming>, id: Option<&RpcId>, client: &ClientOutput) {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_stream = kind.trim_start().starts_with("text/event-stream");
    if status.is_success() && is_stream {
        return write_events(response.into_body(), id, client).await;
    }
    let body = Limited::new(response.into_body(), REPLY_MAX).collect().await.map(http_body_util::Collected::to_bytes);
    match body {
        Ok(body) if !status.is_success() => refuse(status, &body, id, client).await,
        Ok(body) if body.trim_ascii().is_empty() && id.is_none() => {}
        Ok(body) if body.trim_ascii().is_empty() => fail("the answer is empty", id, client).await,
        Ok(body) if serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok() => {
            client.line(one_line(&body)).await;
        }
        Ok(body) => fail(&format!("the answer is no JSON: {}", shown(&body)), id, client).await,
        Err(_) => fail(BROKEN, id, client).await,
    }
}

/// Tells the client that a message has no answer, and why.
pub(super) async fn fail(why: &str, id: Option<&RpcId>, client: &ClientOutput) {
    if let Some(id) = id {
        client.line(id.error_line(why, None)).await;
    } else {
        tracing::warn!("a message of the client was not passed on: {why}");
    }
}

/// The same where the proxy says so with a status.
async fn refuse(status: StatusCode, body: &Bytes, id: Option<&RpcId>, client: &ClientOutput) {
    let error: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = error.pointer("/error/message").and_then(Value::as_str).map_or_else(|| shown(body), str::to_owned);
    let why = format!("HTTP {status}: {message}");
    match id {
        Some(id) => client.line(id.error_line(&why, Some(status.as_u16()))).await,
        None => fail(&why, None, client).await,
    }
}

/// Writes the messages of a stream as they come.
async fn write_events(mut body: Incoming, id: Option<&RpcId>, client: &ClientOutput) {
    let mut events = EventMessages::default();
    let mut answered = id.is_none();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        for message in events.push(&data) {
            answered |= matches!(MessageKind::read(&message), MessageKind::Answer(answer) if Some(&answer) == id);
            client.line(one_line(&message)).await;
        }
    }
    if !answered {
        fail(BROKEN, id, client).await;
    }
}

/// The beginning of a text.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(SHOWN).collect()
}

/// Takes the messages out of an event stream.
#[derive(Debug, Default)]
struct EventMessages {
    line: Vec<u8>,
    data: Vec<u8>,
}

impl EventMessages {
    /// The messages that are whole with these bytes.
    fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line.is_empty() && !self.data.is_empty() {
                messages.push(std::mem::take(&mut self.data));
            } else if let Some(data) = line.strip_prefix(b"data:") {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_out_of_events() {
        let mut events = EventMessages::default();
        let stream = b": a comment\n\nevent: message\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:{}\n\ndata: cut";
        let whole: Vec<Vec<u8>> = stream.chunks(5).flat_map(|chunk| events.push(chunk)).collect();
        assert_eq!(whole, [&b"{\"a\":\n1}"[..], b"{}"]);
    }
}
