//! Altered replies beside what the clean twins say at the same calls.

use twox_hash::XxHash3_64;

use crate::dataset::{Dataset, DatasetError, Entry, Index, LabelledError, Sample, SampleKind, SampleStep};

/// Most failures that are looked at, so that memory is bounded; they are drawn by the hash of their id.
pub(super) const FAILURES: usize = 4000;

/// A labelled step of a failure and the same call in its clean twin.
pub(in crate::dataset) struct TwinPair<'a> {
    /// The failure.
    pub(in crate::dataset) failure: &'a Sample,
    /// Where it stands.
    pub(in crate::dataset) place: Entry,
    /// Its clean twin.
    pub(in crate::dataset) twin: &'a Sample,
    /// Where that stands.
    pub(in crate::dataset) twin_place: Entry,
    /// What is labelled.
    pub(in crate::dataset) error: &'a LabelledError,
    /// The labelled step.
    pub(in crate::dataset) step: &'a SampleStep,
    /// The twin's step at the same call.
    pub(in crate::dataset) other: &'a SampleStep,
}

/// Hands on every pair, in the order of the files.
pub(in crate::dataset) fn pairs(
    dataset: &Dataset,
    index: &Index,
    mut take: impl FnMut(&TwinPair<'_>) -> Result<(), DatasetError>,
) -> Result<(), DatasetError> {
    let failures = index.of_kind(SampleKind::Failure);
    // A draw by id is the same whatever the order of the file.
    let share = (FAILURES as u64).saturating_mul(u64::MAX / (failures as u64).max(1));
    let mut last: Option<Sample> = None;
    for placed in dataset.samples() {
        let placed = placed?;
        let failure = &placed.sample;
        let drawn = failures <= FAILURES || XxHash3_64::oneshot(failure.id.as_bytes()) < share;
        let Some(twin) = failure.clean_twin.clone().filter(|_| failure.kind == SampleKind::Failure && drawn) else {
            continue;
        };
        let Some(entry) = index.get(&twin) else { continue };
        let twin = match last.take().filter(|last| last.id == twin) {
            Some(twin) => twin,
            None => dataset.at(entry)?,
        };
        let place = Entry { file: placed.file, line: placed.line, offset: placed.offset, kind: failure.kind };
        for error in failure.label.iter().flat_map(|label| &label.errors) {
            let step = error.step.and_then(|step| failure.steps.get(step as usize));
            let Some(step) = step.filter(|_| error.operator.is_some()) else { continue };
            let its = |other: &&SampleStep| {
                (&other.agent, other.instance, other.call) == (&step.agent, step.instance, step.call)
            };
            let Some(other) = twin.steps.iter().find(its) else { continue };
            take(&TwinPair { failure, place, twin: &twin, twin_place: *entry, error, step, other })?;
        }
        last = Some(twin);
    }
    Ok(())
}
