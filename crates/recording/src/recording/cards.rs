//! `cards.json`: the cards of peers that a run's program asked for. They are no messages and no steps, but a client that finds its
//! peer by a card sends nothing before it has one; so a replay gives them again. It lies outside the seal's hash.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    RecordingError,
    disk::Disk,
    json_file::{FORMAT, read_json, write_json},
};

/// The file's name.
const FILE: &str = "cards.json";

/// The card of a peer (A2A 1.0, *Agent Card*), as the peer gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RecordedCard {
    /// Where the path of the peer begins: `/a2a/weather`.
    pub place: String,
    /// The path below that: `/.well-known/agent-card.json`.
    pub path: String,
    /// Where the peer was: a URL.
    pub address: String,
    /// The card: JSON, with secrets masked.
    pub body: String,
}

/// The file.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct CardsFile {
    /// Format of this file.
    format: u64,
    /// The cards, the last of each path.
    cards: Vec<RecordedCard>,
}

/// Writes `cards.json`, replacing an earlier one.
///
/// # Errors
/// [`RecordingError::Io`] when the file cannot be written.
pub fn write_cards(run_dir: &Path, cards: &[RecordedCard]) -> Result<(), RecordingError> {
    let file = CardsFile { format: FORMAT, cards: cards.to_vec() };
    write_json(&Disk::default(), &run_dir.join(FILE), &file)
}

/// Reads `cards.json`; empty when the run has none.
///
/// # Errors
/// [`RecordingError`] when there is one that cannot be read.
pub fn read_cards(run_dir: &Path) -> Result<Vec<RecordedCard>, RecordingError> {
    Ok(read_json::<CardsFile>(&run_dir.join(FILE))?.map(|file| file.cards).unwrap_or_default())
}
