//! A recorded run as methods see it, its steps by the numbers that `show` prints.

use super::methods::{LoggedRow, LoggedRun};
use crate::{
    dataset::{DatasetError, Sample, SampleKind, Task, UnrecordedFacts},
    recording::Recording,
    trajectory::StepIndex,
};

impl LoggedRun {
    /// The log of a recording. Without a question in `task` it is the first message that its first agent was given. The right
    /// answer is left out unless it is asked for.
    ///
    /// # Errors
    /// [`DatasetError`] when the recording holds steps that contradict each other.
    pub fn recorded(recording: &Recording, task: Task, gold: bool) -> Result<Self, DatasetError> {
        let about = UnrecordedFacts {
            kind: SampleKind::Failure,
            system: String::new(),
            task,
            final_answer: String::new(),
            split: None,
            clean_twin: None,
        };
        // The label is of no concern here, and may be of a run that was never finished.
        let bare = Recording { label: None, ..recording.clone() };
        let mut sample = Sample::from_recording(&bare, about)?;
        if sample.task.question.is_empty() {
            sample.task.question = first_user_text(&sample);
        }
        let places: Vec<StepIndex> = sample
            .steps
            .iter()
            .map(|step| {
                let same = recording.trajectory.steps.iter().find(|recorded| {
                    let named = &recorded.attribution;
                    named.agent == step.agent && named.instance == step.instance && recorded.call == step.call
                });
                same.map_or(step.step, |recorded| recorded.step)
            })
            .collect();
        let sample = sample.with_numbered_agents();
        let mut run = Self::from_sample(&sample, gold);
        let place = |step: StepIndex| places.get(step as usize).copied().unwrap_or(step);
        for turn in &mut run.turns {
            turn.step = place(turn.step);
            turn.quoted = turn.quoted.iter().map(|step| place(*step)).collect();
        }
        run.turns.sort_by_key(|turn| turn.step);
        run.row = Some(LoggedRow::unlabelled(&sample, places));
        Ok(run)
    }
}

/// The first message that the first agent was given by somebody.
fn first_user_text(sample: &Sample) -> String {
    let first = sample.steps.first().and_then(|step| sample.input(step.step)).unwrap_or_default();
    first.into_iter().find(|said| said.role == "user").map(|said| said.text.clone()).unwrap_or_default()
}
