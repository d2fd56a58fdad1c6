//! The cards of peers that a run's program asked for.

use std::{path::Path, sync::Mutex};

use super::lock::locked;
use crate::recording::{self, RecordedCard};

/// The cards of a run.
#[derive(Debug, Default)]
pub(super) struct RunCards(Mutex<Vec<RecordedCard>>);

impl RunCards {
    /// Those of the record that answers a run, which the run's own record has too.
    pub(super) fn new(run_dir: &Path, cards: Vec<RecordedCard>) -> Self {
        if !cards.is_empty() {
            write(run_dir, &cards);
        }
        Self(Mutex::new(cards))
    }

    /// The card at a path below the place of a peer.
    pub(super) fn find(&self, place: &str, path: &str) -> Option<RecordedCard> {
        locked(&self.0).iter().find(|card| card.place == place && card.path == path).cloned()
    }

    /// Keeps a card with its run.
    pub(super) fn keep(&self, run_dir: &Path, card: RecordedCard) {
        // Held over the write, so that the file has what is here; no exchange waits for it.
        let mut cards = locked(&self.0);
        if cards.contains(&card) {
            return;
        }
        cards.retain(|other| (&other.place, &other.path) != (&card.place, &card.path));
        cards.push(card);
        write(run_dir, &cards);
    }
}

/// A disk that does not take them costs the replay of them, and nothing else.
fn write(run_dir: &Path, cards: &[RecordedCard]) {
    if let Err(error) = recording::write_cards(run_dir, cards) {
        tracing::warn!(%error, "a replay of the run cannot give the cards of its peers");
    }
}
