//! `aegis init`: a first configuration, plan and campaign; from a recorded run, or to begin with.

mod proposed;

use crate::cli::printed::{FirstFiles, printed};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;

use self::proposed::Proposed;
use crate::{
    cli::{Exit, Failure, Finished, OutputFormat, escape},
    launch::shell_word,
    recording::{self, Masked, MaskedFile},
};

/// What a directory gets without a run to begin from: it works as it stands, on the simulator.
const START: [(&str, &str); 4] = [
    ("aegis.toml", include_str!("init/aegis.toml")),
    ("plan.toml", include_str!("init/plan.toml")),
    ("campaign.toml", include_str!("init/campaign.toml")),
    ("tasks.jsonl", include_str!("init/tasks.jsonl")),
];

/// Options of `init`.
#[derive(Debug, Args)]
pub(in crate::cli) struct InitArgs {
    /// Directory for the files, made if missing. Existing files are never replaced.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Recorded run from which to take agents, an error for one of them, and the command.
    #[arg(long, value_name = "RUN_DIR")]
    from: Option<PathBuf>,
}

/// Writes the files.
///
/// # Errors
/// One of them is there already, the run cannot be read or says nothing to plan with, or the directory cannot be written.
pub(super) fn run(arguments: &InitArgs, format: OutputFormat, out: &mut dyn Write) -> Result<Finished, Failure> {
    let files: Vec<(&str, String)> = match &arguments.from {
        None => START.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(),
        Some(run) => {
            let recording = recording::read(run)?;
            let proposed = Proposed::from_recording(&recording).ok_or_else(|| {
                let error = format!(
                    "no model call of `{}` has an answer in words: there is nothing to plan with",
                    run.display()
                );
                Failure::new(Exit::Usage, error).hint("`aegis init DIR` without --from writes a start with comments")
            })?;
            proposed.files()
        }
    };
    let dir = &arguments.dir;
    let there: Vec<&str> = files.iter().map(|(name, _)| *name).filter(|name| dir.join(name).exists()).collect();
    if !there.is_empty() {
        let error = format!("`{}` has {} already, and nothing is replaced", dir.display(), there.join(", "));
        return Err(Failure::new(Exit::Usage, error).hint("name another directory: aegis init DIR"));
    }
    let cannot = |path: &Path, error: std::io::Error| {
        Failure::new(Exit::Usage, format!("cannot write `{}`: {error}", path.display()))
    };
    std::fs::create_dir_all(dir).map_err(|error| cannot(dir, error))?;
    for (name, text) in &files {
        let path = dir.join(name);
        MaskedFile::write_shared(&path, &Masked::new(text.clone())).map_err(|error| cannot(&path, error))?;
    }
    let paths: Vec<String> = files.iter().map(|(name, _)| dir.join(name).display().to_string()).collect();
    if format == OutputFormat::Text {
        let next = next(dir, arguments.from.as_deref());
        let lines = paths.iter().map(|path| format!("wrote  {path}")).chain(next);
        for line in lines {
            writeln!(out, "{}", escape(&line)).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
    }
    let summary = format!("{} files in {}", files.len(), dir.display());
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&FirstFiles { files: &paths }) })
}

/// What to type next.
fn next(dir: &Path, from: Option<&Path>) -> [String; 2] {
    let word = |path: &Path| shell_word(&path.to_string_lossy());
    let against = from.map(|run| format!(" --against {}", word(run))).unwrap_or_default();
    [
        format!("next   aegis plan check {}{against}", word(&dir.join("plan.toml"))),
        format!("       aegis campaign {} --dry-run", word(&dir.join("campaign.toml"))),
    ]
}
