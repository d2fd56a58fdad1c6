//! The label of a sealed run: derived from what was recorded, written beside it.

use std::path::Path;

use super::{Recording, RecordingError, read, write_label};
use crate::trajectory::{self, Label, LabelStatus, NoLabel, StepIndex};

/// Derives the label of a finished run and writes `label.json`. A run that earns none gets no file.
///
/// # Errors
/// The run cannot be read, or the file cannot be written. [`NoLabel`] is no error of this kind: it says why a run is
/// no evidence of anything.
pub fn label_run(run_dir: &Path) -> Result<Result<Label, NoLabel>, RecordingError> {
    let recording = read(run_dir)?;
    let mut derived = trajectory::derive(&recording.trajectory, !recording.manipulator_failures.is_empty());
    // Where the late pass sees an injected step otherwise, nobody knows whom the injection hit.
    let disputed = |label: &Label| label.errors.iter().any(|entry| is_disputed(&recording, entry.error.step));
    if derived.as_ref().is_ok_and(disputed) {
        if let Some(label) = recording.label {
            write_label(run_dir, &Label { status: LabelStatus::Withdrawn, ..label })?;
        }
        derived = Err(NoLabel::AmbiguousAgent);
    }
    if let Ok(label) = &derived {
        write_label(run_dir, label)?;
    }
    Ok(derived)
}

/// Whether a label may name the agent and the call of a step: only where the wire told them surely on arrival, and the
/// late pass sees nothing otherwise.
///
/// # Errors
/// [`NoLabel::AmbiguousAgent`].
pub fn may_name(recording: &Recording, step: StepIndex) -> Result<(), NoLabel> {
    let told = recording.trajectory.steps.iter().find(|known| known.step == step);
    let surely = told.is_some_and(|step| step.attribution.is_certain() && !step.overlapping);
    if surely && !is_disputed(recording, step) { Ok(()) } else { Err(NoLabel::AmbiguousAgent) }
}

fn is_disputed(recording: &Recording, step: StepIndex) -> bool {
    recording.late.iter().any(|late| late.step == step)
}
