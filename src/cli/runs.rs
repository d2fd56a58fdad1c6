//! `aegis runs [DIR]`: the recorded runs below a directory, a line each; with `--text`, where they hold some words; with `--since`,
//! what has changed in them; and their end.

mod end;
mod keep;
mod prune;
mod since;
mod texts;

use crate::cli::printed::ListedRuns;
use std::{
    borrow::Cow,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::{Args, Subcommand};
pub(super) use prune::keep_limit;
use serde::Serialize;

use super::{
    Exit, Failure, Finished, Global, OutputFormat, escape,
    screen::{Colour, Screen, fitted},
    terminal,
};
use crate::{
    recording::{USER_MARK, each_in_threads},
    trajectory::Verdict,
    viewer::{Listing, RunRow, outcomes},
};

/// The room that label and trace want, in columns.
const LAST: usize = 34;
/// The narrowest that programs and agents are shown.
const SHRUNK: usize = 8;
/// So many lines are in memory before they are written.
const LINES_AT_ONCE: usize = 8192;

/// Options of `runs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct RunsArgs {
    #[command(subcommand)]
    what: Option<RunsWhat>,
    /// Directory to search, at any depth.
    #[arg(value_name = "DIR", env = "AEGIS_LOG_DIR", default_value = "logs")]
    dir: PathBuf,
    /// Include the runs of traces.
    #[arg(long)]
    trials: bool,
    /// Only runs with a message, tool call, result or reply that holds these words, in any case; with the steps that hold them
    /// first.
    #[arg(long, value_name = "WORDS", conflicts_with = "since")]
    text: Option<String>,
    /// Compare failure rates and signs by agent before and after this moment: start of a run, date, time, or age
    /// (`7d`).
    #[arg(long, value_name = "WHEN|RUN")]
    since: Option<String>,
    /// Rules to apply, or `all` (docs/watch.md). Default: all but `other-result` and `new-number`.
    #[arg(long, value_name = "RULE", value_delimiter = ',', requires = "since")]
    watch_rules: Vec<String>,
    /// Configuration file with the roster, for --since. Default: ./aegis.toml.
    #[arg(long, value_name = "FILE", env = "AEGIS_CONFIG")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum RunsWhat {
    /// End runs that nothing serves any more: seal them and derive their labels.
    End(end::EndArgs),
    /// Keep runs, whatever is pruned: `runs prune` and `serve --keep` never remove them.
    Keep(keep::KeepRunArgs),
    /// Take back that runs are kept.
    Release(keep::NamedRuns),
    /// Remove ended runs that no label, data set, annotation or amendment needs. Without --yes: only say which.
    Prune(prune::PruneArgs),
}

pub(super) fn run(arguments: &RunsArgs, global: &Global) -> Result<Finished, Failure> {
    match &arguments.what {
        Some(RunsWhat::End(arguments)) => return end::run(arguments, global),
        Some(RunsWhat::Keep(arguments)) => return keep::keep(arguments, global),
        Some(RunsWhat::Release(named)) => return keep::release(named, global),
        Some(RunsWhat::Prune(arguments)) => return prune::run(arguments, global),
        None => {}
    }
    if !arguments.dir.exists() {
        let error = format!("there is no directory `{}`", arguments.dir.display());
        return Err(Failure::new(Exit::Usage, error).hint("`aegis runs DIR`, where DIR holds recordings"));
    }
    let mut runs = Listing::scan(std::slice::from_ref(&arguments.dir)).runs;
    runs.retain(|row| arguments.trials || row.trial_of.is_none());
    if let Some(since) = &arguments.since {
        return since::run(&runs, since, &arguments.watch_rules, arguments.config.as_deref(), global);
    }
    if let Some(words) = arguments.text.as_deref().map(str::trim).filter(|words| !words.is_empty()) {
        return texts::run(&runs, words, global);
    }
    let counts: Vec<String> = outcomes(&runs).iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    let left_out = runs.iter().filter(|row| row.sealed && row.account.is_none()).count();
    let left_out = if left_out > 0 { format!("  {left_out} not looked at for their accounts") } else { String::new() };
    let summary = format!("{} runs{counts}{left_out}", runs.len());
    // Of many runs the text would be several times what it says of them: it is written run by run.
    let mut out = io::BufWriter::new(terminal::stdout());
    let written = match global.format {
        OutputFormat::Text => write(&runs, Screen::stdout(global), &mut out),
        OutputFormat::Json => {
            let result = format!("{} {summary}", Exit::Ok.word());
            let report =
                RunsReport { listed: ListedRuns { runs: &runs, texts: None }, result: &result, exit: Exit::Ok.code() };
            serde_json::to_writer(&mut out, &report).map_err(io::Error::from).and_then(|()| out.write_all(b"\n"))
        }
    };
    written.and_then(|()| out.flush()).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    // The process ends here: nobody waits until a hundred thousand rows were freed one by one.
    std::mem::forget(runs);
    Ok(Finished { exit: Exit::Ok, summary, data: serde_json::Value::Null })
}

