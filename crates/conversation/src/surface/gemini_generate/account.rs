//! What this surface reads of replies and requests, and what says nothing of an answer.

use super::{
    partial,
    spelling::{camel, listed, present},
};
use crate::surface::{
    UnplacedKind,
    account::{PieceOf, ReadAccount, ReadKind, elements, joined},
    blocks::Block,
    splice::{Member, Node, member},
};

const CONTENT: &[&str] = &["parts", "role"];
/// Members that any part may have.
const PART: &[&str] = &[
    "mediaProcessing",
    "mediaResolution",
    "partMetadata",
    "speechMetadata",
    "thought",
    "thoughtSignature",
    "videoMetadata",
];
const CALL: &[&str] = &["args", "id", "name", "partialArgs", "willContinue"];
/// A request has its calls whole.
const REQUEST_CALL: &[&str] = &["args", "id", "name", "willContinue"];
const PIECE: &[&str] = &["boolValue", "jsonPath", "nullValue", "numberValue", "stringValue", "willContinue"];
const RESULT: &[&str] = &["id", "name", "parts", "response", "scheduling", "willContinue"];
/// Members of a candidate beside its content that hold words, none of them its answer.
const CANDIDATE: &[&str] = &["content", "finishMessage"];

/// Parts that are no answer and no call that the caller runs: thoughts, media, what the upstream does itself.
const SILENT: &[&str] = &[
    "",
    "audioTranscription",
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "inlineData",
    "thought",
    "toolCall",
    "toolResponse",
];

/// Members of a request that put words or tools where this surface reads none.
const ELSEWHERE: &[&str] = &["functions", "input", "instructions", "messages", "prompt"];

/// A chunk of a reply; a whole reply is one. `is_stream`: candidates are known by their index, not by their place.
pub(super) fn chunk(root: &Node<'_>, is_stream: bool, account: &mut ReadAccount) {
    account.loose("", root, &["candidates"]);
    let Some(candidates) = member(&root.members(), "candidates") else { return };
    for ((path, candidate), place) in elements("candidates", &candidates).into_iter().zip(0..) {
        let members = candidate.members();
        let index = member(&members, "index").and_then(|index| index.value::<u32>()).unwrap_or_default();
        let answer = if is_stream { index } else { place };
        account.loose(&path, &candidate, CANDIDATE);
        let Some(content) = member(&members, "content") else { continue };
        let path = joined(&path, "content");
        strict(&path, &content, &[CONTENT], account);
        let Some(parts) = member(&content.members(), "parts") else { continue };
        for (number, part) in listed(&parts).iter().enumerate() {
            let path = format!("{path}.parts[{number}]");
            // The pieces of a streamed text are one text: all that a candidate says.
            let of = if is_stream { "text".to_owned() } else { path.clone() };
            candidate_part(&path, answer, of, part, account);
        }
    }
}

/// One part of a candidate.
fn candidate_part(path: &str, answer: u32, of: String, part: &Node<'_>, account: &mut ReadAccount) {
    let members = part.members();
    match super::part::read(part) {
        Block::Text(_) => {
            strict(path, part, &[PART, &["text"]], account);
            if let Some(text) = member(&members, "text") {
                account.reads(&joined(path, "text"), PieceOf::new(answer, ReadKind::Text, of), &text);
            }
        }
        Block::Call(call) => {
            strict(path, part, &[PART, &["functionCall"]], account);
            let path = joined(path, "functionCall");
            if let Some(node) = present(&members, "functionCall") {
                strict(&path, &node, &[CALL], account);
            }
            if !call.id.is_empty() {
                account.reads_id(&joined(&path, "id"), answer, &call.id);
            }
            // Each call is one piece: two of one tool are two texts.
            let of = account.place(&path);
            account.reads_text(&path, PieceOf::new(answer, ReadKind::Name, of.as_str()), &call.name);
            let node = present(&members, "functionCall");
            if let Some(args) = node.and_then(|node| node.get("args")).filter(|args| !args.is_object()) {
                account.unless_silent(&joined(&path, "args"), UnplacedKind::Value, &args);
            }
            if node.is_some_and(|node| node.get("args").is_some()) {
                account.reads_text(&path, PieceOf::new(answer, ReadKind::Arguments, of), &call.arguments);
            }
            for (number, piece) in node.iter().flat_map(partial::pieces).enumerate() {
                partial_piece(&format!("{path}.partialArgs[{number}]"), answer, &piece, account);
            }
        }
        Block::Other(kind) if SILENT.contains(&kind.as_str()) => {}
        Block::Other(_) | Block::Result { .. } => account.unless_silent(path, UnplacedKind::Part, part),
    }
}

