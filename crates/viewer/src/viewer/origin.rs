//! Where the replies of a run came from, as the terminal and the page say it alike.

use std::path::Path;

use super::Traced;
use crate::{
    recording::Recording,
    ruling,
    trajectory::{Attempt, ReplyOrigin, Step, StepIndex},
};

/// What is known of a run's replies beside what its record says of each. Records of earlier versions say nothing of it.
#[derive(Debug, Default)]
pub struct ReplyOrigins {
    /// The first step that the upstream answered, where another record answered those before it.
    first_live: Option<StepIndex>,
    /// Whether the run repeats another one, whose altered bytes it got again.
    repeats: bool,
}

impl ReplyOrigins {
    /// Of a run in its directory.
    pub fn read(recording: &Recording, run_dir: &Path) -> Self {
        let attempts = || recording.trajectory.steps.iter().flat_map(|step| &step.attempts);
        let repeats = ruling::repeats(recording).is_some();
        if attempts().any(|attempt| !attempt.origin.is_live()) {
            return Self { first_live: None, repeats };
        }
        Self { first_live: first_live(recording, run_dir), repeats }
    }

    /// Where the reply that a step ended with came from.
    pub fn of_step(&self, step: &Step) -> ReplyOrigin {
        step.last_attempt().map_or(ReplyOrigin::Live, |attempt| self.of_attempt(step, attempt))
    }

    /// Where the reply of an attempt came from.
    pub fn of_attempt(&self, step: &Step, attempt: &Attempt) -> ReplyOrigin {
        match attempt.origin {
            // What a repeat sets in the place of a recorded reply is what its original got there.
            ReplyOrigin::Replaced if self.repeats => ReplyOrigin::AlteredAgain,
            ReplyOrigin::Live if self.first_live.is_some_and(|live| step.step < live) => ReplyOrigin::Recorded,
            origin => origin,
        }
    }
}

/// The first step that the upstream answered, by what stands beside the run: the label of one that left its clean twin to be
/// altered says where it did, and a trace for which step it made an execution. The label of a natural error names the step of
/// the *traced* run at which executions left it: every call of that run itself was live.
fn first_live(recording: &Recording, run_dir: &Path) -> Option<StepIndex> {
    let planted = recording.label.as_ref().filter(|label| label.definition == ruling::PLANTED);
    let evidence = planted.and_then(|label| label.evidence.as_ref()).filter(|evidence| evidence.twin.is_some());
    evidence.and_then(|evidence| evidence.fork_step).or_else(|| {
        let traced = Traced::read(run_dir.parent()?.parent()?)?;
        traced.made_for(recording.manifest.run.as_str()).map(|step| step + 1)
    })
}
