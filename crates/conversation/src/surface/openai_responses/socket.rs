//! Messages of a WebSocket (<https://developers.openai.com/api/docs/guides/websocket-mode>): a client asks by a request body with a
//! `type`, and is answered by the events of a stream, one a message. Several responses may be under way, told by `stream_id`.

use std::{borrow::Cow, fmt::Write as _};

use bytes::Bytes;

use super::{OpenaiResponses, Surface};
use crate::surface::{
    scan,
    splice::{Node, encode_string},
};

/// The type of the message that asks for a response.
const CREATE: &str = "response.create";
/// The type of an error.
const ERROR: &str = "error";
/// The type of the message that gives input to a response under way. What tells what became of that begins with it.
const STEER: &str = "response.steer";
/// The type of the first message of a response.
const CREATED: &str = "response.created";

/// A message of a client, as far as its type tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage<'a> {
    /// It asks for a response, on the stream of this id.
    Create {
        /// The id, if it names one.
        stream: Option<Cow<'a, str>>,
    },
    /// It gives input to a response under way. The server may go on from that by itself, with another response.
    Steer {
        /// The response's id.
        response: Cow<'a, str>,
    },
    /// Anything else, by its type.
    Other(Cow<'a, str>),
}

/// A message of a server, as far as its head tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerMessage<'a> {
    /// Its type; empty where it has none.
    pub kind: Cow<'a, str>,
    /// The stream that it belongs to, where it says so.
    pub stream: Option<Cow<'a, str>>,
    /// Whether it is the first of a response.
    pub is_first: bool,
    /// Whether it is the last of a response.
    pub is_last: bool,
    /// Whether it is of no response, although one may be under way.
    pub is_beside: bool,
    /// The status that a request would have been refused with over HTTP.
    pub status: Option<u16>,
}

/// The API whose requests are messages of a WebSocket to this path.
pub fn socket_api(path: &str) -> Option<&'static dyn Surface> {
    OpenaiResponses.matches("POST", path).then_some(&OpenaiResponses as &dyn Surface)
}

/// Whether a request body is such a message: it need not say that it wants a stream.
pub(super) fn is_message(body: &[u8]) -> bool {
    // One look tells of most bodies, without reading their members.
    [CREATE, STEER].iter().any(|kind| memchr::memmem::find(body, kind.as_bytes()).is_some())
        && last_string(body, b"type").is_some_and(|kind| kind == CREATE || kind == STEER)
}

/// The response that one goes on from which begins with this message.
pub fn continued(first: &[u8]) -> Option<String> {
    of_response(first, "previous_response_id")
}

/// The id of the response that begins with this message.
pub fn response_id(first: &[u8]) -> Option<String> {
    of_response(first, "id")
}

fn of_response(first: &[u8], key: &str) -> Option<String> {
    Node::parse(first).ok()?.get("response")?.get(key)?.string().map(Cow::into_owned)
}

/// What stands for the request of a response that a server starts without one.
pub fn unasked(continued: Option<&str>) -> Bytes {
    match continued {
        Some(id) => format!(r#"{{"type":"{CREATE}","previous_response_id":{}}}"#, encode_string(id)).into(),
        None => format!(r#"{{"type":"{CREATE}","input":[]}}"#).into(),
    }
}

/// What a client says. A message with several types asks where any of them does.
pub fn client_message(message: &[u8]) -> ClientMessage<'_> {
    let mut kinds = strings(message, b"type");
    if kinds.any(|kind| kind == CREATE) {
        return ClientMessage::Create { stream: last_string(message, b"stream_id") };
    }
    let kind = last_string(message, b"type").unwrap_or_default();
    match last_string(message, b"previous_response_id").filter(|_| kind == STEER) {
        Some(response) => ClientMessage::Steer { response },
        None => ClientMessage::Other(kind),
    }
}

/// Whether a request only prepares the ones to come (`"generate": false`): its response has no answer.
pub fn is_warm_up(message: &[u8]) -> bool {
    let value = || scan::members(message).filter(|(member, _)| **member == *b"generate").last();
    memchr::memmem::find(message, b"\"generate\"").is_some() && value().is_some_and(|(_, raw)| raw == b"false")
}

/// What a server says.
pub fn server_message(message: &[u8]) -> ServerMessage<'_> {
    let kind = last_string(message, b"type").unwrap_or_default();
    let ends = OpenaiResponses.ends_of_stream();
    let is_last = ends.iter().any(|line| line.strip_prefix(b"event: ").is_some_and(|last| last == kind.as_bytes()));
    let number = |key: &[u8]| {
        let (_, raw) = scan::members(message).filter(|(member, _)| **member == *key).last()?;
        std::str::from_utf8(raw).ok()?.trim().parse::<u16>().ok()
    };
    let status = if kind == ERROR { number(b"status").or_else(|| number(b"status_code")) } else { None };
    ServerMessage {
        stream: last_string(message, b"stream_id"),
        is_first: kind == CREATED,
        is_last,
        is_beside: kind.strip_prefix(STEER).is_some_and(|rest| rest.starts_with('.')),
        status,
        kind,
    }
}

/// The headers that an error has in its message, as HTTP would have it come with.
pub fn error_headers(message: &[u8]) -> Vec<(String, String)> {
    let Ok(root) = Node::parse(message) else { return Vec::new() };
    let named = root.get("headers").or_else(|| root.get("error")?.get("headers"));
    let read = |value: &Node<'_>| match value.string() {
        Some(text) => Some(text.into_owned()),
        None => (!value.is_object() && !value.is_array() && !value.is_null()).then(|| value.raw().to_owned()),
    };
    let members = named.map(|named| named.members()).unwrap_or_default();
    members.into_iter().filter_map(|member| Some((member.key.into_owned(), read(&member.value)?))).collect()
}

