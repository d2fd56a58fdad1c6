//! One recorded run in a format that claims nothing about who erred: no dataset, no label that must be shown.

use std::path::Path;

use super::{ALL, ExportError, ExportManifest, ExportOptions, Format, Lint, export};
use crate::{
    dataset::{Dataset, DatasetError, Sample, Writer},
    recording,
};

/// Whether a directory is a recorded run.
pub fn is_recording(path: &Path) -> bool {
    path.join("run.json").is_file()
}

/// Writes one recorded run to `out`; a label that it has goes with it, as delivered.
///
/// # Errors
/// [`ExportError`]; what lay at `out` before is untouched then.
pub fn export_recording(
    run: &Path,
    format: &dyn Format,
    out: &Path,
    options: &ExportOptions,
) -> Result<ExportManifest, ExportError> {
    if !format.takes_recordings() {
        let known = ALL.iter().filter(|format| format.takes_recordings()).map(|format| format.name());
        return Err(ExportError::NotOfRecordings { name: format.name(), known: known.collect::<Vec<_>>().join(", ") });
    }
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let within = |place: &Path| {
        let (place, run) = (place.canonicalize().ok(), run.canonicalize().ok());
        place.zip(run).is_some_and(|(place, run)| place.starts_with(run))
    };
    if within(out) || within(parent) {
        return Err(ExportError::OwnSource { path: out.to_owned() });
    }
    let recording = recording::read(run).map_err(DatasetError::from)?;
    let unwritten = |source| ExportError::Write { path: out.to_owned(), source };
    let dir = tempfile::tempdir().map_err(unwritten)?;
    let mut writer = Writer::create(dir.path())?;
    writer.push(&Sample::alone(&recording)?)?;
    writer.finish()?;
    let options = ExportOptions { lint: Lint::Ignore, recording: true, ..options.clone() };
    export(&Dataset::open(dir.path())?, format, out, &options)
}
