//! A request that named no run: where it was placed, and what the late pass needs of it.

use std::sync::Arc;

use twox_hash::XxHash3_64;

use super::{
    RunSource,
    fingerprint::{Looks, Mark, first_sentences, first_user, join},
    words::Opening,
};
use crate::{
    surface::{Outline, Role, Said},
    trajectory::{Attribution, RunId, StepIndex},
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
}

/// What the late pass needs of a request.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) run: RunId,
    pub(super) step: StepIndex,
    pub(super) attempt: u32,
    pub(super) source: RunSource,
    pub(super) asked: Mark,
    pub(super) body: u128,
    pub(super) attribution: Option<Attribution>,
    pub(super) looks: Arc<Looks>,
    /// What it begins with, where no quote links it to an earlier exchange.
    pub(super) begun: Option<Arc<Begun>>,
    /// Exchanges whose answers the request quotes, ids first.
    pub(super) quotes: Vec<u64>,
    /// Exchanges whose whole answers stand in it as said by an assistant, or whose tool calls it answers; latest first.
    pub(super) said: Vec<u64>,
    pub(super) opened_at: u64,
    pub(super) closed_at: u64,
    pub(super) failed: bool,
    /// When another run was last seen to say the same as its answer.
    pub(super) shared_at: u64,
}

/// What a request begins with.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) opening: Opening,
    pub(super) mark: Mark,
    /// Sentences of the first user text.
    pub(super) user: Vec<Mark>,
}

impl Begun {
    /// Equal for requests that begin alike, not looked into.
    pub(super) fn known_by(outline: &Outline<'_>) -> Mark {
        let marks = [first_user(outline), opening(outline)].map(|said| said.map_or(0, Said::mark));
        let prompts =
            || outline.prompts.iter().map(|prompt| XxHash3_64::oneshot(prompt.as_bytes())).collect::<Vec<_>>();
        if marks == [0, 0] { join(&prompts()) } else { join(&marks) }
    }

    /// Looks into the request.
    pub(super) fn of(outline: &Outline<'_>) -> Self {
        let text = opening(outline).map_or_else(|| outline.prompt(), Said::text);
        let opening = Opening::new(&text, OPENING_MAX);
        let user = first_sentences(&outline.first_user().unwrap_or_default(), SENTENCES_MAX);
        Self { mark: opening.mark(), opening, user }
    }
}

/// What a request opens with: its first user text; without one, its prompt.
fn opening<'a>(outline: &'a Outline<'a>) -> Option<&'a Said<'a>> {
    outline.said.iter().find(|said| said.role == Role::User && said.size() > 2)
}
