//! What this surface reads of replies and requests, and what says nothing of an answer.

use super::{
    request::InteractionInput,
    step::{self, StepKind},
    stream::EVENTS,
};
use crate::surface::{
    UnplacedKind,
    account::{
        PieceOf, ReadAccount, ReadKind, StreamState,
        blocks::{BlockRule, BlockRules},
        inner,
    },
    fields::text,
    splice::Node,
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

/// What a step or a content holds.
const RULES: &BlockRules = &BlockRules {
    rule: |node, is_reply| match step::kind(node) {
        StepKind::User if step::is_content(node) && text(&node.members(), "type") == "text" => BlockRule::Text(TEXT),
        StepKind::User if !is_reply && !step::is_content(node) => BlockRule::List(MESSAGE),
        StepKind::Model => BlockRule::List(MESSAGE),
        StepKind::Call => BlockRule::Call(CALL),
        StepKind::Result if !is_reply => BlockRule::Result { members: RESULT, words: "result" },
        _ if is_silent(&text(&node.members(), "type")) => BlockRule::Silent,
        _ => BlockRule::Unknown,
    },
    is_silent,
    is_silent_piece: is_silent,
    takes_objects: true,
    events: EVENTS,
};

/// A whole reply, or the interaction that ends a stream. `base`: the path to it.
pub(super) fn whole_reply(base: &str, root: &Node<'_>, account: &mut ReadAccount) {
    account.loose(base, root, ECHOES);
    if let Some((path, text)) = inner(base, root, "output_text") {
        account.reads(&path, PieceOf::new(0, ReadKind::Text, path.as_str()), &text);
    }
    for key in ["steps", "outputs"] {
        if let Some((path, list)) = inner(base, root, key) {
            RULES.reply_list(&path, &list, account);
        }
    }
}

/// An event of a stream.
pub(super) fn event(root: &Node<'_>, state: &mut StreamState, account: &mut ReadAccount) {
    let kind = text(&root.members(), EVENTS.kind);
    if RULES.event(&kind, root, state, account) {
        return;
    }
    let known: &[&str] = match kind.as_str() {
        "interaction.created" | "interaction.completed" => {
            if let Some((path, interaction)) = inner("", root, "interaction") {
                whole_reply(&path, &interaction, account);
            }
            &["interaction"]
        }
        "interaction.status_update" | "error" => &[],
        kind => return account.unknown_event(kind, root),
    };
    account.loose(&kind, root, known);
}

/// A request.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    account.elsewhere(root, ELSEWHERE);
    if let Some((path, prompt)) = inner("", root, "system_instruction").filter(|(_, prompt)| prompt.string().is_none())
    {
        account.unless_silent(&path, UnplacedKind::Value, &prompt);
    }
    let Some((path, input)) = inner("", root, "input") else { return };
    if let Some(InteractionInput::Contents(nodes) | InteractionInput::Steps(nodes)) = InteractionInput::read(&input) {
        for (number, node) in nodes.iter().enumerate() {
            account.walk_element(node, |account| RULES.request(&format!("{path}[{number}]"), node, account));
        }
    }
}
