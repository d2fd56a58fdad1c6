//! What this surface reads of messages, and what says nothing of an answer.

use crate::surface::{
    account::{DEPTH_MAX, PieceOf, ReadAccount, ReadKind, elements},
    rpc,
    splice::Node,
};

use super::message::text_place;

const MESSAGE: &[&str] = &["error", "id", "jsonrpc", "method", "params", "result"];

/// A message of a client.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    account.strict("", root, MESSAGE);
}

/// A message of a peer.
pub(super) fn message(root: &Node<'_>, account: &mut ReadAccount) {
    account.strict("", root, MESSAGE);
    if let Some(result) = root.get("result") {
        look("result", &result, DEPTH_MAX, account);
    } else if let Some(said) = rpc::refusal(root) {
        account.reads("error.message", PieceOf::new(0, ReadKind::Text, "error.message".to_owned()), &said);
    }
}

/// Every text of a part is read; what a task repeats of earlier messages is none of the answer.
fn look(path: &str, node: &Node<'_>, depth: usize, account: &mut ReadAccount) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for member in node.members().iter().filter(|member| member.key != "history") {
        let path = format!("{path}.{}", member.key);
        if member.key == "parts" {
            for (path, part) in elements(&path, &member.value) {
                if let Some(text) = text_place(&part) {
                    let place = account.place(&path);
                    account.reads(&path, PieceOf::new(0, ReadKind::Text, place), &text);
                }
            }
        } else if member.value.is_object() {
            look(&path, &member.value, depth, account);
        } else {
            for (path, element) in elements(&path, &member.value) {
                look(&path, &element, depth, account);
            }
        }
    }
}
