//! The end of a run: its label is derived from what was recorded, and written beside it.

use std::path::Path;

use super::{NoLabel, Ruling, reference};
use crate::{
    recording::{self, Recording, RecordingError, write_label},
    trajectory::{Label, LabelStatus},
};

/// Rules on a run that has ended, and writes `label.json`. A run that earns no label gets no file, and one that it had is
/// withdrawn. `reference` is the run whose beginning was given again, if one was, its requests aside: what overlapped there is noted
/// in `identity.json`, so that whoever looks at the run later comes to the same.
///
/// # Errors
/// The run cannot be read, or a file cannot be written. [`NoLabel`] is no error of this kind: it says why a run is no evidence
/// of anything.
pub fn settle(run_dir: &Path, reference: Option<&Recording>) -> Result<Result<Label, NoLabel>, RecordingError> {
    let mut recording = recording::read(run_dir)?;
    let hidden = reference.map(|reference| reference::overlapped(&recording, reference)).unwrap_or_default();
    if !hidden.is_empty() {
        recording.late.retain(|late| !late.overlapping_in_reference);
        recording.late.extend(hidden);
        recording::write_identity(run_dir, &recording.late)?;
    }
    let ruled = Ruling::of(&recording).label();
    match (&ruled, recording.label) {
        (Ok(label), _) => write_label(run_dir, label)?,
        (Err(_), Some(former)) if former.definition == "injected" && former.status != LabelStatus::Withdrawn => {
            write_label(run_dir, &Label { status: LabelStatus::Withdrawn, ..former })?;
        }
        (Err(_), _) => {}
    }
    Ok(ruled)
}
