//! What was planted in a run, for somebody who is to say which failure mode it shows.

use super::{
    change::{self, ShownChange, changes},
    data::word,
    step_view::{StepView, TextBlock},
};
use crate::{
    recording::Recording,
    trajectory::{FailureMode, LabelEntry, LabelStatus, Step},
};

/// A planted change: where it is, what its plan calls it, and what it changed.
#[derive(Debug)]
pub struct PlantedAt<'a> {
    /// The step.
    pub step: &'a Step,
    /// The error, as the run's label has it.
    pub entry: &'a LabelEntry,
    /// The mode that the plan calls it.
    pub declared: FailureMode,
    /// Both sides of the change.
    pub change: ShownChange,
}

/// The planted changes of a run whose label holds, in the order of steps.
pub fn planted(recording: &Recording) -> Vec<PlantedAt<'_>> {
    let label = recording.label.as_ref().filter(|label| label.status != LabelStatus::Withdrawn);
    let mut found: Vec<PlantedAt<'_>> = label
        .into_iter()
        .flat_map(|label| label.planted())
        .filter(|entry| !entry.is_found())
        .filter_map(|entry| {
            let declared = entry.error.failure_mode?;
            let step = recording.trajectory.steps.iter().find(|step| step.step == entry.error.step)?;
            let change = changes(step).into_iter().find(|change| change.side == word(&entry.error.side))?;
            Some(PlantedAt { step, entry, declared, change })
        })
        .collect();
    found.sort_by_key(|one| (one.entry.error.step, one.entry.error.injection));
    found
}

impl PlantedAt<'_> {
    /// What was taken out, `[-…-]`, and put in, `{+…+}`, as one text.
    pub fn change_text(&self) -> String {
        change::pairs_text(&change::side_by_side(&self.change.before, &self.change.after))
    }

    /// What the agent had been told before anything was changed, as one text.
    pub fn context_text(&self) -> String {
        let block = |block: TextBlock| format!("{}: {}", block.who, block.text);
        let told = StepView::new(self.step).request(&self.step.request);
        told.into_iter().map(block).collect::<Vec<_>>().join("\n")
    }
}
