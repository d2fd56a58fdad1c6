//! A request that named no run: where it was placed, and what the late pass needs of it.

use super::{
    RunSource,
    fingerprint::{Looks, Mark},
};
use crate::trajectory::{Attribution, RunId, StepIndex};

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
    pub(super) opening: Mark,
    pub(super) attribution: Option<Attribution>,
    pub(super) looks: Looks,
    /// Sentences of the first user text.
    pub(super) user: Vec<Mark>,
    /// Exchanges whose answers the request quotes, ids first.
    pub(super) quotes: Vec<u64>,
    /// Exchanges whose whole answers stand in it as said by an assistant, or whose tool calls it answers; latest first.
    pub(super) said: Vec<u64>,
    pub(super) opened_at: u64,
    pub(super) closed_at: u64,
    pub(super) failed: bool,
}
