//! What this surface reads of replies and requests, and what says nothing of an answer.

use crate::surface::{
    UnplacedKind,
    account::{PieceOf, ReadAccount, ReadKind, StreamState, elements, inner},
    fields,
    splice::{Node, member},
};

/// Members of a message or delta that are read, or say nothing of the answer. What a model thinks is none.
const MESSAGE: &[&str] = &[
    "annotations",
    "cache_control",
    "channel",
    "citations",
    "content",
    "context",
    "executed_tools",
    "extra_content",
    "id",
    "images",
    "index",
    "model",
    "name",
    "object",
    "prefix",
    "provider_specific_fields",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "reasoning_opaque",
    "reasoning_signature",
    "reasoning_text",
    "role",
    "search_results",
    "sender",
    "signature",
    "status",
    "stop_reason",
    "thinking",
    "thinking_blocks",
    "thought_signature",
    "tool_call_id",
    "tool_calls",
    "type",
];
const CALL: &[&str] = &[
    "cache_control",
    "custom",
    "extra_content",
    "function",
    "id",
    "index",
    "provider_specific_fields",
    "signature",
    "thought_signature",
    "type",
];
const FUNCTION: &[&str] = &["arguments", "description", "input", "name", "thought_signature"];
const TEXT_PART: &[&str] = &["annotations", "cache_control", "citations", "text", "type"];

/// Parts of a reply's content list that are no answer.
const SILENT_PARTS: &[&str] =
    &["document_url", "image", "image_url", "reasoning", "redacted_thinking", "reference", "thinking"];

/// Parts of a request's content list that are no text.
const SILENT_REQUEST_PARTS: &[&str] = &[
    "audio_url",
    "document",
    "document_url",
    "file",
    "file_url",
    "image",
    "image_file",
    "image_url",
    "input_audio",
    "input_file",
    "input_image",
    "reasoning",
    "redacted_thinking",
    "reference",
    "thinking",
    "video",
    "video_url",
];

/// Members of a request that put words or tools where this surface reads none.
const ELSEWHERE: &[&str] = &["contents", "functions", "input", "instructions", "prompt", "system"];

/// A whole reply.
pub(super) fn whole_reply(root: &Node<'_>, account: &mut ReadAccount) {
    account.loose("", root, &["choices"]);
    let Some((path, choices)) = inner("", root, "choices") else { return };
    for ((path, choice), place) in elements(&path, &choices).into_iter().zip(0..) {
        account.loose(&path, &choice, &["message"]);
        if let Some((path, said)) = inner(&path, &choice, "message") {
            message(&path, place, &said, None, account);
        }
    }
}

/// An event of a stream.
pub(super) fn event(root: &Node<'_>, state: &mut StreamState, account: &mut ReadAccount) {
    account.loose("", root, &["choices"]);
    let Some((path, choices)) = inner("", root, "choices") else { return };
    for ((path, choice), place) in elements(&path, &choices).into_iter().zip(0..) {
        account.loose(&path, &choice, &["delta"]);
        let index = choice.get("index").and_then(|index| index.value()).unwrap_or(place);
        let ended = choice.get("finish_reason").is_some_and(|reason| reason.string().is_some());
        *state.answers.entry(index).or_default() |= ended;
        if let Some((path, delta)) = inner(&path, &choice, "delta") {
            message(&path, index, &delta, Some(state), account);
        }
    }
}

/// A request.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    account.elsewhere(root, ELSEWHERE);
    let Some((path, messages)) = inner("", root, "messages") else { return };
    for (path, said) in elements(&path, &messages) {
        account.walk_element(&said, |account| request_message(&path, &said, account));
    }
}