/// An error body as a message: with the status and the headers that HTTP would have it come with. What is one already, or is no
/// error, stays.
pub fn error_message(body: &Bytes, status: u16, headers: &[(&str, &str)], stream: Option<&str>) -> Bytes {
    let Ok(root) = Node::parse(body) else { return body.clone() };
    let Some(error) = root.get("error").filter(|_| root.get("type").is_none()) else { return body.clone() };
    let mut message = format!(r#"{{"type":"error","status":{status},"error":{}"#, error.raw());
    let named = |(name, value): &(&str, &str)| format!("{}:{}", encode_string(name), encode_string(value));
    if !headers.is_empty() {
        let named = headers.iter().map(named).collect::<Vec<_>>().join(",");
        // Writing into a text cannot fail.
        let _ = write!(message, r#","headers":{{{named}}}"#);
    }
    if let Some(stream) = stream {
        let _ = write!(message, r#","stream_id":{}"#, encode_string(stream));
    }
    message.push('}');
    message.into()
}

fn strings<'a>(message: &'a [u8], key: &'a [u8]) -> impl Iterator<Item = Cow<'a, str>> {
    scan::members(message).filter(move |(member, _)| **member == *key).filter_map(|(_, raw)| scan::string(raw))
}

fn last_string<'a>(message: &'a [u8], key: &'a [u8]) -> Option<Cow<'a, str>> {
    strings(message, key).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_clients() {
        let create = |stream: Option<&'static str>| ClientMessage::Create { stream: stream.map(Cow::Borrowed) };
        for (message, expected) in [
            (r#"{"type":"response.create","input":"a"}"#, create(None)),
            (
                r#" {"input":[{"type":"x","stream_id":"no"}], "stream_id":"s1", "type":"response.create"}"#,
                create(Some("s1")),
            ),
            (r#"{"type":"response.create","type":"response.steer"}"#, create(None)),
            (r#"{"type":"response\u002ecreate"}"#, create(None)),
            (r#"{"type":"response.steer","input":"a"}"#, ClientMessage::Other("response.steer".into())),
            (
                r#"{"type":"response.steer","previous_response_id":"r1","input":"a"}"#,
                ClientMessage::Steer { response: "r1".into() },
            ),
            (r#"{"input":{"type":"response.create"}}"#, ClientMessage::Other("".into())),
            ("response.create", ClientMessage::Other("".into())),
            ("", ClientMessage::Other("".into())),
        ] {
            assert_eq!(client_message(message.as_bytes()), expected, "{message}");
        }
        assert!(is_message(br#"{"type":"response.create"}"#) && !is_message(br#"{"input":"response.create"}"#));
    }

    #[test]
    fn messages_of_servers() {
        let read = |message: &'static str| server_message(message.as_bytes());
        for kind in ["response.completed", "response.failed", "response.incomplete", "error"] {
            assert!(server_message(format!(r#"{{"type":"{kind}"}}"#).as_bytes()).is_last, "{kind}");
        }
        let delta = read(r#"{"type":"response.output_text.delta","delta":"error","stream_id":"a","status":429}"#);
        assert_eq!((delta.stream.as_deref(), delta.is_last, delta.status), (Some("a"), false, None));
        assert_eq!(read(r#"{"type":"error","status":429,"error":{}}"#).status, Some(429));
        assert_eq!(read(r#"{"type":"error","status_code": 400}"#).status, Some(400));
        assert_eq!(read(r#"{"type":"error","status":"429"}"#).status, None);
        assert!(read(r#"{"type":"response.steer.accepted"}"#).is_beside && !delta.is_beside);
        assert_eq!(read("{"), ServerMessage::default());
    }

    #[test]
    fn responses_that_no_request_asks_for() {
        let first = br#"{"type":"response.created","response":{"id":"r2","previous_response_id":"r\u0031"}}"#;
        assert_eq!((server_message(first).is_first, continued(first).as_deref()), (true, Some("r1")));
        assert_eq!(continued(br#"{"type":"response.created","response":{"previous_response_id":null}}"#), None);
        for named in [Some("r\"1"), None] {
            let read = OpenaiResponses.read_request(&unasked(named)).expect("a request");
            assert_eq!((read.continues.as_deref(), read.stream), (named, true));
        }
    }

    #[test]
    fn errors_in_the_words_of_a_socket() {
        let body = Bytes::from_static(br#"{"error": {"message":"Slow down","code":null}}"#);
        let message = error_message(&body, 429, &[("retry-after", "1")], Some("s\"1"));
        assert_eq!(
            message,
            r#"{"type":"error","status":429,"error":{"message":"Slow down","code":null},"headers":{"retry-after":"1"},"stream_id":"s\"1"}"#
        );
        assert_eq!(server_message(&message).status, Some(429));
        assert_eq!(error_headers(&message), [("retry-after".to_owned(), "1".to_owned())]);
        let nested = br#"{"type":"error","error":{"headers":{"a":15,"b":[1],"c":null,"d":"x"}}}"#;
        assert_eq!(error_headers(nested), [("a".to_owned(), "15".to_owned()), ("d".to_owned(), "x".to_owned())]);
        assert_eq!(error_message(&message, 500, &[], None), message, "it is one already");
        for other in ["{}", "<html>", ""] {
            assert_eq!(error_message(&Bytes::from(other), 500, &[], None), other);
        }
    }
}
