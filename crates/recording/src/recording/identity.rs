//! `identity.json`: where the late pass sees a step otherwise than its record does. It lies outside the seal's hash,
//! as the label does: what is known of a run may grow after it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    RecordingError,
    disk::Disk,
    json_file::{read_json, write_json},
};
use crate::identity::LateStep;

/// The format of `identity.json`.
const FORMAT: u64 = 1;

/// The file.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct IdentityFile {
    /// Format of this file.
    format: u64,
    /// The steps that are seen otherwise.
    steps: Vec<LateStep>,
}

/// Writes `identity.json`, replacing an earlier one.
///
/// # Errors
/// [`RecordingError::Io`] when the file cannot be written.
pub fn write_identity(run_dir: &Path, steps: &[LateStep]) -> Result<(), RecordingError> {
    let file = IdentityFile { format: FORMAT, steps: steps.to_vec() };
    write_json(&Disk::default(), &run_dir.join("identity.json"), &file)
}

/// Reads `identity.json`; empty when the run has none.
pub(super) fn read_identity(run_dir: &Path) -> Result<Vec<LateStep>, RecordingError> {
    Ok(read_json::<IdentityFile>(&run_dir.join("identity.json"))?.map(|file| file.steps).unwrap_or_default())
}
