//! What the tables of this room's tests are written in: every surface's replies, whole and streamed.

use bytes::Bytes;

use super::{Answered, Fault};
use crate::surface::{self, Answer, Message, Part, Reply, Role, Surface, ToolCall, door};

/// A reply of this text and this tool call.
fn reply(text: Option<&str>, call: Option<(&str, &str)>) -> Reply {
    let tool_calls: Vec<_> = call
        .iter()
        .map(|(name, arguments)| ToolCall {
            id: "call_1".to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            origin: None,
        })
        .collect();
    let finish = if tool_calls.is_empty() { Answer::STOPPED } else { Answer::CALLS };
    let parts = text.map(|text| Part::Text(text.to_owned())).into_iter().collect();
    let message = Message { parts, tool_calls, ..Message::text_of(Role::Assistant, "") };
    let answers = vec![Answer { index: 0, message, finish_reason: Some(finish.to_owned()) }];
    Reply { id: "chatcmpl-1".to_owned(), model: "m-1".to_owned(), answers, ..Reply::default() }
}

/// A surface, whether streamed, the reply before a fault, and after it.
type Reshaped = (&'static dyn Surface, bool, Bytes, Result<Bytes, String>);

/// What a fault makes of a reply on every surface that says words, whole (false) and streamed (true).
pub(super) fn reshaped(fault: &dyn Fault, text: Option<&str>, call: Option<(&str, &str)>) -> Vec<Reshaped> {
    let reply = reply(text, call);
    let earlier = [("solver".to_owned(), "An earlier answer.".to_owned())];
    let mut seen = Vec::new();
    for surface in surface::ALL.iter().copied().filter(|surface| surface.name() != "openai_embeddings") {
        if call.is_some() && surface.name() == "openai_completions" {
            continue;
        }
        for streamed in [false, true] {
            let body = if streamed {
                surface.compose_stream(&reply, 1, false).concat().into()
            } else {
                surface.compose(&reply, 1)
            };
            let answered = Answered { body: &body, streamed, surface, agent: "solver", earlier: &earlier };
            let changed = fault.reshape(&answered, 7);
            assert!(changed.as_ref() != Ok(&body), "{fault:?} on {surface:?} changes something or says why not");
            seen.push((surface, streamed, body, changed));
        }
    }
    seen
}

/// The text and tool calls that a reply says.
pub(super) fn reply_content(
    surface: &dyn Surface,
    streamed: bool,
    body: &[u8],
) -> (String, Vec<(String, String)>, Option<String>) {
    let read = door::reply(surface, body, streamed);
    let answer = read.unwrap_or_else(|error| panic!("{surface:?}: {error}")).answers.remove(0);
    let calls = answer.message.tool_calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
    (answer.message.text(), calls, answer.finish_reason)
}
