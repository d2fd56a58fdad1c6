//! What trainers are given beside failures: clean runs, as many as failures and no more, so that "nobody erred" is no good
//! guess.

mod choose;

use std::collections::{BTreeMap, HashSet};

pub(super) use choose::SURPLUS;

/// Which clean runs go into a format that is trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CleanRows {
    /// Of each part as many as it has failures: their twins first, then others, drawn by hash.
    #[default]
    Balanced,
    /// The twins of the failures that go out, each once.
    Twins,
    /// All.
    All,
    /// None.
    None,
}

/// The clean runs that are chosen.
#[derive(Debug, Clone, Default)]
pub struct Balance {
    /// By format; a format that is not here takes all.
    chosen: BTreeMap<&'static str, HashSet<String>>,
}

impl Balance {
    /// Whether a clean run goes into a format.
    pub(super) fn is_exported(&self, format: &'static str, id: &str) -> bool {
        self.chosen.get(format).is_none_or(|chosen| chosen.contains(id))
    }
}
