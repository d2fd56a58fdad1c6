//! `aegis tasks import --from SET FILE --out TASKS.jsonl`: a public task set, or one's own, becomes a task file of ours.

use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand, builder::PossibleValuesParser};

use super::{Exit, Failure, Finished, escape};
use crate::dataset::task_sets::{self, ImportedTasks, Options, TaskFields, TaskSet, TasksError};

/// Options of `tasks`.
#[derive(Debug, Args)]
pub(super) struct TasksArgs {
    #[command(subcommand)]
    what: TasksAction,
}

#[derive(Debug, Subcommand)]
enum TasksAction {
    /// Read a public task set in its published format: JSON lines, JSON, CSV or Parquet.
    Import(TasksImportArgs),
}

/// Options of `tasks import`.
#[derive(Debug, Args)]
struct TasksImportArgs {
    /// Task set. `generic`: rows of any other, with `--map`.
    #[arg(long, value_name = "SET", value_parser = PossibleValuesParser::new(task_sets::ALL.iter().map(|set| set.name())))]
    from: String,
    /// File or directory of the task set. Nothing is downloaded.
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Task file to write, with its manifest beside it.
    #[arg(long, value_name = "TASKS.jsonl")]
    out: PathBuf,
    /// `generic`: name of the field for `question`, `answer`, `choices` or `id`; repeatable. Default: these words.
    #[arg(long, value_name = "FIELD=NAME")]
    map: Vec<String>,
    /// `gaia`: include tasks about a file, for programs that fetch it themselves.
    #[arg(long)]
    with_files: bool,
    /// Replace an existing file.
    #[arg(long)]
    overwrite: bool,
}

pub(super) fn run(arguments: &TasksArgs, json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    let TasksAction::Import(arguments) = &arguments.what;
    let known = |set: &&&dyn TaskSet| set.name() == arguments.from;
    let set = task_sets::ALL.iter().find(known);
    let set = *set.ok_or_else(|| Failure::new(Exit::Usage, format!("unknown task set `{}`", arguments.from)))?;
    let mut fields = TaskFields::default();
    for pair in &arguments.map {
        fields.add(pair).map_err(|error| Failure::new(Exit::Usage, format!("--map {pair}: {error}")))?;
    }
    if !fields.is_empty() && arguments.from != "generic" {
        let error = format!("`--map` is for `--from generic`: the fields of `{}` have fixed names", arguments.from);
        return Err(Failure::new(Exit::Usage, error));
    }
    let options = Options { fields, with_files: arguments.with_files, overwrite: arguments.overwrite };
    let imported = task_sets::import(set, &arguments.path, &arguments.out, options).map_err(|error| match error {
        error @ TasksError::Io { doing: "write", .. } => Failure::new(Exit::Recording, error),
        error => Failure::new(Exit::Usage, error),
    })?;
    if !json {
        write(&imported, out).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let left_out = imported.rows - imported.tasks;
    let summary = format!("{} tasks of {} rows, {left_out} left out", imported.tasks, imported.rows);
    let data = serde_json::to_value(&imported).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// Whose the tasks are, and what was left out.
fn write(imported: &ImportedTasks, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "source: {} (licence: {})", imported.terms.source, imported.terms.licence)?;
    for (why, rows) in &imported.left_out {
        writeln!(out, "left out: {} × {} (first: {})", rows.rows, escape(why), escape(&rows.first))?;
    }
    if imported.commands > 0 {
        let allow = "a campaign runs them only with `verify.allow_task_commands = true` or `--allow-task-commands`";
        writeln!(out, "commands: {} tasks bring unit tests of the set's authors: {allow}", imported.commands)?;
    }
    if let Some(asked) = imported.terms.keep_private {
        writeln!(out, "note: {asked}")?;
    }
    Ok(())
}
