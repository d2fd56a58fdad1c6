//! A list of runs as somebody sees it who is to say what went wrong in them.

use std::sync::Arc;

use super::listing::{Listing, RunKind, RunRow};

/// Takes from a list what is known about its runs, and what is no run to look at: campaigns, datasets, runs of traces. `labelled`:
/// runs without a label, too.
pub(super) fn listing(listing: &Listing, labelled: bool) -> Listing {
    let runs = listing.runs.iter().filter(|row| row.trial_of.is_none() && (row.label.is_some() || !labelled));
    let blind = |row: &Arc<RunRow>| {
        Arc::new(RunRow {
            kind: RunKind::Clean,
            planted: None,
            label: None,
            trace: None,
            suspected: None,
            campaign: None,
            plan: None,
            class: None,
            ..row.as_ref().clone()
        })
    };
    Listing { runs: runs.map(blind).collect(), ..Listing::default() }
}
