//! What this surface reads of replies and requests, and what says nothing of an answer.

use super::item;
use crate::surface::{
    UnplacedKind,
    account::{PieceOf, ReadAccount, ReadKind, elements, inner},
    fields::{self, text},
    splice::{Node, member},
};

/// Members of a response that are walked over apart, or say back what was asked.
const RESPONSE: &[&str] = &["output", "output_text", "text"];
const MESSAGE: &[&str] = &["agent", "content", "id", "name", "phase", "role", "status", "type"];
const CALL: &[&str] =
    &["agent", "arguments", "call_id", "caller", "created_by", "id", "input", "name", "namespace", "status", "type"];
const RESULT: &[&str] = &["agent", "call_id", "caller", "created_by", "id", "name", "output", "status", "type"];
const TEXT_PART: &[&str] = &["annotations", "logprobs", "text", "type"];

/// Items that are no answer and no call that the caller runs: what a model thinks, and what the upstream does itself. What its
/// own agents say to each other is read as utterances.
const SILENT_ITEMS: &[&str] = &[
    "agent_message",
    "code_interpreter_call",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "file_search_call",
    "image_generation_call",
    "item_reference",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "multi_agent_call",
    "multi_agent_call_output",
    "reasoning",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
];

/// Parts of a content list that are no text.
const SILENT_PARTS: &[&str] =
    &["computer_screenshot", "input_audio", "input_file", "input_image", "reasoning_text", "summary_text"];

/// Beginnings of the types of events that add nothing to an answer.
const SILENT_EVENTS: &[&str] = &[
    "error",
    "keepalive",
    "ping",
    "response.code_interpreter_call",
    "response.compaction",
    "response.file_search_call",
    "response.image_generation_call",
    "response.mcp_",
    "response.output_text.annotation",
    "response.reasoning",
    "response.web_search_call",
];

/// Members of a request that put words where this surface reads none.
const ELSEWHERE: &[&str] = &["contents", "functions", "messages", "system"];

/// A whole response. `path`: where it stands.
pub(super) fn whole_reply(path: &str, root: &Node<'_>, account: &mut ReadAccount) {
    account.loose(path, root, RESPONSE);
    for key in ["output_text", "text"] {
        // The settings of the text are an object; some servers put the answer there.
        if let Some((path, said)) = inner(path, root, key).filter(|(_, said)| said.string().is_some()) {
            let of = PieceOf::new(0, ReadKind::Text, path.as_str());
            account.reads(&path, of, &said);
        }
    }
    let Some((path, output)) = inner(path, root, "output") else { return };
    for (path, item) in elements(&path, &output) {
        reply_item(&path, &item, account);
    }
}

/// An event of a stream.
pub(super) fn event(root: &Node<'_>, account: &mut ReadAccount) {
    let members = root.members();
    let kind = text(&members, "type");
    let about = || {
        let key = |key: &str| member(&members, key).map(|node| node.raw()).unwrap_or_default();
        format!("{}/{}/{}", key("output_index"), key("item_id"), key("content_index"))
    };
    let mut reads = |key: &str, what: ReadKind, of: String| {
        if let Some((path, said)) = inner(&kind, root, key) {
            account.reads(&path, PieceOf::new(0, what, of), &said);
        }
    };
    let known: &[&str] = match kind.as_str() {
        "response.created"
        | "response.queued"
        | "response.in_progress"
        | "response.completed"
        | "response.incomplete"
        | "response.failed" => {
            if let Some((path, response)) = inner("", root, "response") {
                whole_reply(&path, &response, account);
            }
            &["response"]
        }
        "response.output_item.added" | "response.output_item.done" => {
            if let Some((path, item)) = inner(&kind, root, "item") {
                reply_item(&path, &item, account);
            }
            &["item"]
        }
        "response.content_part.added" | "response.content_part.done" => {
            if let Some((path, part)) = inner(&kind, root, "part") {
                reply_part(&path, &part, account);
            }
            &["part"]
        }
        "response.output_text.delta" => {
            reads("delta", ReadKind::Text, about());
            &["delta"]
        }
        "response.output_text.done" => {
            reads("text", ReadKind::Text, format!("{} done", about()));
            &["text"]
        }
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            reads("delta", ReadKind::Arguments, about());
            &["delta"]
        }
        "response.function_call_arguments.done" => {
            reads("arguments", ReadKind::Arguments, format!("{} done", about()));
            &["arguments"]
        }
        "response.custom_tool_call_input.done" => {
            reads("input", ReadKind::Arguments, format!("{} done", about()));
            &["input"]
        }
        kind if SILENT_EVENTS.iter().any(|silent| kind.starts_with(silent)) => return,
        kind => return account.unknown_event(kind, root),
    };
    account.loose(&kind, root, known);
}