/// What `--format json` prints.
#[derive(Debug, Serialize)]
struct RunsReport<'a> {
    #[serde(flatten)]
    listed: ListedRuns<'a>,
    result: &'a str,
    exit: u8,
}

/// The lines, newest first; the last column takes what room there is.
fn write(runs: &[Arc<RunRow>], screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    const TITLES: [&str; 7] = ["run", "began", "program", "agents", "calls", "outcome", "label · trace"];
    const MOST: [usize; 6] = [28, 16, 32, 24, 6, 8];
    if runs.is_empty() {
        return Ok(());
    }
    let mut widths: Vec<usize> = TITLES.iter().take(MOST.len()).map(|title| title.len()).collect();
    for lengths in each_in_threads(runs, |row| columns(row).map(|cell| cell.chars().count())) {
        for ((width, most), length) in widths.iter_mut().zip(MOST).zip(lengths) {
            *width = (*width).max(length.min(most));
        }
    }
    shrink(&mut widths, screen.width.saturating_sub(LAST.min(screen.width / 4)));
    let rest = screen.width.saturating_sub(columns_width(&widths));
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, width) in cells.take(widths.len()).zip(&widths).filter(|(_, width)| **width > 0) {
            let fitted = fitted(cell, *width);
            text.push_str(&fitted);
            text.extend(std::iter::repeat_n(' ', width + 2 - fitted.chars().count()));
        }
        text + &cells.next().map(|last| fitted(last, rest)).unwrap_or_default()
    };
    writeln!(out, "{}", screen.paint(Colour::Faint, line(&mut TITLES.into_iter()).trim_end()))?;
    let painted = |row: &Arc<RunRow>| {
        // Of a hundred thousand runs it is felt how often secrets are looked for: once a row.
        let cells = escape(&in_lines(&columns(row), &remarks(row)));
        let text = line(&mut cells.split('\n'));
        let text = text.trim_end();
        match row.outcome {
            Verdict::Failure => screen.paint(Colour::Bad, text),
            Verdict::Success => screen.paint(Colour::Good, text),
            Verdict::Unknown => text.to_owned(),
        }
    };
    for block in runs.chunks(LINES_AT_ONCE) {
        each_in_threads(block, painted).iter().try_for_each(|text| writeln!(out, "{text}"))?;
    }
    Ok(())
}

/// The room that columns take, with what parts them.
fn columns_width(widths: &[usize]) -> usize {
    widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum()
}

