//! What the APIs of tools and peers have in common: messages of JSON-RPC 2.0 (<https://www.jsonrpc.org/specification>), one a body or
//! one an event.

use bytes::Bytes;

use super::{
    ErrorBody, provider_error,
    splice::{Node, Splices, encode_string, member},
    sse,
};
use crate::trajectory::{CallEnding, RefusalKind};

/// The code for an error of the server.
const INTERNAL_ERROR: i32 = -32603;
/// Codes that a server defines for errors of its own (JSON-RPC 2.0, section 5.1).
const SERVER_ERRORS: std::ops::RangeInclusive<i32> = -32099..=-32000;
/// Those of them that say something of the request: no such resource (MCP), a task that cannot be cancelled (A2A), a URL to be opened.
const OF_REQUEST: [i32; 2] = [-32002, -32042];

/// The messages of a reply: one, or those of the events.
pub(super) fn messages(source: &str, streamed: bool) -> Vec<Node<'_>> {
    if !streamed {
        return Node::parse(source.as_bytes()).into_iter().collect();
    }
    sse::objects(source).filter_map(|(_, span)| Node::parse_at(source, span).ok()).collect()
}

/// Whether a message answers a request; servers ask and tell by the way.
pub(super) fn is_answer(message: &Node<'_>) -> bool {
    let members = message.members();
    let is_said = |key: &str| member(&members, key).is_some();
    is_said("id") && !is_said("method") && (is_said("result") || is_said("error"))
}

/// Whether an event of a server's stream asks its client something that is to be answered before the stream goes on.
pub fn asks_client(event: &[u8]) -> bool {
    let is_question = |message: &Node<'_>| {
        let members = message.members();
        member(&members, "id").is_some() && member(&members, "method").is_some()
    };
    std::str::from_utf8(event).is_ok_and(|event| messages(event, true).iter().any(is_question))
}

/// The part of a message that says an error. What a server says by the way is none, whatever its words.
pub(super) fn error_part<'a>(message: &Node<'a>) -> Option<Node<'a>> {
    let members = message.members();
    let is_reply = member(&members, "result").is_none() && member(&members, "method").is_none();
    member(&members, "error").filter(|error| is_reply && error.is_object())
}

/// How a call ended that was answered with an error. The protocol has no statuses: its codes tell whom an error blames, and any but
/// those of the server is about the request: an unknown tool or method, arguments that do not fit, a call that was cancelled.
pub(super) fn error_ending(error: &Node<'_>, status: Option<u16>) -> CallEnding {
    let code = error.get("code").and_then(|code| code.value::<i32>());
    match provider_error::ending(error, status) {
        CallEnding::Failed if status.is_none() && code.is_some_and(|code| !is_of_server(code)) => {
            CallEnding::Refused(RefusalKind::Other)
        }
        ending => ending,
    }
}

fn is_of_server(code: i32) -> bool {
    code == INTERNAL_ERROR || (SERVER_ERRORS.contains(&code) && !OF_REQUEST.contains(&code))
}

/// An error. Its code is the number that the error names, else that of an internal error with the name beside it.
pub(super) fn error_body(error: &ErrorBody<'_>) -> Bytes {
    let number = error.code.and_then(|code| code.parse::<i32>().ok());
    let word = error.code.filter(|_| number.is_none());
    let data = word.map(|code| format!(r#","data":{{"code":{}}}"#, encode_string(code))).unwrap_or_default();
    let (code, message) = (number.unwrap_or(INTERNAL_ERROR), encode_string(error.message));
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":{message}{data}}}}}"#))
}

/// The reply to another request of the same words, as the reply to this one: a reply bears the id of what it answers. As it is where
/// either has no id.
pub fn answering(request: &[u8], reply: &Bytes, streamed: bool) -> Bytes {
    let id = Node::parse(request).ok().and_then(|root| root.get("id").map(|id| id.raw().to_owned()));
    id.map_or_else(|| reply.clone(), |id| with_id(&id, reply, streamed))
}

/// What is to be given in the place of an answer, as the reply to the same request. `streamed`: both are streams.
pub fn answering_as(answer: &[u8], reply: &Bytes, streamed: bool) -> Bytes {
    let answers = messages(std::str::from_utf8(answer).unwrap_or_default(), streamed);
    let id = answers.iter().find(|message| is_answer(message)).and_then(|message| message.get("id"));
    id.map_or_else(|| reply.clone(), |id| with_id(id.raw(), reply, streamed))
}

fn with_id(id: &str, reply: &Bytes, streamed: bool) -> Bytes {
    let Ok(source) = std::str::from_utf8(reply) else { return reply.clone() };
    let mut splices = Splices::default();
    for message in messages(source, streamed) {
        let members = message.members();
        let is_reply = member(&members, "method").is_none();
        if let Some(place) = member(&members, "id").filter(|place| is_reply && place.raw() != id) {
            splices.replace(place.span(), id.to_owned());
        }
    }
    if splices.is_empty() { reply.clone() } else { splices.apply(reply) }
}

/// The words of a message that refuses a request: JSON-RPC 2.0, section 5.1.
pub(super) fn refusal<'a>(message: &Node<'a>) -> Option<Node<'a>> {
    message.get("error")?.get("message").filter(|words| words.string().is_some())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use crate::surface::{SERVERS, door};

    #[test]
    fn an_error_of_the_protocol_is_read_and_never_edited() {
        let whole =
            Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#);
        let stream = Bytes::from(format!("data: {}\n\n", String::from_utf8_lossy(&whole)));
        for surface in SERVERS {
            for (body, streamed) in [(&whole, false), (&stream, true)] {
                let read = door::reading(*surface, body, streamed).expect("a reply");
                assert!(read.unplaced.is_empty(), "{:?}", read.unplaced);
                let before = read.view;
                assert_eq!(before.answers[0].message.text(), "Method not found");
                let mut after = before.clone();
                after.answers[0].message.set_text("All is well");
                assert!(door::write_reply(*surface, body, streamed, &before, &after).is_err());
                assert_eq!(door::write_reply(*surface, body, streamed, &before, &before).as_ref(), Ok(body));
            }
        }
    }
}
