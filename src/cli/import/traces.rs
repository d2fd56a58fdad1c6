//! `aegis import --from otlp|inspect|atif|langfuse|log FILE… --log-dir DIR`: traces of others become runs.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use super::{Exit, Failure, Finished, ImportArgs, SHOWN, escape};
use crate::{
    cli::{Config, counted},
    foreign::{self, FieldNames, ForeignError, ForeignImport, ForeignOptions, ForeignTrace, Grouping, RecordedForeign},
    launch::shell_word,
    recording::GivenRoster,
    surface::account::RunAccount,
    viewer::{first_words, word},
};

/// What of several traces is one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Group {
    /// Each trace.
    Trace,
    /// All traces with the same `gen_ai.conversation.id` or `session.id`.
    Session,
    /// All traces of a file, for tracers that start a trace per call.
    File,
}

pub(super) fn run(
    format: &dyn ForeignTrace,
    arguments: &ImportArgs,
    json: bool,
    out: &mut dyn Write,
) -> Result<Finished, Failure> {
    let paths = &arguments.paths;
    if arguments.out.is_some() {
        let error = format!("--from {}: traces become runs, and no dataset: say `--log-dir DIR`", format.name());
        let hint = format!("aegis import --from {} FILE --log-dir DIR", format.name());
        return Err(Failure::new(Exit::Usage, error).hint(hint));
    }
    let config = Config::load(arguments.config.as_deref())?;
    let log_dir = arguments.log_dir.clone().or_else(|| config.log_dir.clone()).unwrap_or_else(|| PathBuf::from("logs"));
    let grouping = match arguments.run_by {
        Group::Trace => Grouping::Trace,
        Group::Session => Grouping::Session,
        Group::File => Grouping::File,
    };
    let file = config.file.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let options = ForeignOptions {
        grouping,
        overwrite: arguments.overwrite,
        names: field_names(format, arguments)?,
        settings: config.recording()?,
        roster: (!config.agent.is_empty()).then(|| GivenRoster { file, rules: config.agent.clone() }),
    };
    let imported = foreign::import(format, paths, &log_dir, &options).map_err(|error| match error {
        ForeignError::Recording(error) => error.into(),
        other => Failure::new(Exit::Usage, other),
    })?;
    if !json {
        write(&imported, &log_dir, out).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let calls: u64 = imported.runs.iter().map(|run| run.calls).sum();
    let mut account = RunAccount::default();
    imported.runs.iter().for_each(|run| account += run.account);
    let summary = format!(
        "{} with {}{} from {}, {}; in {}",
        many(imported.runs.len() as u64, "run"),
        many(calls, "call"),
        stated(&account),
        many(imported.files, "file"),
        many(imported.defects.len() as u64, "defect"),
        log_dir.display()
    );
    let data = serde_json::to_value(&imported).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// A line a run, what its trace lacks, and what could not be read.
fn write(imported: &ForeignImport, log_dir: &Path, out: &mut dyn Write) -> io::Result<()> {
    for run in &imported.runs {
        line(run, out)?;
    }
    for defect in imported.defects.iter().take(SHOWN) {
        let line = defect.line.map(|line| format!(":{line}")).unwrap_or_default();
        writeln!(out, "not read: {}{line}: {}", escape(&defect.file), escape(&defect.why))?;
    }
    if let Some(more) = imported.defects.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        writeln!(out, "and {more} more, with `--format json`")?;
    }
    if imported.empty > 0 {
        writeln!(out, "without a model call: {} traces", imported.empty)?;
    }
    let alone = imported.runs.iter().filter(|run| run.calls == 1).count();
    if imported.from == "otlp" && alone > 1 && alone == imported.runs.len() {
        writeln!(
            out,
            "each run is one call: if the tracer gave each a trace of its own, `--run-by file` makes one of a file"
        )?;
    }
    if let Some(first) = imported.runs.first() {
        writeln!(out, "next: aegis show {}", escape(&shell_word(&log_dir.join(first.run.as_str()).to_string_lossy())))?;
    }
    Ok(())
}

/// What the user calls the fields of a log.
fn field_names(format: &dyn ForeignTrace, arguments: &ImportArgs) -> Result<FieldNames, Failure> {
    let mut names = FieldNames::default();
    for pair in &arguments.map {
        names.add(pair).map_err(|error| Failure::new(Exit::Usage, format!("--map {pair}: {error}")))?;
    }
    if !arguments.map.is_empty() && format.name() != "log" {
        let error = format!("--from {}: `--map` names the fields of a plain log", format.name());
        return Err(Failure::new(Exit::Usage, error).hint("aegis import --from log FILE --map agent=who"));
    }
    Ok(names)
}

/// So many of something, in words.
fn many(count: u64, what: &str) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), what)
}

/// How many steps were not read whole, behind their number; nothing where all were.
fn stated(account: &RunAccount) -> String {
    let counted = account.counted();
    if counted.is_empty() { String::new() } else { format!(" ({})", counted.join(", ")) }
}

fn line(run: &RecordedForeign, out: &mut dyn Write) -> io::Result<()> {
    let agents: Vec<String> = run.agents.iter().map(|(agent, calls)| format!("{agent} {calls}")).collect();
    let evidence =
        if run.evidence.is_empty() { String::new() } else { format!(" ({})", first_words(&run.evidence, 80)) };
    let text = format!(
        "{}  {}{}: {}  {}{evidence}",
        run.run,
        many(run.calls, "call"),
        stated(&run.account),
        agents.join(", "),
        word(&run.outcome)
    );
    writeln!(out, "{}", escape(&text))?;
    let remade = &run.remade;
    let lacks = [
        (remade.without_request, "without a request"),
        (remade.without_reply, "without a reply"),
        (remade.failed, "failed"),
        (remade.unnamed, "of agents that the trace does not name"),
        (remade.untimed, "without a time"),
    ];
    let lacks = lacks
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", many(count, "call")));
    let left_out = run.left_out.iter().map(|(what, count)| format!("left out: {what} ({count})"));
    let said: Vec<String> = lacks.chain(left_out).collect();
    if !said.is_empty() {
        writeln!(out, "  {}", escape(&said.join(", ")))?;
    }
    let unplaced: Vec<String> = run.unplaced.iter().map(|(name, count)| format!("`{name}` ({count})")).collect();
    if unplaced.is_empty() {
        return Ok(());
    }
    writeln!(out, "  partly read: text that no reader knows in {}", escape(&unplaced.join(", ")))
}
