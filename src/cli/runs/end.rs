//! `aegis runs end RUN`: seals runs that nothing serves any more, and derives their labels.

use crate::cli::printed::{EndedRuns, RunEnd, printed};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    cli::{Exit, Failure, Finished, Global, OutputFormat, counted, escape, terminal},
    recording::{self, RecordingError},
    ruling,
};

/// Options of `runs end`.
#[derive(Debug, Args)]
pub(super) struct EndArgs {
    /// Directories of runs that nothing serves. A run that was ended before stays as it is.
    #[arg(value_name = "RUN_DIR", required = true)]
    runs: Vec<PathBuf>,
}

pub(super) fn run(arguments: &EndArgs, global: &Global) -> Result<Finished, Failure> {
    let mut ended = Vec::new();
    for dir in &arguments.runs {
        let steps = end(dir)?;
        if global.format == OutputFormat::Text {
            let (name, steps) = (escape(&dir.display().to_string()), counted(steps, "step"));
            let line = writeln!(terminal::stdout(), "ended {name}  {steps}");
            line.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
        ended.push(RunEnd { run_dir: dir.display().to_string(), steps });
    }
    let summary = format!("{} ended", counted(ended.len(), "run"));
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&EndedRuns { ended }) })
}

/// Seals a run and rules on it. Gives its steps.
fn end(dir: &Path) -> Result<usize, Failure> {
    // The seal is for good: a run's name, which a path may end without, is looked for in it.
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    recording::seal_left(&absolute).map_err(|error| match &error {
        RecordingError::Locked { run, .. } => {
            let hint = format!("whoever serves it ends it: POST /aegis/v1/runs/{run}/end on its control listener");
            Failure::from(error).hint(hint)
        }
        _ => Failure::from(error),
    })?;
    let recording = recording::read(&absolute)?;
    let steps = recording.trajectory.steps.len();
    if recording.manifest.plan.is_some() {
        ruling::settle(&absolute, None)?.ok();
    }
    Ok(steps)
}
