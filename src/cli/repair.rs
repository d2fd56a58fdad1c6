//! `aegis repair RUN`: cuts a torn end, ends a run whose writer was killed, or rescues what can be read of a damaged
//! run into a new one.

use crate::cli::printed::{RepairedRun, printed};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Exit, Failure, Finished};
use crate::{
    launch::shell_word,
    recording::{self, RecordingError},
    ruling::{self, NoLabel, Ruling},
};

/// Options of `repair`.
#[derive(Debug, Args)]
pub(super) struct RepairArgs {
    /// Directory of the run.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
    /// Copy all intact records into a new run directory.
    #[arg(long)]
    salvage: bool,
    /// Seal a run whose writer was killed, and derive its label.
    #[arg(long, conflicts_with = "salvage")]
    seal: bool,
    /// New run directory.
    #[arg(long, value_name = "DIR", requires = "salvage", default_value = None)]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &RepairArgs, json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    let target = arguments.salvage.then(|| {
        arguments.out.clone().unwrap_or_else(|| {
            let mut name = arguments.dir.file_name().unwrap_or_default().to_owned();
            name.push("-salvaged");
            arguments.dir.with_file_name(name)
        })
    });
    let repaired = recording::repair(&arguments.dir, target.as_deref()).map_err(|error| {
        let salvage = format!("aegis repair {} --salvage", shell_word(&arguments.dir.to_string_lossy()));
        let hint = match &error {
            RecordingError::Corrupt { .. } | RecordingError::SealLost { .. } => {
                Some(format!("`{salvage}` copies what can be read into a new directory"))
            }
            RecordingError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Some(format!("`{salvage} --out DIR` names another directory"))
            }
            _ => None,
        };
        let failure = Failure::from(error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if arguments.seal {
        // The seal is for good: a run's name, which a path may end without, is looked for in it.
        let dir = std::path::absolute(&arguments.dir).unwrap_or_else(|_| arguments.dir.clone());
        recording::seal_left(&dir)?;
        ruling::settle(&dir, None)?.ok();
    }
    let dir = target.as_ref().unwrap_or(&arguments.dir).display().to_string();
    let differs = differing(Path::new(&dir))?;
    let written = if json {
        writeln!(out, "{}", printed(&RepairedRun { run_dir: &dir, repaired: &repaired, differs: &differs }))
    } else {
        let recording::Repaired { records, lost, torn_bytes, steps } = repaired;
        writeln!(
            out,
            "{}: {records} records, {steps} steps; {lost} records lost, {torn_bytes} bytes of a torn end moved",
            super::escape(&dir)
        )
        .and_then(|()| differs.iter().try_for_each(|why| writeln!(out, "differs  {}", super::escape(why))))
    };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let sealed = if arguments.seal { ", sealed" } else { "" };
    let summary = format!("{dir}  {} records kept, {} lost{sealed}", repaired.records, repaired.lost);
    let exit = if differs.is_empty() { Exit::Ok } else { Exit::Recording };
    Ok(Finished { exit, summary, data: serde_json::Value::Null })
}

/// What lies beside the log and is not as it was written, or not as the log says.
fn differing(dir: &Path) -> Result<Vec<String>, Failure> {
    let recording = recording::read(dir)?;
    let edited = recording
        .edited
        .iter()
        .map(|name| format!("`{name}` differs from its hash: it was edited after it was written"));
    let label = recording.label.as_ref().and_then(|label| Ruling::new(&recording).objects_to(label));
    let label = label.filter(|why| *why == NoLabel::DiffersFromLog).map(|why| why.to_string());
    Ok(edited.chain(label).collect())
}
