//! A whole reply: reading it, and splicing an edited view into it.

use std::borrow::Cow;

use bytes::Bytes;

use super::message;
use crate::{
    surface::{
        Answer, Message, Reply, Role, SurfaceError,
        fields::{self, unreadable},
        scan,
        splice::{Member, Node, Splices, encode_string, member},
    },
    trajectory::Usage,
};

const EXPECTED: &str = "a chat completion";

/// Fields beside the text that describe it token by token; they go when the text changes.
const TOKEN_FIELDS: &[&str] = &["logprobs", "token_ids", "routed_experts"];

/// Reads it in one pass, skipping what no answer is made of. The last of equal keys counts.
pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let mut reply = Reply::default();
    let mut answers = None;
    let text = |value: &[u8]| scan::string(value).unwrap_or_default().into_owned();
    let after = scan::object(body, |key, rest| {
        if *key == *b"choices" && rest.starts_with(b"[") {
            let mut read = Vec::new();
            let after = scan::array(rest, |choice| answer(choice, &mut read));
            answers = Some(read);
            return after;
        }
        let (value, after) = scan::skip(rest)?;
        match key.as_ref() {
            b"id" => reply.id = text(value),
            b"model" => reply.model = text(value),
            b"usage" => reply.usage = counts(value),
            b"choices" => answers = None,
            _ => {}
        }
        Some(after)
    });
    if after.is_none_or(|after| !after.trim_ascii().is_empty()) || std::str::from_utf8(body).is_err() {
        // What is wrong, and where, is a parser's to say.
        let detail = Node::parse(body).err().unwrap_or_else(|| "no object".to_owned());
        return Err(unreadable(EXPECTED, detail));
    }
    let answers = answers.ok_or_else(|| unreadable(EXPECTED, "`choices` is missing or is no list"))?;
    Ok(Reply { answers, ..reply })
}

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let source = fields::source(body, EXPECTED)?;
    let choices = root.get("choices").map(|choices| choices.elements()).unwrap_or_default();
    let mut splices = Splices::default();
    for ((choice, old), new) in choices.iter().zip(&before.answers).zip(&after.answers) {
        if old == new {
            continue;
        }
        let members = choice.members();
        let place = member(&members, "message").filter(Node::is_object);
        let place = place.ok_or_else(|| SurfaceError::NoPlace("a choice has no `message`".to_owned()))?;
        message::edit(source, &place, &old.message, &new.message, &mut splices);
        edit_finish(choice, &members, old, new, &mut splices);
        if old.message != new.message {
            drop_token_fields(&members, &mut splices);
        }
    }
    Ok(splices.apply(body))
}

/// Token counts of a `usage` object.
pub(in crate::surface) fn usage(node: &Node<'_>) -> Option<Usage> {
    let members = node.members();
    let count = |key: &str| member(&members, key).and_then(|count| count.value::<u64>());
    let (input, output) = (count("prompt_tokens"), count("completion_tokens"));
    (input.is_some() || output.is_some())
        .then(|| Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() })
}

/// Token counts without the rest: of a whole reply, or of the frames in the last chunk of a streamed one.
pub(in crate::surface) fn usage_of(body: &[u8], streamed: bool) -> Option<Usage> {
    let read = |json: &[u8]| counts(scan::members(json).filter(|(key, _)| **key == *b"usage").last()?.1);
    if !streamed {
        return read(body);
    }
    let frames = crate::surface::sse::events(body);
    let counted = || frames.iter().rev().filter_map(|frame| read(body.get(frame.data.first()?.clone())?));
    // Some gateways end with a frame of zeros.
    counted().find(|usage| *usage != Usage::default()).or_else(|| counted().next())
}

/// Token counts of a `usage` object that is only looked at.
fn counts(object: &[u8]) -> Option<Usage> {
    let (mut input, mut output) = (None, None);
    for (key, count) in scan::members(object) {
        let count = std::str::from_utf8(count).ok().and_then(|count| whole_number(count).parse().ok());
        match key.as_ref() {
            b"prompt_tokens" => input = count,
            b"completion_tokens" => output = count,
            _ => {}
        }
    }
    (input.is_some() || output.is_some())
        .then(|| Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() })
}

/// A number without the zeros behind its point, which some servers write.
fn whole_number(number: &str) -> &str {
    let is_whole = |(_, rest): &(&str, &str)| rest.bytes().all(|digit| digit == b'0');
    number.split_once('.').filter(is_whole).map_or(number, |(whole, _)| whole)
}

/// Sets token-by-token fields that described the old text to `null`.
pub(super) fn drop_token_fields(members: &[Member<'_>], splices: &mut Splices) {
    drop_fields(members, TOKEN_FIELDS, splices);
}

/// Sets fields to `null`, where they are there.
pub(in crate::surface) fn drop_fields(members: &[Member<'_>], fields: &[&str], splices: &mut Splices) {
    for field in fields {
        if let Some(node) = member(members, field).filter(|node| !node.is_null()) {
            splices.replace(node.span(), "null");
        }
    }
}

/// Writes an edited finish reason.
pub(super) fn edit_finish(
    choice: &Node<'_>,
    members: &[Member<'_>],
    old: &Answer,
    new: &Answer,
    splices: &mut Splices,
) {
    if old.finish_reason != new.finish_reason {
        let reason = new.finish_reason.as_deref().map_or("null".to_owned(), encode_string);
        fields::set(choice, members, "finish_reason", &reason, splices);
    }
}

/// Adds the choice that the text begins with; gives what follows it.
fn answer<'a>(text: &'a [u8], answers: &mut Vec<Answer>) -> Option<&'a [u8]> {
    let mut answer = Answer {
        index: u32::try_from(answers.len()).unwrap_or(u32::MAX),
        message: Message { parts: Vec::new(), origin: Some(0), ..Message::text_of(Role::Assistant, "") },
        finish_reason: None,
    };
    let member = |key: scan::Key<'a>, rest: &'a [u8]| {
        if *key == *b"message" && rest.starts_with(b"{") {
            let (message, after) = message::read_next(rest, 0)?;
            answer.message = message;
            return Some(after);
        }
        let (value, after) = scan::skip(rest)?;
        match key.as_ref() {
            b"index" => answer.index = serde_json::from_slice(value).unwrap_or(answer.index),
            b"finish_reason" => answer.finish_reason = scan::string(value).map(Cow::into_owned),
            _ => {}
        }
        Some(after)
    };
    let after = if text.starts_with(b"{") { scan::object(text, member)? } else { scan::skip(text)?.1 };
    answers.push(answer);
    Some(after)
}
