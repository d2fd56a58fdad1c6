//! What this surface reads of replies and requests, and what says nothing of an answer.

use crate::surface::{
    UnplacedKind,
    account::{PieceOf, ReadAccount, ReadKind, StreamState, elements, inner},
    fields::{self, text},
    splice::{Node, member},
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

/// A whole reply.
pub(super) fn whole(root: &Node<'_>, account: &mut ReadAccount) {
    account.loose("", root, &["content"]);
    let Some((path, content)) = inner("", root, "content") else { return };
    if content.string().is_some() {
        let of = PieceOf::new(0, ReadKind::Text, path.as_str());
        return account.reads(&path, of, &content);
    }
    blocks(&path, &content, account);
}

fn blocks(path: &str, content: &Node<'_>, account: &mut ReadAccount) {
    for (path, block) in elements(path, content) {
        if begun(&path, &path, &block, account) == "tool_use"
            && let Some((path, input)) = inner(&path, &block, "input")
        {
            account.reads_text(&path, PieceOf::new(0, ReadKind::Arguments, path.as_str()), input.raw());
        }
    }
}

/// A block as it stands or begins, without the input of a call; gives its type. `of`: the text that its words are a part of.
fn begun(path: &str, of: &str, block: &Node<'_>, account: &mut ReadAccount) -> String {
    let members = block.members();
    let kind = text(&members, "type");
    match kind.as_str() {
        "text" => {
            account.strict(path, block, TEXT_BLOCK);
            if let Some((path, said)) = inner(path, block, "text") {
                account.reads(&path, PieceOf::new(0, ReadKind::Text, of), &said);
            }
        }
        "tool_use" => {
            account.strict(path, block, CALL_BLOCK);
            if let Some(id) = fields::string(&members, "id").filter(|id| !id.is_empty()) {
                account.reads_id(&format!("{path}.id"), 0, &id);
            }
            if let Some((path, name)) = inner(path, block, "name") {
                account.reads(&path, PieceOf::new(0, ReadKind::Name, of), &name);
            }
        }
        known if SILENT_BLOCKS.contains(&known) => {}
        _ => account.unless_silent(path, UnplacedKind::Part, block),
    }
    kind
}

/// An event of a stream.
pub(super) fn event(root: &Node<'_>, state: &mut StreamState, account: &mut ReadAccount) {
    let members = root.members();
    let index = member(&members, "index").and_then(|index| index.value::<u64>());
    let kind = text(&members, "type");
    let known: &[&str] = match kind.as_str() {
        "message_start" => {
            if let Some((path, message)) = inner("", root, "message") {
                account.loose(&path, &message, &["content"]);
                if let Some((path, content)) = inner(&path, &message, "content") {
                    blocks(&path, &content, account);
                }
            }
            &["message"]
        }
        "content_block_start" => {
            start(root, index, state, account);
            &["content_block"]
        }
        "content_block_delta" => {
            delta(root, index, state, account);
            &["delta"]
        }
        "message_delta" => {
            if let Some((path, delta)) = inner("", root, "delta") {
                account.loose(&path, &delta, &[]);
            }
            &["delta"]
        }
        "content_block_stop" | "message_stop" | "ping" => &[],
        "error" => return,
        kind => return account.unknown_event(kind, root),
    };
    account.loose(&kind, root, known);
}

fn start(root: &Node<'_>, index: Option<u64>, state: &mut StreamState, account: &mut ReadAccount) {
    let Some((path, block)) = inner("", root, "content_block") else { return };
    let kind = begun(&path, &of_block(index), &block, account);
    if let Some((path, input)) = inner(&path, &block, "input").filter(|_| kind == "tool_use")
        && !input.members().is_empty()
    {
        account.reads_text(&path, PieceOf::new(0, ReadKind::Arguments, "the start"), input.raw());
    }
    if index.is_none_or(|index| state.blocks.insert(index, kind).is_some()) {
        account.unplaced(&path, UnplacedKind::Index, &block);
    }
}

fn delta(root: &Node<'_>, index: Option<u64>, state: &StreamState, account: &mut ReadAccount) {
    let Some((path, delta)) = inner("", root, "delta") else { return };
    let Some(block) = index.and_then(|index| state.blocks.get(&index)) else {
        return account.unless_silent(&path, UnplacedKind::Index, &delta);
    };
    let kind = text(&delta.members(), "type");
    let (key, what) = match (kind.as_str(), block.as_str()) {
        ("text_delta", "text") => ("text", ReadKind::Text),
        ("input_json_delta", "tool_use") => ("partial_json", ReadKind::Arguments),
        (kind, _) if SILENT_DELTAS.contains(&kind) => return,
        // What a silent block adds is none of the answer, unless it bears the name of one.
        (_, block) if SILENT_BLOCKS.contains(&block) => return account.loose(&path, &delta, &[]),
        _ => return account.unless_silent(&path, UnplacedKind::Part, &delta),
    };
    account.strict(&path, &delta, &[key, "type"]);
    if let Some((path, said)) = inner(&path, &delta, key) {
        account.reads(&path, PieceOf::new(0, what, of_block(index)), &said);
    }
}

fn of_block(index: Option<u64>) -> String {
    format!("block {}", index.unwrap_or_default())
}

/// A request.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    for key in ELSEWHERE {
        if let Some((path, said)) = inner("", root, key) {
            account.unless_silent(&path, UnplacedKind::Member, &said);
        }
    }
    if let Some((path, system)) = inner("", root, "system") {
        account.within(&system, |account| request_blocks(&path, &system, account));
    }
    let Some((path, messages)) = inner("", root, "messages") else { return };
    for (path, message) in elements(&path, &messages) {
        account.within(&message, |account| {
            account.strict(&path, &message, MESSAGE);
            if let Some((path, content)) = inner(&path, &message, "content") {
                request_blocks(&path, &content, account);
            }
        });
    }
}

/// The content of a message of a request.
fn request_blocks(path: &str, content: &Node<'_>, account: &mut ReadAccount) {
    if !content.is_array() && content.string().is_none() {
        account.unless_silent(path, UnplacedKind::Value, content);
    }
    for (path, block) in elements(path, content) {
        match block.get("type").and_then(|kind| kind.string()).unwrap_or_default().as_ref() {
            "text" => account.strict(&path, &block, TEXT_BLOCK),
            "tool_use" => account.strict(&path, &block, CALL_BLOCK),
            "tool_result" => {
                account.strict(&path, &block, RESULT_BLOCK);
                if let Some((path, content)) = inner(&path, &block, "content") {
                    request_blocks(&path, &content, account);
                }
            }
            known if SILENT_BLOCKS.contains(&known) => {}
            _ => account.unless_silent(&path, UnplacedKind::Part, &block),
        }
    }
}
