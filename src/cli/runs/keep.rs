//! `aegis runs keep RUN_DIR…` and `release`: whether runs stay, whatever is pruned.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    cli::{
        Exit, Failure, Finished, Global, OutputFormat, counted, escape,
        printed::{KeepChange, printed},
        terminal,
    },
    recording::{self, RecordingError},
};

/// Options of `runs keep`.
#[derive(Debug, Args)]
pub(super) struct KeepRunArgs {
    #[command(flatten)]
    named: NamedRuns,
    /// Who keeps them, as `kept.json` says it. Default: `USER` of the environment.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

/// The runs, which is all that `runs release` takes.
#[derive(Debug, Args)]
pub(super) struct NamedRuns {
    /// Directories of runs, also of such as go on.
    #[arg(value_name = "RUN_DIR", required = true)]
    runs: Vec<PathBuf>,
}

pub(super) fn keep(arguments: &KeepRunArgs, global: &Global) -> Result<Finished, Failure> {
    let user = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    let by = arguments.by.clone().or_else(user).filter(|by| !by.is_empty());
    change_each(&arguments.named.runs, true, global, |dir| recording::keep_run(dir, by.as_deref()))
}

pub(super) fn release(named: &NamedRuns, global: &Global) -> Result<Finished, Failure> {
    change_each(&named.runs, false, global, recording::release_run)
}

fn change_each(
    runs: &[PathBuf],
    keeps: bool,
    global: &Global,
    change: impl Fn(&Path) -> Result<(), RecordingError>,
) -> Result<Finished, Failure> {
    let word = if keeps { "kept" } else { "released" };
    for dir in runs {
        change(dir)?;
        if global.format == OutputFormat::Text {
            let line = writeln!(terminal::stdout(), "{word} {}", escape(&dir.display().to_string()));
            line.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
    }
    let summary = format!("{} {word}", counted(runs.len(), "run"));
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&KeepChange { kept: keeps, run_dirs: runs }) })
}
