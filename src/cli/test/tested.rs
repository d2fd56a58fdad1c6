//! One run of a test: the program under a plan, and whether it survived.

use std::{path::PathBuf, sync::Arc, time::Instant};

use serde_json::json;

use crate::{
    cli::{Failure, trial},
    execution::{Console, ErrorOutput, Execution, ExecutionArm, ExecutionError, Executor, Judge, Meter, Program},
    launch::Echo,
    plan::Plan,
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
    pub(super) said: Vec<String>,
}

/// The program that is tested.
#[derive(Debug, Clone)]
pub(super) struct TestedProgram {
    pub(super) program: Program,
    pub(super) judge: Judge,
    /// What the calls of all runs are paid from, where anything bounds them.
    pub(super) meter: Option<Arc<Meter>>,
}

/// A file of a run's program, beside the run's directory.
fn beside(run_dir: &std::path::Path, ending: &str) -> PathBuf {
    let name = run_dir.file_name().unwrap_or_default().to_string_lossy();
    run_dir.with_file_name(format!("{name}.{ending}.txt"))
}

/// Makes one run.
///
/// # Errors
/// The program cannot be started, or the run cannot be recorded.
pub(super) async fn test_run(
    executor: &Executor,
    tested: &TestedProgram,
    planned: &PlannedRun,
) -> Result<TestedRun, Failure> {
    let begun = Instant::now();
    let TestedProgram { program, judge, meter } = tested;
    let dir = executor.listening().proxy.runs.template().log_dir.join(planned.run.as_str());
    let errors = match program.console.echo {
        Echo::Silent => ErrorOutput::File(beside(&dir, "stderr")),
        _ => ErrorOutput::Ours,
    };
    let program = Program { console: Console { errors, ..program.console.clone() }, ..program.clone() };
    let arm = ExecutionArm { plan: Some(Arc::clone(&planned.plan)), ..ExecutionArm::default() };
    let mut execution = Execution::new(&planned.run, &program, arm, judge);
    if let Some(meter) = meter {
        execution = execution.paid_by(meter, &executor.listening().proxy);
    }
    let executed = executor.execute(execution).await.map_err(|error| match error {
        ExecutionError::Launch(error) => Failure::new(super::Exit::Usage, error)
            .hint("is it installed, spelt so, and on PATH? try the command without `aegis test`"),
        error => trial::failed(error),
    })?;
    // Beside the recording, which holds nothing but what was recorded. Without it the verdict is the same.
    let _ = std::fs::write(beside(&dir, "stdout"), &executed.output);
    let mut survival = verdict::survival(&executed.recording);
    let over_budget = executed.is_over_budget();
    // What the budget refused did not reach the upstream.
    let unanswered = |finding: &&mut SurvivalFinding| over_budget && finding.kind == FindingKind::Unanswered;
    for finding in survival.findings.iter_mut().filter(unanswered) {
        "the budget holds no call of it".clone_into(&mut finding.says);
    }
    let silent = survival.is_passed() || executed.is_interrupted();
    let said = if silent { Vec::new() } else { last_lines(&beside(&dir, "stderr")) };
    Ok(TestedRun {
        run: executed.run,
        plan: planned.plan_name.clone(),
        number: planned.number,
        of: planned.of,
        dir: executed.dir,
        steps: executed.steps,
        outcome: executed.outcome,
        over_budget,
        survival,
        seconds: begun.elapsed().as_secs_f64(),
        said,
    })
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

    /// Whether every other run would come to the same: the program calls nobody, the check cannot be run, the budget ended.
    pub(super) fn is_in_vain(&self) -> bool {
        [FindingKind::NoCall, FindingKind::Unanswered, FindingKind::CheckBroken]
            .iter()
            .any(|kind| self.survival.has(*kind))
            || self.over_budget
    }

    pub(super) fn data(&self) -> serde_json::Value {
        json!({
            "run": self.run, "run_dir": self.dir, "number": self.number, "steps": self.steps,
            "seconds": self.seconds, "outcome": self.outcome, "result": self.survival.result,
            "findings": self.survival.findings, "injections": self.survival.injections,
            "client": self.survival.client,
        })
    }
}
