//! The label of a sealed run: derived from what was recorded, written beside it.

use std::path::Path;

use super::{Recording, RecordingError, RunOrigin, read, write_label};
use crate::{
    identity::Speakers,
    surface,
    trajectory::{self, Label, LabelStatus, NoLabel, Source, StepIndex},
};

impl Recording {
    /// Whether what was planned could not be planted: an edit failed, or none found anything to edit. One that found nothing
    /// at its step, while another was delivered, leaves the run as sure as if it had not been planned.
    pub fn edits_failed(&self) -> bool {
        let delivered = || self.trajectory.steps.iter().flat_map(|step| &step.injected).any(|error| error.delivered);
        let failures = &self.manipulator_failures;
        failures.iter().any(|failure| !failure.nothing) || (!failures.is_empty() && !delivered())
    }
}

/// Derives the label of a finished run and writes `label.json`. A run that earns none gets no file.
///
/// # Errors
/// The run cannot be read, or the file cannot be written. [`NoLabel`] is no error of this kind: it says why a run is
/// no evidence of anything.
pub fn label_run(run_dir: &Path) -> Result<Result<Label, NoLabel>, RecordingError> {
    let recording = read(run_dir)?;
    if recording.manifest.origin == Some(RunOrigin::Feedback) {
        return Ok(Err(NoLabel::NotInjected));
    }
    let mut derived = trajectory::derive(&recording.trajectory, recording.edits_failed());
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

/// Whether a later look sees the step otherwise: the late pass, or the whole run, in which another agent turned out to
/// go by the name that stood on the wire.
fn is_disputed(recording: &Recording, step: StepIndex) -> bool {
    recording.late.iter().any(|late| late.step == step) || is_contested(recording, step)
}

fn is_contested(recording: &Recording, step: StepIndex) -> bool {
    let steps = &recording.trajectory.steps;
    let written = |known: &&trajectory::Step| known.step == step && known.attribution.source == Source::Dialect;
    let Some(named) = steps.iter().find(written) else { return false };
    let mut speakers = Speakers::default();
    for step in steps {
        let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
        let Some((surface, outline)) = surface.and_then(|known| Some((known, known.outline(&step.request).ok()?)))
        else {
            continue;
        };
        let reply = step.last_attempt().and_then(|attempt| {
            let body = attempt.delivered();
            if attempt.streamed { surface.read_stream(body).ok() } else { surface.read_reply(body).ok() }
        });
        speakers.recall(&outline, &step.attribution, reply.as_ref());
    }
    speakers.contested().any(|agent| *agent == named.attribution.agent)
}
