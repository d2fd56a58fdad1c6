//! A request that named no run: where it was placed, and what it begins with.

use twox_hash::XxHash3_64;

use super::{
    RunSource,
    fingerprint::{Mark, first_sentences, first_user, join},
    words::Opening,
};
use crate::{
    surface::{LazyMessage, Outline, Role},
    trajectory::RunId,
};

/// Longest opening that is remembered, in bytes.
const OPENING_MAX: usize = 4096;
/// Sentences that are kept of one request.
pub(super) const SENTENCES_MAX: usize = 64;

/// Where a request was placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The run.
    pub run: RunId,
    /// What told it.
    pub source: RunSource,
    /// The request's number, for [`Lineage::opened`](super::Lineage::opened) and [`Lineage::served`](super::Lineage::served).
    pub exchange: u64,
    /// The run that was forgotten to make room for it, if there was one: no request can be placed there any more.
    pub forgotten: Option<RunId>,
}

/// What a request begins with.
#[derive(Debug)]
pub(super) struct RequestBeginning {
    pub(super) opening: Opening,
    pub(super) mark: Mark,
    /// Sentences of the first user text.
    pub(super) user: Vec<Mark>,
}

impl RequestBeginning {
    /// Equal for requests that begin alike, not looked into.
    pub(super) fn key(outline: &Outline<'_>) -> Mark {
        let marks = [first_user(outline), opening(outline)].map(|said| said.map_or(0, LazyMessage::mark));
        let prompts =
            || outline.prompts.iter().map(|prompt| XxHash3_64::oneshot(prompt.as_bytes())).collect::<Vec<_>>();
        if marks == [0, 0] { join(&prompts()) } else { join(&marks) }
    }

    /// Looks into the request.
    pub(super) fn read(outline: &Outline<'_>) -> Self {
        let text = opening(outline).map_or_else(|| outline.prompt(), LazyMessage::text);
        let opening = Opening::new(&text, OPENING_MAX);
        let user = first_sentences(&outline.first_user().unwrap_or_default(), SENTENCES_MAX);
        Self { mark: opening.mark(), opening, user }
    }
}

/// What a request opens with: its first user text; without one, its prompt.
fn opening<'a>(outline: &'a Outline<'a>) -> Option<&'a LazyMessage<'a>> {
    outline.messages.iter().find(|said| said.role == Role::User && said.size() > 2)
}
