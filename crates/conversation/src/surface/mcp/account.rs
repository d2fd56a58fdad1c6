//! What this surface reads of messages, and what says nothing of a result.

use crate::surface::{
    UnplacedKind,
    account::{PieceOf, ReadAccount, ReadKind, elements, inner},
    rpc,
    splice::Node,
};

use super::{reply::text_place, request::CALL};

const MESSAGE: &[&str] = &["error", "id", "jsonrpc", "method", "params", "result"];
/// Members of a call's parameters that are read, or are not for the tool.
const PARAMS: &[&str] = &["_meta", "arguments", "inputResponses", "name", "requestState", "task"];
/// Contents that are no text.
const SILENT: &[&str] = &["audio", "image", "resource", "resource_link"];
/// Members of results that hold contents, each a list.
const LISTS: &[&str] = &["content", "contents"];

/// A message of a client.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    account.strict("", root, MESSAGE);
    if root.get("method").and_then(|method| method.string()).as_deref() != Some(CALL) {
        return;
    }
    if let Some((path, params)) = inner("", root, "params") {
        account.strict(&path, &params, PARAMS);
    }
}

/// A message of a server.
pub(super) fn message(root: &Node<'_>, account: &mut ReadAccount) {
    account.strict("", root, MESSAGE);
    let Some((path, result)) = inner("", root, "result") else {
        if let Some(said) = rpc::refusal(root) {
            account.reads("error.message", PieceOf::new(0, ReadKind::Text, "error.message".to_owned()), &said);
        }
        return;
    };
    for list in LISTS {
        let Some((path, contents)) = inner(&path, &result, list) else { continue };
        for (path, content) in elements(&path, &contents) {
            let kind = content.get("type").and_then(|kind| kind.string()).unwrap_or_default();
            match text_place(&content) {
                Some(text) => account.reads(&path, PieceOf::new(0, ReadKind::Text, path.clone()), &text),
                None if SILENT.contains(&kind.as_ref()) || content.get("blob").is_some() => {}
                None => account.unless_silent(&path, UnplacedKind::Value, &content),
            }
        }
    }
}
