//! The requests of a run, held apart from its steps.

use bytes::Bytes;

use super::{content_hash::ContentHash, decode::Bodies};

/// The requests of a run, as they stand in its log: what one shares with an earlier one is held once. Each is put
/// together when it is asked for.
#[derive(Debug, Default)]
pub struct Requests {
    bodies: Bodies,
    /// By the steps' positions.
    hashes: Vec<Option<ContentHash>>,
}

impl Requests {
    /// Bodies, and the hash of each step's request.
    pub(super) fn new(bodies: Bodies, hashes: Vec<Option<ContentHash>>) -> Self {
        Self { bodies, hashes }
    }

    /// Bytes that are held: what requests share counts once.
    pub fn held(&self) -> usize {
        self.bodies.held()
    }

    /// The request of the step at a position; empty where it has none.
    pub fn get(&self, position: usize) -> Bytes {
        let hash = self.hashes.get(position).copied().flatten();
        // Each was put together once when the log was read, and fitted its hash.
        hash.and_then(|hash| self.bodies.bytes(hash).ok()).unwrap_or_default()
    }
}
