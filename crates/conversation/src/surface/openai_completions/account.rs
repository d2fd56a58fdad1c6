//! What this surface reads of replies and requests, and what says nothing of an answer.

use crate::surface::{
    UnplacedKind,
    account::{PieceOf, ReadAccount, ReadKind, StreamState, elements, inner},
    splice::Node,
};

/// Members of a request that put words where this surface reads none.
const ELSEWHERE: &[&str] = &["input", "instructions", "messages", "suffix", "system"];

/// A whole reply.
pub(super) fn whole_reply(root: &Node<'_>, account: &mut ReadAccount) {
    choices(root, None, account);
}

/// An event of a stream.
pub(super) fn event(root: &Node<'_>, state: &mut StreamState, account: &mut ReadAccount) {
    choices(root, Some(state), account);
}

fn choices(root: &Node<'_>, mut state: Option<&mut StreamState>, account: &mut ReadAccount) {
    account.loose("", root, &["choices"]);
    let Some((path, choices)) = inner("", root, "choices") else { return };
    for ((path, choice), place) in elements(&path, &choices).into_iter().zip(0..) {
        account.loose(&path, &choice, &["text"]);
        let index = choice.get("index").and_then(|index| index.value()).unwrap_or(place);
        if let Some(state) = &mut state {
            let ended = choice.get("finish_reason").is_some_and(|reason| reason.string().is_some());
            *state.answers.entry(index).or_default() |= ended;
        }
        if let Some((path, text)) = inner(&path, &choice, "text") {
            account.reads(&path, PieceOf::new(index, ReadKind::Text, "text"), &text);
        }
    }
}

/// A request.
pub(super) fn request(root: &Node<'_>, account: &mut ReadAccount) {
    account.elsewhere(root, ELSEWHERE);
    let Some((path, prompt)) = inner("", root, "prompt") else { return };
    if let Some((path, numbers)) = elements(&path, &prompt).into_iter().find(|(_, part)| part.string().is_none()) {
        account.unplaced(&path, UnplacedKind::Value, &numbers);
    }
}
