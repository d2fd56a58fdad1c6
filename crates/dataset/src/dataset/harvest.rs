//! The runs of a corpus as rows.

use std::{collections::BTreeMap, path::PathBuf};

use super::DatasetManifest;

/// What the runs came to as rows.
#[derive(Debug)]
pub struct Harvest {
    /// The rows, in a directory that is removed with this.
    pub(super) rows: tempfile::TempDir,
    /// The directory of the runs.
    pub root: PathBuf,
    /// What the rows hold.
    pub manifest: DatasetManifest,
    /// Where the recording of each row lies, by the row's id.
    pub recordings: BTreeMap<String, PathBuf>,
    /// Failures whose label is not shown, and whose programs can be executed again as they were.
    pub unproven: usize,
    /// Runs that are no rows, by the reason.
    pub left_out: BTreeMap<String, Vec<String>>,
}
