//! A whole reply: reading it, and splicing an edited view into it.

use bytes::Bytes;

use super::message;
use crate::{
    surface::{
        Answer, Message, Reply, Role, SurfaceError,
        fields::{self, text, unreadable},
        scan,
        splice::{Member, Node, Splices, encode_string, member},
    },
    trajectory::Usage,
};

const EXPECTED: &str = "a chat completion";

/// Fields beside the text that describe it token by token; they go when the text changes.
const TOKEN_FIELDS: &[&str] = &["logprobs", "token_ids", "routed_experts"];

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let choices = member(&members, "choices").filter(Node::is_array);
    let choices = choices.ok_or_else(|| unreadable(EXPECTED, "`choices` is missing or is no list"))?;
    Ok(Reply {
        id: text(&members, "id"),
        model: text(&members, "model"),
        answers: choices.elements().iter().enumerate().map(|(position, choice)| answer(position, choice)).collect(),
        usage: member(&members, "usage").and_then(|node| usage(&node)),
        ..Reply::default()
    })
}

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let source = std::str::from_utf8(body).map_err(|error| unreadable(EXPECTED, error.to_string()))?;
    let choices = root.get("choices").map(|choices| choices.elements()).unwrap_or_default();
    let mut splices = Splices::default();
    for ((choice, old), new) in choices.iter().zip(&before.answers).zip(&after.answers) {
        if old == new {
            continue;
        }
        let members = choice.members();
        let place =
            member(&members, "message").ok_or_else(|| SurfaceError::NoPlace("a choice has no `message`".to_owned()))?;
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
    let read = |json: &[u8]| {
        let (_, counts) = scan::members(json).filter(|(key, _)| key == "usage").last()?;
        let (mut input, mut output) = (None, None);
        for (key, count) in scan::members(counts) {
            let count = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok());
            match key.as_ref() {
                "prompt_tokens" => input = count,
                "completion_tokens" => output = count,
                _ => {}
            }
        }
        (input.is_some() || output.is_some())
            .then(|| Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() })
    };
    if !streamed {
        return read(body);
    }
    let frames = crate::surface::sse::events(body);
    frames.iter().rev().find_map(|frame| read(body.get(frame.data.first()?.clone())?))
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

fn answer(position: usize, choice: &Node<'_>) -> Answer {
    let members = choice.members();
    let index = member(&members, "index").and_then(|index| index.value());
    let silent = || Message { parts: Vec::new(), origin: Some(0), ..Message::text_of(Role::Assistant, "") };
    Answer {
        index: index.unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX)),
        message: member(&members, "message").map_or_else(silent, |node| message::read(&node, 0)),
        finish_reason: member(&members, "finish_reason").and_then(|v| v.string()).map(std::borrow::Cow::into_owned),
    }
}