/// A piece of what a tool is called with: the arguments hold it as JSON writes it.
fn partial_piece(path: &str, answer: u32, piece: &Node<'_>, account: &mut ReadAccount) {
    strict(path, piece, &[PIECE], account);
    match partial::value(piece).filter(|_| partial::steps(piece).is_some()) {
        Some(value) => {
            let json = value.to_string();
            let words = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&json);
            account.reads_text(path, PieceOf::new(answer, ReadKind::Arguments, account.place(path)), words);
        }
        None => account.unless_silent(path, UnplacedKind::Value, piece),
    }
}

/// A request.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    let members = root.members();
    account.elsewhere(root, ELSEWHERE);
    if let Some(system) = present(&members, "systemInstruction") {
        account.walk_element(&system, |account| content("systemInstruction", &system, account));
    }
    for (number, node) in contents(&members).iter().enumerate() {
        account.walk_element(node, |account| content(&format!("contents[{number}]"), node, account));
    }
}

fn contents<'a>(members: &[Member<'a>]) -> Vec<Node<'a>> {
    member(members, "contents").map(|list| listed(&list)).unwrap_or_default()
}

fn content(path: &str, content: &Node<'_>, account: &mut ReadAccount) {
    strict(path, content, &[CONTENT], account);
    let parts = member(&content.members(), "parts");
    for (number, part) in parts.map(|parts| listed(&parts)).unwrap_or_default().iter().enumerate() {
        let path = format!("{path}.parts[{number}]");
        let members = part.members();
        match super::part::read(part) {
            Block::Text(_) => strict(&path, part, &[PART, &["text"]], account),
            Block::Call(_) => {
                strict(&path, part, &[PART, &["functionCall"]], account);
                if let Some(call) = present(&members, "functionCall") {
                    strict(&joined(&path, "functionCall"), &call, &[REQUEST_CALL], account);
                }
            }
            Block::Result { .. } => {
                strict(&path, part, &[PART, &["functionResponse"]], account);
                if let Some(result) = present(&members, "functionResponse") {
                    strict(&joined(&path, "functionResponse"), &result, &[RESULT], account);
                }
            }
            Block::Other(kind) if SILENT.contains(&kind.as_str()) => {}
            Block::Other(_) => account.unless_silent(&path, UnplacedKind::Part, part),
        }
    }
}

/// Walks over an object that says what it says in members of these names, in either spelling.
fn strict(path: &str, node: &Node<'_>, known: &[&[&str]], account: &mut ReadAccount) {
    if !node.is_object() {
        return account.unless_silent(path, UnplacedKind::Value, node);
    }
    for member in node.members() {
        if !known.iter().any(|names| names.contains(&camel(&member.key).as_ref())) {
            account.unless_silent(&joined(path, &member.key), UnplacedKind::Member, &member.value);
        }
    }
}

/// A reply that is no event stream: one chunk, or a list of them, which is read as a stream is.
pub(super) fn whole_reply(root: &Node<'_>, account: &mut ReadAccount) {
    if !root.is_array() {
        return chunk(root, false, account);
    }
    for element in root.elements() {
        chunk(&element, true, account);
    }
}