fn message(path: &str, answer: u32, said: &Node<'_>, mut state: Option<&mut StreamState>, account: &mut ReadAccount) {
    if said.is_null() {
        return;
    }
    account.strict(path, said, MESSAGE);
    if let Some((path, content)) = inner(path, said, "content") {
        // Pieces of a stream are one text.
        let of = |path: &str| PieceOf::new(answer, ReadKind::Text, if state.is_some() { "content" } else { path });
        parts(&path, of, &content, account);
    }
    let Some((path, calls)) = listed_calls(path, said, account) else { return };
    for (path, call) in elements(&path, &calls) {
        account.strict(&path, &call, CALL);
        let members = call.members();
        let id = fields::string(&members, "id").filter(|id| !id.is_empty());
        let number = member(&members, "index").filter(|index| !index.is_null()).map(|index| index.raw().to_owned());
        let of = match (&mut state, number.or_else(|| id.clone())) {
            (None, _) => path.clone(),
            (Some(state), Some(key)) => {
                state.calls.insert(answer, key.clone());
                key
            }
            (Some(state), None) => state.calls.get(&answer).cloned().unwrap_or_default(),
        };
        let function = member(&members, "function").and_then(|function| function.get("name")?.string());
        if let (Some(state), Some(id), Some(name)) = (&mut state, &id, function.filter(|name| !name.is_empty())) {
            // Servers that say the whole name with each piece: some clients join them, others do not.
            let repeated = state.names.insert((answer, id.clone()), name.clone().into_owned());
            if repeated.is_some_and(|earlier| earlier == name) {
                account.unplaced(&format!("{path}.function.name"), UnplacedKind::Value, &call);
            }
        }
        if let Some(id) = id {
            account.reads_id(&format!("{path}.id"), answer, &id);
        }
        called(&path, &call, account, |kind| PieceOf::new(answer, kind, of.as_str()));
    }
}

/// The calls of a message, and the path to them. Some servers put one there that is in no list.
fn listed_calls<'a>(path: &str, said: &Node<'a>, account: &mut ReadAccount) -> Option<(String, Node<'a>)> {
    let (path, calls) = inner(path, said, "tool_calls")?;
    if !calls.is_array() {
        account.unless_silent(&path, UnplacedKind::Value, &calls);
    }
    Some((path, calls))
}

/// What a call says besides its id.
fn called(path: &str, call: &Node<'_>, account: &mut ReadAccount, of: impl Fn(ReadKind) -> PieceOf) {
    for key in ["function", "custom"] {
        let Some((path, function)) = inner(path, call, key).filter(|(_, function)| !function.is_null()) else {
            continue;
        };
        account.strict(&path, &function, FUNCTION);
        let texts = [("name", ReadKind::Name), ("arguments", ReadKind::Arguments), ("input", ReadKind::Arguments)];
        for (key, kind) in texts {
            if let Some((path, said)) = inner(&path, &function, key) {
                account.reads(&path, of(kind), &said);
            }
        }
    }
}

fn parts(path: &str, of: impl Fn(&str) -> PieceOf, content: &Node<'_>, account: &mut ReadAccount) {
    if !content.is_array() {
        return account.reads(path, of(path), content);
    }
    for (path, part) in elements(path, content) {
        if part.string().is_some() {
            account.reads(&path, of(&path), &part);
            continue;
        }
        let kind = part.get("type").and_then(|kind| kind.string());
        match kind.as_deref() {
            None | Some("text" | "output_text") => {
                account.strict(&path, &part, TEXT_PART);
                if let Some((path, text)) = inner(&path, &part, "text") {
                    account.reads(&path, of(&path), &text);
                }
            }
            Some(kind) if SILENT_PARTS.contains(&kind) => {}
            Some(_) => account.unless_silent(&path, UnplacedKind::Part, &part),
        }
    }
}

/// A message of a request.
fn request_message(path: &str, said: &Node<'_>, account: &mut ReadAccount) {
    account.strict(path, said, MESSAGE);
    if let Some((path, content)) = inner(path, said, "content") {
        if !content.is_array() && content.string().is_none() {
            account.unless_silent(&path, UnplacedKind::Value, &content);
        }
        for (path, part) in elements(&path, &content) {
            let kind = part.get("type").and_then(|kind| kind.string()).unwrap_or_default();
            if part.get("text").is_some_and(|text| text.string().is_some()) {
                account.strict(&path, &part, TEXT_PART);
            } else if !SILENT_REQUEST_PARTS.contains(&kind.as_ref()) {
                account.unless_silent(&path, UnplacedKind::Part, &part);
            }
        }
    }
    let Some((path, calls)) = listed_calls(path, said, account) else { return };
    for (path, call) in elements(&path, &calls) {
        account.strict(&path, &call, CALL);
        called(&path, &call, account, |kind| PieceOf::new(0, kind, path.as_str()));
    }
}