/// An item of a reply.
fn reply_item(path: &str, node: &Node<'_>, account: &mut ReadAccount) {
    let members = node.members();
    let kind = fields::string(&members, "type");
    match kind.as_deref() {
        None | Some("message") => {
            account.strict(path, node, MESSAGE);
            let Some((path, content)) = inner(path, node, "content") else { return };
            if !content.is_array() {
                let of = PieceOf::new(0, ReadKind::Text, account.place(&path));
                return account.reads(&path, of, &content);
            }
            for (path, part) in elements(&path, &content) {
                reply_part(&path, &part, account);
            }
        }
        Some(kind) if item::is_call(kind) => {
            account.strict(path, node, CALL);
            if let Some(id) = fields::string(&members, "call_id").filter(|id| !id.is_empty()) {
                account.reads_id(&format!("{path}.call_id"), 0, &id);
            }
            for (key, what) in [("name", ReadKind::Name), (item::arguments_key(kind), ReadKind::Arguments)] {
                if let Some((path, said)) = inner(path, node, key) {
                    let of = PieceOf::new(0, what, account.place(&path));
                    account.reads(&path, of, &said);
                }
            }
        }
        Some(kind) if SILENT_ITEMS.contains(&kind) => {}
        Some(_) => account.unless_silent(path, UnplacedKind::Part, node),
    }
}

/// A content part of a reply.
fn reply_part(path: &str, part: &Node<'_>, account: &mut ReadAccount) {
    match part.get("type").and_then(|kind| kind.string()).as_deref() {
        None | Some("output_text" | "text" | "input_text") => {
            account.strict(path, part, TEXT_PART);
            if let Some((path, said)) = inner(path, part, "text") {
                let of = PieceOf::new(0, ReadKind::Text, account.place(&path));
                account.reads(&path, of, &said);
            }
        }
        Some(kind) if SILENT_PARTS.contains(&kind) => {}
        Some(_) => account.unless_silent(path, UnplacedKind::Part, part),
    }
}

/// A request.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    account.elsewhere(root, ELSEWHERE);
    if let Some((path, said)) = inner("", root, "instructions").filter(|(_, said)| said.string().is_none()) {
        account.unless_silent(&path, UnplacedKind::Value, &said);
    }
    let Some((path, input)) = inner("", root, "input") else { return };
    for (path, item) in elements(&path, &input) {
        account.walk_element(&item, |account| request_item(&path, &item, account));
    }
}

/// An item of a request.
fn request_item(path: &str, node: &Node<'_>, account: &mut ReadAccount) {
    let kind = node.get("type").and_then(|kind| kind.string());
    match kind.as_deref() {
        None | Some("message") => {
            account.strict(path, node, MESSAGE);
            request_parts(path, node, "content", account);
        }
        Some(kind) if item::is_call(kind) => account.strict(path, node, CALL),
        Some("function_call_output" | "custom_tool_call_output") => {
            account.strict(path, node, RESULT);
            request_parts(path, node, "output", account);
        }
        Some(kind) if SILENT_ITEMS.contains(&kind) => {}
        Some(_) => account.unless_silent(path, UnplacedKind::Part, node),
    }
}

fn request_parts(path: &str, node: &Node<'_>, key: &str, account: &mut ReadAccount) {
    let Some((path, content)) = inner(path, node, key) else { return };
    if !content.is_array() && content.string().is_none() {
        account.unless_silent(&path, UnplacedKind::Value, &content);
    }
    for (path, part) in elements(&path, &content) {
        let kind = part.get("type").and_then(|kind| kind.string()).unwrap_or_default();
        if part.get("text").is_some_and(|text| text.string().is_some()) {
            account.strict(&path, &part, TEXT_PART);
        } else if !SILENT_PARTS.contains(&kind.as_ref()) {
            account.unless_silent(&path, UnplacedKind::Part, &part);
        }
    }
}
