//! The program once without a plan: what it asks where nothing fails.

use crate::cli::printed::TestedBaseline;
use std::{path::PathBuf, sync::Arc};

use crate::{
    cli::escape,
    execution::{ExecutedRun, ExecutionArm, output_file},
    identity::ReferenceCalls,
    recording::{Masked, MaskedFile},
    replay::Rules,
    trajectory::{Outcome, ProgramEnd, RunId, StepIndex, Verdict},
    verdict::{self, FindingKind, Survival},
    viewer::word,
};

/// What came of it.
#[derive(Debug)]
pub(super) struct BaselineRun {
    pub(super) dir: PathBuf,
    pub(super) steps: StepIndex,
    pub(super) outcome: Outcome,
    pub(super) survival: Survival,
    /// How often it asks what: an equal request beyond that is another try.
    pub(super) calls: Arc<ReferenceCalls>,
    seconds: f64,
    ended_well: bool,
}

/// The arm of it.
pub(super) fn arm(run: RunId) -> (RunId, ExecutionArm) {
    (run, ExecutionArm::default())
}

impl BaselineRun {
    pub(super) fn from_execution(executed: ExecutedRun, rules: &Rules) -> Self {
        // Beside the recording, which holds nothing but what was recorded.
        let output = Masked::new(executed.output.clone());
        let _ = MaskedFile::write_shared(&output_file(&executed.dir, "stdout"), &output);
        let steps = &executed.recording.trajectory.steps;
        let calls = steps.iter().map(|step| (step, step.request.clone()));
        let asked = Arc::new(ReferenceCalls::from_steps(calls, rules.clone()));
        let ended_well = executed.recording.manifest.program == Some(ProgramEnd::Exited(0));
        Self {
            survival: verdict::survival(&executed.recording, &[]),
            dir: executed.dir,
            steps: executed.steps,
            outcome: executed.outcome,
            calls: asked,
            seconds: executed.took.as_secs_f64(),
            ended_well,
        }
    }

    /// Whether nothing can be tested: the program calls nobody, nobody answers, the check cannot be run.
    pub(super) fn is_in_vain(&self) -> bool {
        [FindingKind::NoCall, FindingKind::Unanswered, FindingKind::CheckBroken]
            .iter()
            .any(|kind| self.survival.has(*kind))
    }

    /// Whether the program fails by itself.
    pub(super) fn has_failed(&self) -> bool {
        !self.ended_well || self.outcome.verdict == Verdict::Failure
    }

    /// What it says of the program, in one line.
    pub(super) fn line(&self) -> String {
        let failed = if self.has_failed() {
            format!("; the program fails without any fault: {}", escape(&self.outcome.evidence))
        } else {
            String::new()
        };
        let outcome = word(&self.outcome.verdict);
        format!("without a plan  outcome {outcome}  {} steps  {:.1} s{failed}", self.steps, self.seconds)
    }

    pub(super) fn data(&self) -> TestedBaseline<'_> {
        let Self { dir, steps, seconds, outcome, .. } = self;
        TestedBaseline { run_dir: dir, steps: *steps, seconds: *seconds, outcome }
    }
}
