//! `aegis runs keep RUN_DIR…` and `release`: whether runs stay, whatever is pruned.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    cli::{
        Exit, Failure, Finished, Global, OutputFormat, counted, escape,
        printed::{KeepChange, printed},
    },
    recording,
};

/// Options of `runs keep` and `runs release`.
#[derive(Debug, Args)]
pub(super) struct KeepRunArgs {
    /// Directories of runs, also of such as go on.
    #[arg(value_name = "RUN_DIR", required = true)]
    runs: Vec<PathBuf>,
}

pub(super) fn run(arguments: &KeepRunArgs, keeps: bool, global: &Global) -> Result<Finished, Failure> {
    let change = |dir: &Path| if keeps { recording::keep_run(dir, None) } else { recording::release_run(dir) };
    let word = if keeps { "kept" } else { "released" };
    for dir in &arguments.runs {
        change(dir)?;
        if global.format == OutputFormat::Text {
            let line = writeln!(io::stdout(), "{word} {}", escape(&dir.display().to_string()));
            line.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
    }
    let runs = &arguments.runs;
    let summary = format!("{} {word}", counted(runs.len(), "run"));
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&KeepChange { kept: keeps, run_dirs: runs }) })
}
