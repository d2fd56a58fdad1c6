//! Messages to a peer, and what it answers: the parts of both, wherever they stand.

use bytes::Bytes;
use serde_json::json;

use crate::surface::{
    Answer, Conversation, Message, Part, Reply, Role, SurfaceError,
    fields::{self, string, text, unreadable},
    rpc,
    splice::{Node, Splices, encode_string, member},
    sse,
};

const EXPECTED: &str = "a message of A2A";
const EXPECTED_REPLY: &str = "a reply of A2A";
/// What a task holds of the messages before.
const ECHO: &str = "history";
/// Deepest nesting in which parts are looked for.
const DEPTH_MAX: usize = 16;

/// The parts of a message or a reply, in order, each with its text's place where it has one.
#[derive(Debug, Default)]
struct FoundParts<'a> {
    parts: Vec<Part>,
    places: Vec<Option<Node<'a>>>,
}

impl<'a> FoundParts<'a> {
    fn look(&mut self, node: &Node<'a>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        for member in node.members().iter().filter(|member| member.key != ECHO) {
            if member.key == "parts" && member.value.is_array() {
                member.value.elements().iter().for_each(|part| self.take(part));
            } else if member.value.is_object() {
                self.look(&member.value, depth);
            } else {
                member.value.elements().iter().for_each(|element| self.look(element, depth));
            }
        }
    }

    fn take(&mut self, part: &Node<'a>) {
        let place = text_place(part);
        self.parts.push(match place.and_then(|place| place.string()) {
            Some(text) => Part::Text(text.into_owned()),
            None => Part::Opaque(opaque_kind(part)),
        });
        self.places.push(place);
    }

    fn write(&self, before: &[Part], after: &[Part]) -> Result<Splices, SurfaceError> {
        let mut splices = Splices::default();
        if before == after {
            return Ok(splices);
        }
        let edited = fields::new_texts(before, after);
        if edited.iter().all(Option::is_none) {
            return Err(no_place("there is no text in it"));
        }
        for (place, text) in self.places.iter().zip(edited) {
            if let (Some(place), Some(text)) = (place, text) {
                splices.replace(place.span(), encode_string(&text));
            }
        }
        Ok(splices)
    }
}

/// Where the text of a part stands.
pub(super) fn text_place<'a>(part: &Node<'a>) -> Option<Node<'a>> {
    part.get("text").filter(|text| text.string().is_some())
}

fn opaque_kind(part: &Node<'_>) -> String {
    let members = part.members();
    let known = ["data", "file", "raw", "url"].iter().find(|key| member(&members, key).is_some());
    string(&members, "kind").unwrap_or_else(|| known.map_or_else(String::new, |key| (*key).to_owned()))
}

pub(super) fn read_request(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    if member(&members, "jsonrpc").is_none() {
        return Err(unreadable(EXPECTED, "`jsonrpc` is missing"));
    }
    let message = if let Some(message) = sent_message(&root) {
        let mut found = FoundParts::default();
        found.look(&message, DEPTH_MAX);
        Message { parts: found.parts, origin: Some(0), ..Message::text_of(Role::User, "") }
    } else {
        let about = member(&members, "params").and_then(|params| string(&params.members(), "id"));
        let about = about.map(|id| format!(" {id}")).unwrap_or_default();
        let part = Part::Opaque(format!("{}{about}", text(&members, "method")));
        Message { parts: vec![part], origin: Some(0), ..Message::text_of(Role::Other, "") }
    };
    Ok(Conversation { messages: vec![message], choices: 1, ..Conversation::default() })
}

/// The message that a request sends to the peer.
pub(super) fn sent_message<'a>(root: &Node<'a>) -> Option<Node<'a>> {
    root.get("params")?.get("message").filter(Node::is_object)
}

pub(super) fn write_request(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let root = Node::parsed_before(fields::source(body, EXPECTED)?);
    let ([old], [new]) = (before.messages.as_slice(), after.messages.as_slice()) else {
        return Err(no_place("one message is sent to a peer at a time"));
    };
    let rest = |message: &Message| Message { parts: Vec::new(), ..message.clone() };
    if rest(old) != rest(new) || before.tools != after.tools || before.sampling != after.sampling {
        return Err(no_place("of a message to a peer, only its texts are edited"));
    }
    let mut found = FoundParts::default();
    if let Some(message) = sent_message(&root) {
        found.look(&message, DEPTH_MAX);
    }
    Ok(found.write(&old.parts, &new.parts)?.apply(body))
}

/// The parts of all results of a reply.
fn answered(source: &str, streamed: bool) -> Result<FoundParts<'_>, SurfaceError> {
    let (mut found, mut is_answered) = (FoundParts::default(), false);
    for message in rpc::messages(source, streamed) {
        let Some(result) = message.get("result") else { continue };
        is_answered = true;
        found.look(&result, DEPTH_MAX);
    }
    if is_answered { Ok(found) } else { Err(unreadable(EXPECTED_REPLY, "no message has a `result`")) }
}

pub(super) fn read_reply(body: &[u8], streamed: bool) -> Result<Reply, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED_REPLY)?);
    let FoundParts { mut parts, .. } = answered(&source, streamed)?;
    if parts.is_empty() {
        parts.push(Part::Opaque("no parts".to_owned()));
    }
    let message = Message { parts, origin: Some(0), ..Message::text_of(Role::Assistant, "") };
    let answer = Answer { index: 0, message, finish_reason: Some(Answer::STOPPED.to_owned()) };
    Ok(Reply { answers: vec![answer], ..Reply::default() })
}

pub(super) fn write_reply(body: &[u8], streamed: bool, before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED_REPLY)?);
    let ([old], [new]) = (before.answers.as_slice(), after.answers.as_slice()) else {
        return Err(no_place("a peer gives one answer"));
    };
    if !new.message.tool_calls.is_empty() {
        return Err(no_place("the answer of a peer calls no tools"));
    }
    Ok(answered(&source, streamed)?.write(&old.message.parts, &new.message.parts)?.apply(body))
}

pub(super) fn compose(reply: &Reply) -> Bytes {
    let texts = reply.answers.iter().flat_map(|answer| answer.message.parts.iter().filter_map(Part::as_text));
    let parts: Vec<_> = texts.map(|text| json!({"text": text})).collect();
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": parts});
    Bytes::from(json!({"jsonrpc": "2.0", "id": null, "result": {"message": message}}).to_string())
}

fn no_place(why: &str) -> SurfaceError {
    SurfaceError::NoPlace(why.to_owned())
}
