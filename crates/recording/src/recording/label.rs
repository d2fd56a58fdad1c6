//! `label.json` as it reads with what was learned of the run since.

use std::{io, path::Path};

use super::{
    RecordingError,
    amended::{FACTS_FILE, FactsFile},
    json_file::{own_hash, read_json},
    own_hash::OwnHash,
    run_file::RunFile,
};
use crate::{
    proof,
    trajectory::{Label, LabelContent},
};

/// Where a run's label stands. It lies outside the seal's hash: a label may be earned or withdrawn after the run.
pub const LABEL_FILE: &str = "label.json";

/// Reads `label.json`, under the names that were given to its steps since; `None` when the run has none.
///
/// # Errors
/// [`RecordingError`] when it is there and cannot be read, and [`RecordingError::Edited`].
pub fn read_label(run_dir: &Path) -> Result<Option<Label>, RecordingError> {
    let path = run_dir.join(LABEL_FILE);
    if own_hash(&path) == Some(OwnHash::Differs) {
        return Err(RecordingError::Edited { path });
    }
    read_as_it_is(run_dir)
}

/// The same, whether or not it was edited.
pub(super) fn read_as_it_is(run_dir: &Path) -> Result<Option<Label>, RecordingError> {
    let Some(mut label) = read_json::<LabelContent>(&run_dir.join(LABEL_FILE))? else { return Ok(None) };
    if let Some(mut evidence) = label.evidence.clone()
        && proof::read_former_states(&mut evidence)
    {
        label = label.resting_on(evidence);
    }
    Ok(Some(FactsFile::read(run_dir)?.name(Label::read_back(label))))
}

/// Whether a run has a label, or had one that others took the place of.
pub(super) fn has_label(run_dir: &Path) -> bool {
    let entries = std::fs::read_dir(run_dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"label."))
}

/// The bytes of what a label is read from, for a digest: `label.json` and `facts.jsonl`, as far as the run has them.
///
/// # Errors
/// When one is there and cannot be read.
pub fn label_bytes(run_dir: &Path) -> io::Result<Vec<Vec<u8>>> {
    let read = |file: &str| match RunFile::bytes(&run_dir.join(file)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    };
    [LABEL_FILE, FACTS_FILE].into_iter().filter_map(|file| read(file).transpose()).collect()
}
