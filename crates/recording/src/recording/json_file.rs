//! The small JSON files beside the log: each is replaced whole, never edited in place, and has its own hash.

use std::{io::Write, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    RecordingError,
    disk::{self, Disk},
    own_hash::{self, OwnHash},
    redact::Redactor,
};

/// The newest format of `run.json`, `seal.json` and `label.json` that is read.
pub(super) const FORMAT: u64 = 1;
/// The longest of these files, in bytes; a plan's text may stand in `run.json`.
const LONGEST: u64 = 64 << 20;

/// What every format of these files has.
#[derive(Deserialize)]
struct VersionedFile {
    format: u64,
}

/// Writes a small JSON file beside a record, replacing an earlier one.
///
/// # Errors
/// [`RecordingError::Io`] when it cannot be written.
pub fn write_beside(path: &Path, value: &impl Serialize) -> Result<(), RecordingError> {
    write_json(&Disk::default(), path, value)
}

/// Writes a small JSON file, whole and without secrets.
pub(super) fn write_json(disk: &Disk, path: &Path, value: &impl Serialize) -> Result<(), RecordingError> {
    let unreadable =
        |error: serde_json::Error| RecordingError::Unreadable { path: path.into(), why: error.to_string() };
    let mut text = serde_json::to_vec_pretty(value).map_err(unreadable)?;
    Redactor::of_process().mask(&mut text);
    own_hash::add(&mut text, "");
    text.push(b'\n');
    disk.replace(path, |file| file.write_all(&text))
}

/// Reads a small JSON file; `None` when it is not there.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordingError> {
    let Some(mut bytes) = disk::read_whole(path, LONGEST)? else { return Ok(None) };
    own_hash::take(&mut bytes, "");
    let unreadable =
        |error: serde_json::Error| RecordingError::Unreadable { path: path.into(), why: error.to_string() };
    let found = serde_json::from_slice::<VersionedFile>(&bytes).map_err(unreadable)?.format;
    if found > FORMAT {
        return Err(RecordingError::Future { path: path.into(), found, known: FORMAT });
    }
    serde_json::from_slice(&bytes).map(Some).map_err(unreadable)
}

/// Whether a small file is as it was written; `None` when it is not there, or cannot be read.
pub(super) fn own_hash(path: &Path) -> Option<OwnHash> {
    disk::read_whole(path, LONGEST).ok().flatten().map(|mut bytes| own_hash::take(&mut bytes, "").0)
}
