//! The steps of a run as a table that fits the terminal: what does not fit goes, the least needed first.

use std::io::{self, Write};

use super::{injected_text, millis, status_text};
use crate::{
    cli::{
        escape,
        screen::{Colour, Screen, fitted},
    },
    surface::account,
    trajectory::Step,
    viewer::{ReplyOrigins, StepView, Suspected, Traced, first_words},
};

/// The least that a reply is shown in, in columns.
const REPLY_MIN: usize = 30;
/// The most that a name is shown in.
const NAME_MAX: usize = 28;

/// A column: its title, whether it holds numbers, and how soon it goes where there is no room; 0 never goes.
const COLUMNS: [(&str, bool, u8); 7] = [
    ("step", true, 0),
    ("call", true, 3),
    ("agent", false, 0),
    ("status", false, 0),
    ("ms", true, 2),
    ("tokens", true, 1),
    ("injected", false, 0),
];

/// Writes the steps, a line each.
pub(super) fn write(
    steps: &[&Step],
    origins: &ReplyOrigins,
    traced: Option<&Traced>,
    suspected: Option<&Suspected>,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows: Vec<[String; 7]> = steps.iter().map(|step| cells(step, origins)).collect();
    let widths: Vec<usize> = COLUMNS
        .iter()
        .enumerate()
        .map(|(column, (title, ..))| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(title.len())
        })
        .collect();
    let marks: Vec<Option<String>> = steps.iter().map(|step| mark(step, traced, suspected)).collect();
    let mark = marks.iter().flatten().map(|mark| mark.chars().count() + 2).max().unwrap_or(0);
    let kept = visible_columns(&widths, screen.width.saturating_sub(mark));
    let taken: usize = kept.iter().filter_map(|column| widths.get(*column)).map(|width| width + 2).sum();
    let room = screen.width.saturating_sub(taken + mark).max(1);
    let titles = COLUMNS.map(|(title, ..)| title.to_owned());
    let head = line(&titles, &kept, &widths, "reply");
    writeln!(out, "{}", screen.paint(Colour::Faint, head.trim_end()))?;
    for ((row, step), mark) in rows.iter().zip(steps).zip(&marks) {
        let reply = fitted(&escape(&first_words(&StepView::new(step).reply_text(), room)), room);
        let text = line(row, &kept, &widths, &reply);
        let text = text.trim_end();
        let failed = step.last_attempt().is_some_and(|last| !last.is_answered());
        let painted = match (step.injected.iter().any(|error| error.delivered), failed) {
            (true, _) => screen.paint(Colour::Planted, text),
            (false, true) => screen.paint(Colour::Bad, text),
            (false, false) => text.to_owned(),
        };
        let mark = mark.as_ref().map(|mark| format!("  {}", screen.paint(Colour::Strong, mark))).unwrap_or_default();
        writeln!(out, "{painted}{mark}")?;
    }
    Ok(())
}

/// What a trace found of a step, else that methods suspect it: who they are stands in the head. Then how much of it was read, where
/// that is not all.
fn mark(step: &Step, traced: Option<&Traced>, suspected: Option<&Suspected>) -> Option<String> {
    let found = traced.and_then(|traced| traced.mark(step.step));
    let found = found.or_else(|| suspected?.is_suspect(step.step).then(|| "◇ suspected".to_owned()));
    let account = account::of_step(step);
    let read = (!account.is_whole()).then(|| account.words().to_owned());
    let marks: Vec<String> = found.into_iter().chain(read).collect();
    (!marks.is_empty()).then(|| marks.join("  "))
}

/// The columns that there is room for beside the replies.
fn visible_columns(widths: &[usize], room: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..COLUMNS.len()).collect();
    for soon in 1..=3 {
        let taken: usize = kept.iter().filter_map(|column| widths.get(*column)).map(|width| width + 2).sum();
        if taken + REPLY_MIN <= room {
            break;
        }
        kept.retain(|column| COLUMNS.get(*column).is_none_or(|(.., goes)| *goes != soon));
    }
    kept
}

fn line(row: &[String; 7], kept: &[usize], widths: &[usize], reply: &str) -> String {
    let cells = kept.iter().filter_map(|column| {
        let (cell, width) = (row.get(*column)?, *widths.get(*column)?);
        let (_, number, _) = COLUMNS.get(*column)?;
        Some(if *number { format!("{cell:>width$}") } else { format!("{cell:width$}") })
    });
    let mut cells: Vec<String> = cells.collect();
    cells.push(reply.to_owned());
    cells.join("  ")
}

fn cells(step: &Step, origins: &ReplyOrigins) -> [String; 7] {
    let attribution = &step.attribution;
    let instance = if attribution.instance > 0 { format!("#{}", attribution.instance) } else { String::new() };
    // No label may name it: whose it is, or which of its agent's calls, is not sure.
    let doubt = if attribution.ambiguous || step.overlapping { "?" } else { "" };
    let last = step.last_attempt();
    let usage = last.and_then(|attempt| attempt.usage);
    let name = fitted(&escape(attribution.agent.as_str()), NAME_MAX);
    [
        step.step.to_string(),
        step.call.to_string(),
        format!("{name}{instance}{doubt}"),
        status_text(step, origins.of_step(step)),
        last.and_then(|attempt| attempt.last_byte_us).map(millis).unwrap_or_default(),
        usage.map(|usage| format!("{}>{}", usage.input, usage.output)).unwrap_or_default(),
        injected_text(step),
    ]
}
