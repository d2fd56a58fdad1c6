//! What the shim reads of a message: what it asks, what it answers, and to which request it belongs. It writes errors only.

use serde_json::{Value, json};

/// The code of an error that the transport made.
const TRANSPORT_ERROR: i32 = -32000;
/// What a client sends that gives a request up.
const CANCELLED: &str = "notifications/cancelled";
/// What a server sends of a request that it works on.
const PROGRESS: &str = "notifications/progress";

/// The id of a request, as its text: `7`, `"seven"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RpcId(String);

impl RpcId {
    fn read(value: Option<&Value>) -> Option<Self> {
        value.filter(|value| value.is_number() || value.is_string()).map(|value| Self(value.to_string()))
    }

    /// An error that answers the request, as a line. `status`: of the reply that stood in place of an answer.
    pub(super) fn error_line(&self, message: &str, status: Option<u16>) -> Vec<u8> {
        let mut error = json!({"code": TRANSPORT_ERROR, "message": message});
        if let (Some(status), Some(error)) = (status, error.as_object_mut()) {
            error.insert("data".to_owned(), json!({"status": status}));
        }
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}\n", self.0).into_bytes()
    }
}

/// What kind of message it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// It wants an answer. With the token by which its progress is reported.
    Request(RpcId, Option<String>),
    /// It answers a request.
    Answer(RpcId),
    /// It gives a request up.
    Cancel(RpcId),
    /// It reports the progress of the request with this token.
    Progress(String),
    /// Anything else: nothing answers it.
    Notice,
}

impl MessageKind {
    /// Reads a line. What is no message is a notice: whoever gets it says what is wrong with it.
    pub(super) fn read(line: &[u8]) -> Self {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        let id = RpcId::read(message.get("id"));
        let at = |pointer: &str| message.pointer(pointer);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(_), Some(id)) => Self::Request(id, at("/params/_meta/progressToken").map(ToString::to_string)),
            (Some(CANCELLED), None) => RpcId::read(at("/params/requestId")).map_or(Self::Notice, Self::Cancel),
            (Some(PROGRESS), None) => {
                at("/params/progressToken").map_or(Self::Notice, |token| Self::Progress(token.to_string()))
            }
            (None, Some(id)) if message.get("result").or_else(|| message.get("error")).is_some() => Self::Answer(id),
            _ => Self::Notice,
        }
    }
}

/// A message as one line: the ends of lines in it stand between its tokens, where blanks do as well.
pub(super) fn one_line(message: &[u8]) -> Vec<u8> {
    let mut line = message.to_vec();
    while line.last() == Some(&b'\n') {
        line.pop();
    }
    for byte in line.iter_mut().filter(|byte| **byte == b'\n') {
        *byte = b' ';
    }
    line.push(b'\n');
    line
}

/// A message as an event of a stream.
pub(super) fn event(message: &[u8]) -> Vec<u8> {
    let mut event = b"event: message\ndata: ".to_vec();
    event.extend(message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    event.extend_from_slice(b"\n\n");
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let id = |text: &str| RpcId(text.to_owned());
        for (line, kind) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, MessageKind::Request(id("7"), None)),
            (
                r#"{"id":"a\u0062","method":"x","params":{"_meta":{"progressToken":"t"}}}"#,
                MessageKind::Request(id("\"ab\""), Some("\"t\"".to_owned())),
            ),
            (r#"{"id":7,"result":{}}"#, MessageKind::Answer(id("7"))),
            (r#"{"id":7,"error":{"code":1}}"#, MessageKind::Answer(id("7"))),
            (r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#, MessageKind::Cancel(id("7"))),
            (
                r#"{"method":"notifications/progress","params":{"progressToken":7}}"#,
                MessageKind::Progress("7".to_owned()),
            ),
            (r#"{"method":"notifications/initialized"}"#, MessageKind::Notice),
            (r#"{"method":"notifications/cancelled"}"#, MessageKind::Notice),
            (r#"{"id":null,"error":{}}"#, MessageKind::Notice),
            (r#"[{"id":7,"result":{}}]"#, MessageKind::Notice),
            ("no JSON", MessageKind::Notice),
            ("", MessageKind::Notice),
        ] {
            assert_eq!(MessageKind::read(line.as_bytes()), kind, "{line}");
        }
    }

    #[test]
    fn an_error_answers_its_request() {
        let line = RpcId("\"a\"".to_owned()).error_line("HTTP 503: \"no\"", Some(503));
        assert!(line.ends_with(b"\n"));
        let error: Value = serde_json::from_slice(&line).expect("JSON");
        let expected = json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32000, "message": "HTTP 503: \"no\"", "data": {"status": 503}}});
        assert_eq!(error, expected);
    }

    #[test]
    fn messages_take_one_line() {
        assert_eq!(one_line(b"{\n \"a\": 1\n}\n"), b"{  \"a\": 1 }\n");
        assert_eq!(one_line(b"{} \r"), b"{} \r\n", "bytes pass");
        assert_eq!(event(b"{}\r"), b"event: message\ndata: {} \n\n");
    }
}
