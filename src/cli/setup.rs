//! Verbs about this machine: what is wrong with the set-up, first files, tokens, completions for shells, manual pages.

pub(super) mod doctor;
mod init;
mod reference;
mod schemas;
mod token;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

use super::{
    Exit, Failure, Finished, Global, OutputFormat, examples,
    output::{OutputFile, Replaces, ReportKind},
    screen::Screen,
    terminal,
};
use crate::recording::{Masked, MaskedFile};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(super) enum SetupVerb {
    /// Check the set-up and say what to do; asks no model.
    Doctor(doctor::DoctorArgs),
    /// Write a first aegis.toml, plan and campaign, from a recorded run or with comments.
    Init(init::InitArgs),
    /// Make a token for a user of `serve --tokens`, and the entry that knows it by its hash.
    Token(token::TokenEntryArgs),
    /// Print shell completions.
    Completions(CompletionsArgs),
    /// Write the manual pages.
    Man(ManArgs),
    /// Write the reference pages of the documentation, or the schemas of files and outputs.
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// Shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Directory for the pages, made if missing; `man -l DIR/aegis.1` shows them.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Options of `reference`.
#[derive(Debug, Args)]
pub(super) struct ReferenceArgs {
    /// Directory for the files, made if missing.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Write the JSON Schemas of every file and of each verb's JSON, and the `OpenAPI` document, instead of the pages.
    #[arg(long)]
    schemas: bool,
}

pub(super) fn run(verb: &SetupVerb, global: &Global) -> Result<Exit, Failure> {
    let mut out = terminal::stdout();
    match verb {
        SetupVerb::Doctor(arguments) => {
            let checks = doctor::examine(arguments)?;
            let text = match global.format {
                OutputFormat::Json => super::pretty(&checks)?,
                OutputFormat::Text => {
                    let screen = Screen::stdout(global);
                    checks.iter().map(|check| check.painted(screen)).collect()
                }
            };
            super::print(&text, &mut out)?;
            let wrong = checks.iter().filter(|check| check.is_wrong()).count();
            let (exit, summary) = match wrong {
                0 => (Exit::Ok, format!("{} things looked at, nothing wrong", checks.len())),
                _ => (Exit::Finding, format!("{wrong} of {} things are wrong", checks.len())),
            };
            Ok(Finished { exit, summary, data: serde_json::Value::Null }.say(global))
        }
        SetupVerb::Init(arguments) => Ok(init::run(arguments, global.format, &mut out)?.say(global)),
        SetupVerb::Token(arguments) => Ok(token::run(arguments, global.format, &mut out)?.say(global)),
        SetupVerb::Reference(arguments) => {
            if arguments.schemas {
                write_pages(&arguments.dir, &schemas::written())?;
            } else {
                write_pages(&arguments.dir, &reference::pages())?;
            }
            Ok(Exit::Ok)
        }
        SetupVerb::Completions(arguments) => {
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut examples::command(), "aegis", &mut script);
            out.write_all(&script).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
            Ok(Exit::Ok)
        }
        SetupVerb::Man(arguments) => {
            write_manual(&arguments.dir)?;
            Ok(Exit::Ok)
        }
    }
}

/// Writes the manual pages; earlier ones are replaced, and nothing else.
fn write_manual(dir: &Path) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Usage, format!("cannot write the manual pages of `{}`: {error}", dir.display()))
    };
    let made = tempfile::tempdir().map_err(cannot)?;
    clap_mangen::generate_to(examples::command(), made.path()).map_err(cannot)?;
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(made.path()).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        pages.push((dir.join(entry.file_name()), Masked::new(std::fs::read(entry.path()).map_err(cannot)?)));
    }
    let named = |path| OutputFile::named(path, Replaces::Earlier(ReportKind::Manual));
    let files = pages.iter().map(|(path, _)| named(path)).collect::<Result<Vec<_>, _>>()?;
    files.iter().zip(&pages).try_for_each(|(file, (_, text))| file.write(text).map(drop))
}

/// Writes files into a directory, in the place of what is there: who generates documentation does so again and again.
fn write_pages(dir: &Path, pages: &[(impl AsRef<Path>, String)]) -> Result<(), Failure> {
    let cannot = |path: &Path, error: std::io::Error| {
        Failure::new(Exit::Usage, format!("cannot write `{}`: {error}", path.display()))
    };
    std::fs::create_dir_all(dir).map_err(|error| cannot(dir, error))?;
    for (name, text) in pages {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(dir);
        std::fs::create_dir_all(parent).map_err(|error| cannot(parent, error))?;
        MaskedFile::write_shared(&path, &Masked::own_code(text.clone())).map_err(|error| cannot(&path, error))?;
    }
    Ok(())
}
