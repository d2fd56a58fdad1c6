//! Messages of a WebSocket: what a client asks by one, what a server tells by one, and an error that is said as one.

use aegis::surface::socket::{ClientMessage, client_message, error_headers, error_message, server_message};
use bytes::Bytes;
use serde_json::Value;

use super::targets::sum;
use crate::socket_peer::{create, events};

/// Messages of both sides, and bodies of errors.
pub fn examples() -> Vec<Vec<u8>> {
    let asking =
        [create("What is 7 + 5?", ""), create("And?", ",\"stream_id\":\"a\",\"previous_response_id\":\"resp_1\"")];
    let others = [
        r#"{"type":"response.steer","previous_response_id":"resp_1","input":"Hurry"}"#,
        r#"{"type":"error","status":429,"error":{"message":"Slow down"},"headers":{"retry-after":"3"}}"#,
        r#"{"type":"error","status_code":400,"error":{"headers":{"a":1}},"stream_id":"a"}"#,
        r#"{"error":{"message":"Slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
        r#"{"type":"response.create","type":"error","type":7}"#,
    ];
    let texts = asking.into_iter().chain(events("resp_1", "It is 12.", Some("a")));
    texts.chain(others.map(str::to_owned)).map(String::into_bytes).collect()
}

/// A message that any reader takes for one that asks is taken for one here, too; an error stays JSON, and says what it said.
pub fn check(input: &[u8]) -> u64 {
    let client = client_message(input);
    let server = server_message(input);
    let read: Option<Value> = serde_json::from_slice(input).ok();
    let kind = read.as_ref().and_then(|read| read.get("type")).and_then(Value::as_str);
    if kind == Some("response.create") {
        assert!(matches!(client, ClientMessage::Create { .. }), "{client:?}");
    }
    assert!(!server.is_last || !server.is_beside, "{server:?}");
    let said = error_message(&Bytes::copy_from_slice(input), 429, &[("retry-after", "3\"")], Some("a\n"));
    if let Some(read) = read.filter(|_| said != input) {
        let again: Value = serde_json::from_slice(&said).expect("JSON");
        assert_eq!(again["error"], read["error"]);
        assert_eq!((&again["type"], &again["stream_id"]), (&Value::from("error"), &Value::from("a\n")));
        let message = server_message(&said);
        assert_eq!((message.status, message.is_last), (Some(429), true));
        assert_eq!(error_headers(&said), [("retry-after".to_owned(), "3\"".to_owned())]);
    }
    sum(&(
        matches!(client, ClientMessage::Create { .. }),
        (server.is_last, server.is_beside, server.status.is_some(), server.stream.is_some()),
        error_headers(input).len().min(3),
        said == input,
    ))
}
