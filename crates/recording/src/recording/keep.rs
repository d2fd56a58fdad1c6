//! `kept.json`: somebody wants a run to stay, whatever is pruned. It lies beside the record, and a run that goes on can have it.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    RecordingError,
    disk::Disk,
    json_file::{FORMAT, read_json, write_json},
    read,
};

/// Says that its run is never pruned.
pub(super) const KEPT_FILE: &str = "kept.json";

/// That a run is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KeepMark {
    /// Format of this file.
    pub format: u64,
    /// Since when, RFC 3339 UTC.
    pub at: String,
    /// Who keeps it: the user of a server who asked for it over HTTP, or whom `runs keep` named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl KeepMark {
    /// In a few words.
    pub fn words(&self) -> String {
        let by = self.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        format!("since {}{by}: never pruned (`aegis runs release` takes this back)", self.at)
    }
}

/// Keeps a run: nothing prunes it from now on. One that is kept stays so as it was.
///
/// # Errors
/// It is no run, or the file cannot be written.
pub fn keep_run(run_dir: &Path, by: Option<&str>) -> Result<(), RecordingError> {
    read::read_run_file(run_dir)?;
    if run_dir.join(KEPT_FILE).exists() {
        return Ok(());
    }
    let kept = KeepMark { format: FORMAT, at: Timestamp::now().to_string(), by: by.map(str::to_owned) };
    write_json(&Disk::new(true), &run_dir.join(KEPT_FILE), &kept)
}

/// Takes back that a run is kept.
///
/// # Errors
/// It is no run, or the file cannot be removed.
pub fn release_run(run_dir: &Path) -> Result<(), RecordingError> {
    read::read_run_file(run_dir)?;
    Disk::new(true).remove(&run_dir.join(KEPT_FILE))
}

/// Whether a run is kept.
///
/// # Errors
/// The file is there and cannot be read: then it is kept all the same.
pub fn read_kept(run_dir: &Path) -> Result<Option<KeepMark>, RecordingError> {
    read_json(&run_dir.join(KEPT_FILE))
}
