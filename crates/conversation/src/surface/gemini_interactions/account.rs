//! What this surface reads of replies and requests, and what says nothing of an answer.

use super::{
    request::InteractionInput,
    step::{self, StepKind},
};
use crate::surface::{
    UnplacedKind,
    account::{PieceOf, ReadAccount, ReadKind, StreamState, elements, inner, joined},
    fields::text,
    splice::{Node, member},
};

const MESSAGE: &[&str] = &["content", "error", "id", "role", "status", "type"];
const TEXT: &[&str] = &["annotations", "text", "type"];
const CALL: &[&str] = &["arguments", "id", "name", "signature", "status", "type"];
const RESULT: &[&str] = &["call_id", "is_error", "name", "result", "signature", "type"];
/// Members of an interaction that say back what was asked.
const ECHOES: &[&str] = &["input", "steps", "outputs", "output_text"];

/// Steps and contents that are no answer and no call that the caller runs: thoughts, media, what the upstream does itself. The
/// beginnings of their types.
const SILENT: &[&str] = &[
    "audio",
    "code_execution_",
    "document",
    "file",
    "function_result",
    "google_maps_",
    "google_search_",
    "image",
    "mcp_server_tool_",
    "processing_",
    "retrieval_",
    "text_annotation_delta",
    "thought",
    "url_context_",
    "user_input",
    "video",
];

/// Members of a request that put words or tools where this surface reads none.
const ELSEWHERE: &[&str] = &["contents", "instructions", "messages", "prompt", "systemInstruction"];

fn is_silent(kind: &str) -> bool {
    SILENT.iter().any(|start| kind.starts_with(start))
}

/// A whole reply, or the interaction that ends a stream. `base`: the path to it.
pub(super) fn whole(base: &str, root: &Node<'_>, account: &mut ReadAccount) {
    account.loose(base, root, ECHOES);
    if let Some((path, text)) = inner(base, root, "output_text") {
        account.reads(&path, PieceOf::new(0, ReadKind::Text, path.as_str()), &text);
    }
    for key in ["steps", "outputs"] {
        let Some((path, list)) = inner(base, root, key) else { continue };
        for (path, node) in elements(&path, &list) {
            reply_step(&path, &node, account);
        }
    }
}

fn reply_step(path: &str, node: &Node<'_>, account: &mut ReadAccount) {
    let kind = text(&node.members(), "type");
    match step::kind(node) {
        StepKind::User if step::is_content(node) => content(path, node, account),
        StepKind::Model => {
            account.strict(path, node, MESSAGE);
            let Some((path, list)) = inner(path, node, "content") else { return };
            if !list.is_array() {
                return account.unless_silent(&path, UnplacedKind::Value, &list);
            }
            for (path, node) in elements(&path, &list) {
                content(&path, &node, account);
            }
        }
        StepKind::Call => {
            call(path, path, node, account);
            if let Some((path, arguments)) = inner(path, node, "arguments") {
                account.reads(&path, PieceOf::new(0, ReadKind::Arguments, path.as_str()), &arguments);
            }
        }
        _ if is_silent(&kind) => {}
        _ => account.unless_silent(path, UnplacedKind::Part, node),
    }
}

fn content(path: &str, node: &Node<'_>, account: &mut ReadAccount) {
    let kind = text(&node.members(), "type");
    if kind == "text" {
        account.strict(path, node, TEXT);
        if let Some((path, said)) = inner(path, node, "text") {
            account.reads(&path, PieceOf::new(0, ReadKind::Text, path.as_str()), &said);
        }
    } else if !is_silent(&kind) {
        account.unless_silent(path, UnplacedKind::Part, node);
    }
}

/// What is called, its arguments aside. `of`: the text that its name is.
fn call(path: &str, of: &str, node: &Node<'_>, account: &mut ReadAccount) {
    account.strict(path, node, CALL);
    let id = text(&node.members(), "id");
    if !id.is_empty() {
        account.reads_id(&joined(path, "id"), 0, &id);
    }
    if let Some((path, name)) = inner(path, node, "name") {
        account.reads(&path, PieceOf::new(0, ReadKind::Name, of), &name);
    }
}

/// An event of a stream.
pub(super) fn event(root: &Node<'_>, state: &mut StreamState, account: &mut ReadAccount) {
    let members = root.members();
    let index = member(&members, "index").and_then(|index| index.value::<u64>());
    let kind = text(&members, "event_type");
    let known: &[&str] = match kind.as_str() {
        "interaction.created" | "interaction.completed" => {
            if let Some((path, interaction)) = inner("", root, "interaction") {
                whole(&path, &interaction, account);
            }
            &["interaction"]
        }
        "step.start" => {
            start(root, index, state, account);
            &["step"]
        }
        "step.delta" => {
            delta(root, index, state, account);
            &["delta"]
        }
        "interaction.status_update" | "step.stop" | "error" => &[],
        kind => return account.unknown_event(kind, root),
    };
    account.loose(&kind, root, known);
}

