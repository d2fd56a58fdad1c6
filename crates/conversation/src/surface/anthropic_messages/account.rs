//! What this surface reads of replies and requests, and what says nothing of an answer.

use super::stream::EVENTS;
use crate::surface::{
    account::{
        PieceOf, ReadAccount, ReadKind, StreamState,
        blocks::{BlockRule, BlockRules},
        elements, inner,
    },
    fields::text,
    splice::Node,
};

const MESSAGE: &[&str] = &["content", "id", "name", "role", "type"];
const TEXT_BLOCK: &[&str] = &["cache_control", "citations", "text", "type"];
const CALL_BLOCK: &[&str] = &["cache_control", "caller", "id", "input", "name", "type"];
const RESULT_BLOCK: &[&str] = &["cache_control", "content", "is_error", "tool_use_id", "type"];

/// Blocks that are no answer and no call that the caller runs: what a model thinks, and what the upstream does itself.
const SILENT_BLOCKS: &[&str] = &[
    "advisor_tool_result",
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "compaction",
    "container_upload",
    "document",
    "fallback",
    "image",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "search_result",
    "server_tool_use",
    "text_editor_code_execution_tool_result",
    "thinking",
    "tool_reference",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
];

/// Deltas that add nothing to an answer.
const SILENT_DELTAS: &[&str] = &["citations_delta", "compaction_delta", "signature_delta", "thinking_delta"];

/// Members of a request that put words or tools where this surface reads none.
const ELSEWHERE: &[&str] = &["contents", "functions", "input", "instructions", "prompt"];

/// What a block holds.
const RULES: &BlockRules = &BlockRules {
    rule: |block, is_reply| match text(&block.members(), "type").as_str() {
        "text" => BlockRule::Text(TEXT_BLOCK),
        "tool_use" => BlockRule::Call(CALL_BLOCK),
        "tool_result" if !is_reply => BlockRule::Result { members: RESULT_BLOCK, words: "content" },
        kind if SILENT_BLOCKS.contains(&kind) => BlockRule::Silent,
        _ => BlockRule::Unknown,
    },
    is_silent: |kind| SILENT_BLOCKS.contains(&kind),
    is_silent_piece: |kind| SILENT_DELTAS.contains(&kind),
    takes_objects: false,
    events: EVENTS,
};

/// A whole reply.
pub(super) fn whole_reply(root: &Node<'_>, account: &mut ReadAccount) {
    account.loose("", root, &["content"]);
    let Some((path, content)) = inner("", root, "content") else { return };
    if content.string().is_some() {
        account.reads(&path, PieceOf::new(0, ReadKind::Text, path.as_str()), &content);
    }
    RULES.reply_list(&path, &content, account);
}

/// An event of a stream.
pub(super) fn event(root: &Node<'_>, state: &mut StreamState, account: &mut ReadAccount) {
    let kind = text(&root.members(), EVENTS.kind);
    if RULES.event(&kind, root, state, account) {
        return;
    }
    let known: &[&str] = match kind.as_str() {
        "message_start" => {
            if let Some((path, message)) = inner("", root, "message") {
                account.loose(&path, &message, &["content"]);
                if let Some((path, content)) = inner(&path, &message, "content") {
                    RULES.reply_list(&path, &content, account);
                }
            }
            &["message"]
        }
        "message_delta" => {
            if let Some((path, delta)) = inner("", root, "delta") {
                account.loose(&path, &delta, &[]);
            }
            &["delta"]
        }
        "message_stop" | "ping" => &[],
        "error" => return,
        kind => return account.unknown_event(kind, root),
    };
    account.loose(&kind, root, known);
}

/// A request.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    account.elsewhere(root, ELSEWHERE);
    if let Some((path, system)) = inner("", root, "system") {
        account.walk_element(&system, |account| RULES.request_list(&path, &system, account));
    }
    let Some((path, messages)) = inner("", root, "messages") else { return };
    for (path, message) in elements(&path, &messages) {
        account.walk_element(&message, |account| {
            account.strict(&path, &message, MESSAGE);
            if let Some((path, content)) = inner(&path, &message, "content") {
                RULES.request_list(&path, &content, account);
            }
        });
    }
}