/// Makes the columns fit: of programs and agents the wider gives way; where that is not enough, they go, then the time, then
/// the calls, and at last the names of runs are cut.
fn shrink(widths: &mut [usize], room: usize) {
    const PROGRAM: usize = 2;
    let program = widths.get(PROGRAM).copied().unwrap_or(0);
    for gone in [None, Some(3), Some(PROGRAM), Some(1), Some(4)] {
        if let Some(column) = gone.and_then(|column| widths.get_mut(column)) {
            *column = 0;
        }
        if let (Some(3), Some(column)) = (gone, widths.get_mut(PROGRAM)) {
            *column = program;
        }
        while columns_width(widths) > room {
            let wider = [PROGRAM, 3].into_iter().filter_map(|column| Some((*widths.get(column)?, column))).max();
            let Some((width, column)) = wider.filter(|(width, _)| *width > SHRUNK) else { break };
            if let Some(shrunk) = widths.get_mut(column) {
                *shrunk = width - 1;
            }
        }
        if columns_width(widths) <= room {
            return;
        }
    }
    let over = columns_width(widths).saturating_sub(room);
    if let Some(name) = widths.first_mut() {
        *name = name.saturating_sub(over).max(SHRUNK);
    }
}

/// The columns of a run but the last.
fn columns(row: &RunRow) -> [Cow<'_, str>; 6] {
    let state = if row.sealed { "" } else { " *" };
    let program = row.program.as_deref().map(unplaced).or(row.task.as_deref()).unwrap_or_default();
    [
        name(row),
        row.started.get(..16).unwrap_or(&row.started).replace('T', " ").into(),
        program.into(),
        row.agents.join(",").into(),
        (row.calls.map_or_else(|| "?".to_owned(), |calls| calls.to_string()) + state).into(),
        match row.outcome {
            Verdict::Failure => "failure",
            Verdict::Success => "success",
            Verdict::Unknown => "unknown",
        }
        .into(),
    ]
}

/// A run's name: with its user's directory, where it has one.
fn name(row: &RunRow) -> Cow<'_, str> {
    let user = row.dir.parent().and_then(|dir| dir.file_name()?.to_str()).filter(|dir| dir.starts_with(USER_MARK));
    user.map_or(Cow::Borrowed(row.key.as_str()), |user| format!("{user}/{}", row.run).into())
}

/// The last column: what else is known of it.
fn remarks(row: &RunRow) -> String {
    let label = row.label.as_ref().map(|label| label.words()).unwrap_or_default();
    let imported = row.imported.as_ref().map(|format| format!("imported from {format}"));
    let suspected = row.suspected.as_ref().map(|line| format!("suspected: {line}"));
    let account = row.account.map(|account| account.counted().join(", "));
    let beside = [
        row.kept.then(|| "kept".to_owned()),
        imported,
        account,
        Some(label),
        row.trace.clone(),
        suspected,
        row.unreadable.clone(),
        row.class.as_deref().map(str::to_owned),
    ];
    let beside: Vec<String> = beside.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    beside.join(" · ")
}

/// Cells in a line each.
fn in_lines(columns: &[Cow<'_, str>], last: &str) -> String {
    let mut lines = String::new();
    for cell in columns.iter().map(AsRef::as_ref).chain([last]) {
        lines.extend(cell.split(['\n', '\t']).flat_map(|part| [part, " "]));
        lines.pop();
        lines.push('\n');
    }
    lines
}

/// A command without the place of its program: there is room for little, and that is the same in all lines.
fn unplaced(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or_default();
    let name = program.rfind('/').map_or(0, |at| at + 1);
    command.get(name..).unwrap_or(command).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_whatever_the_width() {
        let run = |name: &str| RunRow {
            key: name.to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            program: Some("/usr/bin/python graph.py --task long".into()),
            agents: ["planner", "solver", "critic", "writer"].map(str::to_owned).into(),
            calls: Some(12_345),
            suspected: Some("solver at step 1 (alignment, rules)".to_owned()),
            ..RunRow::default()
        };
        for width in [40, 50, 60, 70, 80, 110, 200] {
            let mut out = Vec::new();
            write(&[run("r"), run("r-0123456789abcdef0123456789")].map(Arc::new), Screen::new(width, false), &mut out)
                .expect("written");
            let text = String::from_utf8(out).expect("text");
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(text.contains("unknown") && (width < 110 || text.contains("python g")), "{width}: {text}");
        }
    }
}
