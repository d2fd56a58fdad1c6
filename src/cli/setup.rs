//! Verbs about this machine: what is wrong with the set-up, completions for shells, manual pages.

mod doctor;

use std::{io::Write, path::PathBuf};

use clap::{Args, CommandFactory, Subcommand};

use super::{Cli, Exit, Failure, Global, OutputFormat, escape};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(super) enum SetupVerb {
    /// Say what of the set-up works and what does not, and what to do; no model is asked.
    Doctor(doctor::DoctorArgs),
    /// Print what a shell needs to complete commands.
    Completions(CompletionsArgs),
    /// Write the manual pages.
    Man(ManArgs),
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Where to; made if it is not there. `man -l DIR/aegis.1` reads them.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(super) fn run(verb: &SetupVerb, global: &Global) -> Result<Exit, Failure> {
    let mut out = std::io::stdout().lock();
    match verb {
        SetupVerb::Doctor(arguments) => {
            let checks = doctor::examine(arguments)?;
            let text = match global.format {
                OutputFormat::Json => super::pretty(&checks)?,
                OutputFormat::Text => checks.iter().map(|check| escape(&check.text())).collect(),
            };
            super::print(&text, &mut out)?;
            Ok(if checks.iter().any(doctor::Examined::is_wrong) { Exit::Finding } else { Exit::Ok })
        }
        SetupVerb::Completions(arguments) => {
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut Cli::command(), "aegis", &mut script);
            out.write_all(&script).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
            Ok(Exit::Ok)
        }
        SetupVerb::Man(arguments) => {
            let cannot = |error: std::io::Error| {
                Failure::new(Exit::Usage, format!("cannot write `{}`: {error}", arguments.dir.display()))
            };
            std::fs::create_dir_all(&arguments.dir).map_err(cannot)?;
            clap_mangen::generate_to(Cli::command(), &arguments.dir).map_err(cannot)?;
            Ok(Exit::Ok)
        }
    }
}