fn start(root: &Node<'_>, index: Option<u64>, state: &mut StreamState, account: &mut ReadAccount) {
    let Some((path, node)) = inner("", root, "step") else { return };
    match step::kind(&node) {
        StepKind::Call => {
            call(&path, &of_step(index), &node, account);
            if let Some((path, arguments)) =
                inner(&path, &node, "arguments").filter(|(_, said)| !said.members().is_empty())
            {
                account.reads(&path, PieceOf::new(0, ReadKind::Arguments, of_step(index)), &arguments);
            }
        }
        _ => reply_step(&path, &node, account),
    }
    let kind = text(&node.members(), "type");
    if index.is_none_or(|index| state.blocks.insert(index, kind).is_some()) {
        account.unplaced(&path, UnplacedKind::Index, &node);
    }
}

fn delta(root: &Node<'_>, index: Option<u64>, state: &StreamState, account: &mut ReadAccount) {
    let Some((path, delta)) = inner("", root, "delta") else { return };
    let Some(step) = index.and_then(|index| state.blocks.get(&index)) else {
        return account.unless_silent(&path, UnplacedKind::Index, &delta);
    };
    let kind = text(&delta.members(), "type");
    let (key, what) = match (kind.as_str(), step.as_str()) {
        ("text", "model_output") => ("text", ReadKind::Text),
        ("arguments_delta", "function_call") => ("arguments", ReadKind::Arguments),
        (kind, _) if is_silent(kind) => return,
        // What a silent step adds is none of the answer, unless it bears the name of one.
        (_, step) if is_silent(step) => return account.loose(&path, &delta, &[]),
        _ => return account.unless_silent(&path, UnplacedKind::Part, &delta),
    };
    account.strict(&path, &delta, &[key, "type", "annotations"]);
    if let Some((path, said)) = inner(&path, &delta, key) {
        account.reads(&path, PieceOf::new(0, what, of_step(index)), &said);
    }
}

fn of_step(index: Option<u64>) -> String {
    format!("step {}", index.unwrap_or_default())
}

/// A request.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    for key in ELSEWHERE {
        if let Some((path, said)) = inner("", root, key) {
            account.unless_silent(&path, UnplacedKind::Member, &said);
        }
    }
    if let Some((path, prompt)) = inner("", root, "system_instruction").filter(|(_, prompt)| prompt.string().is_none())
    {
        account.unless_silent(&path, UnplacedKind::Value, &prompt);
    }
    let Some((path, input)) = inner("", root, "input") else { return };
    match InteractionInput::read(&input) {
        Some(InteractionInput::Contents(nodes)) => {
            for (number, node) in nodes.iter().enumerate() {
                account.within(node, |account| request_content(&format!("{path}[{number}]"), node, account));
            }
        }
        Some(InteractionInput::Steps(nodes)) => {
            for (number, node) in nodes.iter().enumerate() {
                account.within(node, |account| request_step(&format!("{path}[{number}]"), node, account));
            }
        }
        Some(InteractionInput::Text(_)) | None => {}
    }
}

fn request_step(path: &str, node: &Node<'_>, account: &mut ReadAccount) {
    match step::kind(node) {
        StepKind::User if step::is_content(node) => request_content(path, node, account),
        StepKind::User | StepKind::Model => {
            account.strict(path, node, MESSAGE);
            let Some((path, content)) = inner(path, node, "content") else { return };
            if content.is_object() {
                return request_content(&path, &content, account);
            }
            for (path, node) in elements(&path, &content) {
                request_content(&path, &node, account);
            }
        }
        StepKind::Call => account.strict(path, node, CALL),
        StepKind::Result => {
            account.strict(path, node, RESULT);
            let Some((path, result)) = inner(path, node, "result") else { return };
            for (path, node) in elements(&path, &result) {
                request_content(&path, &node, account);
            }
        }
        StepKind::Other if is_silent(&text(&node.members(), "type")) => {}
        StepKind::Other => account.unless_silent(path, UnplacedKind::Part, node),
    }
}

fn request_content(path: &str, node: &Node<'_>, account: &mut ReadAccount) {
    match text(&node.members(), "type").as_str() {
        "text" => account.strict(path, node, TEXT),
        known if is_silent(known) => {}
        _ => account.unless_silent(path, UnplacedKind::Part, node),
    }
}
