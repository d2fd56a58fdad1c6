//! One run of a test: the program under a plan, and whether it survived.

use crate::cli::printed::TestRun;
use std::{path::PathBuf, sync::Arc};

use crate::{
    execution::{ExecutedRun, ExecutionArm, output_file},
    identity::ReferenceCalls,
    plan::Plan,
    recording::{Masked, MaskedFile},
    trajectory::{Outcome, RunId},
    verdict::{self, FindingKind, Survival, SurvivalFinding},
};

/// Most lines of a program's standard error that are shown of a run that did not pass.
const ERROR_LINES: usize = 12;
/// How much of the end of a file is looked at for them, in bytes.
const ERROR_BYTES: u64 = 16 << 10;

/// A run that is to be made.
#[derive(Debug, Clone)]
pub(super) struct PlannedRun {
    pub(super) run: RunId,
    pub(super) plan_name: String,
    pub(super) plan: Arc<Plan>,
    /// Its number among those of its plan, from 1.
    pub(super) number: u32,
    /// How many there are of its plan.
    pub(super) of: u32,
}

/// A run that was made.
#[derive(Debug)]
pub(super) struct TestedRun {
    pub(super) run: RunId,
    pub(super) plan: String,
    pub(super) number: u32,
    pub(super) of: u32,
    pub(super) dir: PathBuf,
    pub(super) steps: u32,
    pub(super) outcome: Outcome,
    pub(super) survival: Survival,
    /// Whether it was ended because it may spend no more.
    pub(super) over_budget: bool,
    pub(super) seconds: f64,
    /// The end of what the program wrote to its standard error.
    pub(super) stderr_end: Vec<String>,
}

impl PlannedRun {
    /// Who answers its calls, and what is planted.
    pub(super) fn arm(&self, calls: Option<&Arc<ReferenceCalls>>) -> (RunId, ExecutionArm) {
        let reference_calls = calls.cloned();
        (
            self.run.clone(),
            ExecutionArm { plan: Some(Arc::clone(&self.plan)), reference_calls, ..ExecutionArm::default() },
        )
    }

    /// What came of it: whether the program survived.
    pub(super) fn came_to(&self, executed: ExecutedRun, allowed: &[String]) -> TestedRun {
        // Beside the recording, which holds nothing but what was recorded. Without it the verdict is the same.
        let output = Masked::new(executed.output.clone());
        let _ = MaskedFile::write_shared(&output_file(&executed.dir, "stdout"), &output);
        let mut survival = verdict::survival(&executed.recording, allowed);
        let over_budget = executed.is_over_budget();
        // What the budget refused did not reach the upstream.
        let unanswered = |finding: &&mut SurvivalFinding| over_budget && finding.kind == FindingKind::Unanswered;
        for finding in survival.findings.iter_mut().filter(unanswered) {
            "the budget holds no call of it".clone_into(&mut finding.says);
        }
        let silent = survival.is_passed() || executed.is_interrupted();
        let said = if silent { Vec::new() } else { last_lines(&output_file(&executed.dir, "stderr")) };
        TestedRun {
            run: executed.run,
            plan: self.plan_name.clone(),
            number: self.number,
            of: self.of,
            dir: executed.dir,
            steps: executed.steps,
            outcome: executed.outcome,
            over_budget,
            survival,
            seconds: executed.took.as_secs_f64(),
            stderr_end: said,
        }
    }
}

/// The last lines of a file; none where there is no such file.
fn last_lines(path: &std::path::Path) -> Vec<String> {
    use std::io::{Read, Seek, SeekFrom};
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(ERROR_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(ERROR_BYTES).read_to_end(&mut bytes)?;
        std::io::Result::Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(ERROR_LINES);
    lines.iter().skip(first).map(|&line| line.to_owned()).collect()
}

impl TestedRun {
    /// What it is called within its test: the plan, and where it has several runs, the number.
    pub(super) fn title(&self) -> String {
        if self.of == 1 { self.plan.clone() } else { format!("{} {}/{}", self.plan, self.number, self.of) }
    }

    /// Its number in messages; empty where its plan has no other run.
    pub(super) fn number_in_words(&self) -> String {
        if self.of == 1 { String::new() } else { format!("run {}", self.number) }
    }

    /// Whether every other run would come to the same: the program calls nobody, the check cannot be run, the budget ended.
    pub(super) fn is_in_vain(&self) -> bool {
        [FindingKind::NoCall, FindingKind::Unanswered, FindingKind::CheckBroken]
            .iter()
            .any(|kind| self.survival.has(*kind))
            || self.over_budget
    }

    pub(super) fn data(&self) -> TestRun<'_> {
        TestRun {
            run: &self.run,
            run_dir: &self.dir,
            number: self.number,
            steps: self.steps,
            seconds: self.seconds,
            outcome: &self.outcome,
            result: self.survival.result,
            findings: &self.survival.findings,
            injections: &self.survival.injections,
            client: &self.survival.client,
        }
    }
}
