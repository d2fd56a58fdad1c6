//! Messages to a peer, and what it answers: the parts of both, wherever they stand.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::json;

use crate::surface::{
    Answer, Conversation, Message, Part, Reply, Role, SurfaceError,
    fields::{self, string, text, unreadable},
    pieces::{Piece, joined, piece, spread},
    rpc,
    splice::{Node, Splices, encode_string, member},
    sse,
};

const EXPECTED: &str = "a message of A2A";
const EXPECTED_REPLY: &str = "a reply of A2A";
/// What a task repeats of the messages before.
const ECHO: &str = "history";
/// Deepest nesting in which parts are looked for.
const DEPTH_MAX: usize = 16;

/// The parts of a message or a reply, in order, and where their texts stand.
#[derive(Debug, Default)]
struct FoundParts {
    parts: Vec<Part>,
    /// For each part, the pieces that its text is said in; none where it is no text.
    pieces: Vec<Vec<Piece>>,
    /// What a task repeats of what its agent said.
    echoes: Vec<Piece>,
    /// The part that the next piece of an artifact goes on with.
    artifacts: HashMap<String, usize>,
}

impl FoundParts {
    fn look(&mut self, node: &Node<'_>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let members = node.members();
        if let Some(artifact) = member(&members, "artifact").filter(Node::is_object) {
            return self.take_artifact(&artifact, fields::is_true(&members, "append"));
        }
        for member in members {
            if member.key == ECHO {
                member.value.elements().iter().for_each(|earlier| self.take_echo(earlier));
            } else if member.key == "parts" && member.value.is_array() {
                member.value.elements().iter().for_each(|part| self.take(part));
            } else if member.value.is_object() {
                self.look(&member.value, depth);
            } else {
                member.value.elements().iter().for_each(|element| self.look(element, depth));
            }
        }
    }

    fn take(&mut self, part: &Node<'_>) {
        let piece = text_place(part).and_then(|place| piece(&place));
        self.parts.push(match &piece {
            Some(piece) => Part::Text(piece.text.clone()),
            None => Part::Opaque(opaque_kind(part)),
        });
        self.pieces.push(piece.into_iter().collect());
    }

    /// A piece of an artifact: clients put the pieces of one together, and so does whoever edits it.
    fn take_artifact(&mut self, artifact: &Node<'_>, goes_on: bool) {
        let members = artifact.members();
        let id = text(&members, "artifactId");
        let mut rest = member(&members, "parts").map(|parts| parts.elements()).unwrap_or_default().into_iter();
        if let Some(open) = self.artifacts.get(&id).copied().filter(|_| goes_on)
            && let Some(first) = rest.next()
        {
            self.go_on(open, &first);
        }
        rest.for_each(|part| self.take(&part));
        let is_text = self.pieces.last().is_some_and(|pieces| !pieces.is_empty());
        if let Some(last) = self.parts.len().checked_sub(1).filter(|_| is_text) {
            self.artifacts.insert(id, last);
        }
    }

    /// The next piece of the text of a part.
    fn go_on(&mut self, open: usize, more: &Node<'_>) {
        let Some(more_text) = text_place(more).and_then(|place| piece(&place)) else { return self.take(more) };
        let Some((pieces, Part::Text(text))) = self.pieces.get_mut(open).zip(self.parts.get_mut(open)) else { return };
        text.push_str(&more_text.text);
        pieces.push(more_text);
    }

    /// An earlier message, as far as it is the agent's own.
    fn take_echo(&mut self, message: &Node<'_>) {
        let members = message.members();
        if !matches!(text(&members, "role").as_str(), "agent" | "ROLE_AGENT") {
            return;
        }
        let parts = member(&members, "parts").map(|parts| parts.elements()).unwrap_or_default();
        self.echoes.extend(parts.iter().filter_map(text_place).filter_map(|place| piece(&place)));
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
        for (pieces, new) in self.pieces.iter().zip(edited) {
            let Some(new) = new.filter(|_| !pieces.is_empty()) else { continue };
            spread(pieces, &new, &mut splices);
            let old = joined(pieces);
            for echo in self.echoes.iter().filter(|echo| echo.text == old) {
                splices.replace(echo.span.clone(), encode_string(&new));
            }
        }
        if splices.is_empty() {
            return Err(no_place("an error of the protocol is no answer of the peer"));
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
fn answered(source: &str, streamed: bool) -> Result<FoundParts, SurfaceError> {
    let (mut found, mut is_answered) = (FoundParts::default(), false);
    for message in rpc::messages(source, streamed) {
        let Some(result) = message.get("result") else { continue };
        is_answered = true;
        found.look(&result, DEPTH_MAX);
    }
    if is_answered {
        return Ok(found);
    }
    // Its words stand for an answer, and are never edited: they have no place.
    let refusal =
        rpc::messages(source, streamed).iter().find_map(|message| Some(rpc::refusal(message)?.string()?.into_owned()));
    let said = refusal.ok_or_else(|| unreadable(EXPECTED_REPLY, "no message has a `result` or an `error`"))?;
    found.parts.push(Part::Text(said));
    found.pieces.push(Vec::new());
    Ok(found)
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
