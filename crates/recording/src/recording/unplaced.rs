//! What the importer of a trace could not place of a call, as a record beside the step that was made of it.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    RecordingError,
    record::{Record, UnplacedRecord},
    recorder::Recorder,
};
use crate::trajectory::{Step, StepIndex, StepUnplaced, Unplaced};

impl Recorder {
    /// Records what could not be placed of the call that a step was made of, with what looks like a secret masked; nothing
    /// where all was placed.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn unplaced(&self, step: StepIndex, unplaced: &StepUnplaced) -> Result<(), RecordingError> {
        if unplaced.is_empty() {
            return Ok(());
        }
        let masked = |text: &str| self.encoder.redactor.text(text).into_owned();
        let piece = |piece: &Unplaced| Unplaced { place: masked(&piece.place), quote: masked(&piece.quote), ..*piece };
        let pieces = |all: &[Unplaced]| all.iter().map(piece).collect();
        let unplaced = StepUnplaced { request: pieces(&unplaced.request), reply: pieces(&unplaced.reply) };
        self.write(&Record::Unplaced(UnplacedRecord { step, unplaced: Cow::Owned(unplaced) }), &[])
    }
}

/// Takes a record in: it is of a step that was opened before.
pub(super) fn add(steps: &mut BTreeMap<StepIndex, Step>, record: UnplacedRecord<'_>) -> Result<(), String> {
    let step = steps.get_mut(&record.step).ok_or("it says what was not placed of a step that was not opened")?;
    step.unplaced = record.unplaced.into_owned();
    Ok(())
}
