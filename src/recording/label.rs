//! The label of a sealed run: derived from what was recorded, written beside it.

use std::path::Path;

use super::{RecordingError, read, write_label};
use crate::trajectory::{self, Label, NoLabel};

/// Derives the label of a finished run and writes `label.json`. A run that earns none gets no file.
///
/// # Errors
/// The run cannot be read, or the file cannot be written. [`NoLabel`] is no error of this kind: it says why a run is
/// no evidence of anything.
pub fn label_run(run_dir: &Path) -> Result<Result<Label, NoLabel>, RecordingError> {
    let recording = read(run_dir)?;
    let derived = trajectory::derive(&recording.trajectory, !recording.manipulator_failures.is_empty());
    if let Ok(label) = &derived {
        write_label(run_dir, label)?;
    }
    Ok(derived)
}
