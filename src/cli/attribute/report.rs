//! The report of one run: who, which step, the words, why, what would repair it, what other methods said, what to type next.

use std::io::{self, Write};

use super::logs::{Logs, RunLog};
use crate::{
    attribution::{Attributed, methods::PredictedStep},
    cli::escape,
    launch::shell_word,
};

/// The first prediction in a few words, or why there is none.
pub(super) fn named(row: &Attributed) -> String {
    match (row.predictions.first(), &row.abstained) {
        (Some(_), _) if row.set => row.predictions.iter().map(culprit).collect::<Vec<_>>().join(", "),
        (Some(found), _) => culprit(found),
        (None, None) if row.set => "nobody erred".to_owned(),
        (None, Some(why)) => format!("no prediction: {}", why.name()),
        (None, None) => "no prediction".to_owned(),
    }
}

/// A culprit in a few words.
fn culprit(found: &PredictedStep) -> String {
    let step = found.step.map_or_else(|| "at an unnamed step".to_owned(), |step| format!("at step {step}"));
    format!("{} {step}", found.agent.as_deref().unwrap_or("an unnamed agent"))
}

/// The command that settles what a log only suggests, for a recorded run.
pub(super) fn next(logs: &Logs, rows: &[Vec<Attributed>]) -> Option<String> {
    let run = logs.recorded.as_ref()?;
    let step = rows.first()?.last()?.predictions.first()?.step?;
    let show = format!("aegis show {} --step {step}", shell_word(&run.to_string_lossy()));
    let trace = logs.trace.as_ref().map(|line| format!("    then, to prove it by execution: {line}"));
    Some(format!("{show}{}", trace.unwrap_or_default()))
}

pub(super) fn write(log: &RunLog, rows: &[Attributed], next: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    let Some(last) = rows.last() else { return Ok(()) };
    writeln!(out, "{}", escape(&format!("{}  {}", log.run.id, named(last))))?;
    // Of a combined row the words are those of the method that named the step.
    let step = last.predictions.first().and_then(|found| found.step);
    let words = |found: &&PredictedStep| found.step == step && !found.reason.is_empty();
    let spoken = rows.iter().filter(|row| row.method != crate::attribution::methods::COMBINED);
    let found = spoken.filter_map(|row| row.predictions.first()).find(words).or(last.predictions.first());
    if let Some(found) = found {
        details(log, found, out)?;
    }
    writeln!(out)?;
    for row in rows {
        let said = if let Some(why) = &row.abstained {
            format!("{}: {}", named(row), why.reason().chars().take(100).collect::<String>())
        } else {
            let score = row.predictions.first().and_then(|found| found.score);
            format!("{}{}", named(row), score.map(|score| format!("  score {score:.2}")).unwrap_or_default())
        };
        let took = if row.calls > 0 {
            format!("  ({} calls, {} tokens)", row.calls, row.tokens_in + row.tokens_out)
        } else {
            String::new()
        };
        writeln!(out, "  {:<15} {}{took}", row.method, escape(&said))?;
        if let Some(interval) = &row.interval {
            let (first, last, percent) = (interval.first, interval.last, (1.0 - interval.alpha) * 100.0);
            writeln!(
                out,
                "  {:<15} steps {first} to {last} at {percent:.0} %, from {} labelled runs",
                "", interval.rows
            )?;
        }
        if row.cuts.steps > 0 {
            writeln!(
                out,
                "  {:<15} {} steps and {} characters of the log were cut to fit",
                "", row.cuts.steps, row.cuts.characters
            )?;
        }
    }
    writeln!(out, "\nA log only suggests: this is a prediction, and no label was written.")?;
    match next {
        Some(next) => writeln!(out, "next  {}", escape(next)),
        None => Ok(()),
    }
}

fn details(log: &RunLog, found: &PredictedStep, out: &mut dyn Write) -> io::Result<()> {
    let mut line = |name: &str, text: &str| {
        if text.is_empty() {
            Ok(())
        } else {
            writeln!(out, "  {name:<9} {}", escape(&text.split_whitespace().collect::<Vec<_>>().join(" ")))
        }
    };
    for evidence in &found.evidence {
        let stands = if evidence.stands { String::new() } else { "  (these words do not stand there)".to_owned() };
        line("words", &format!("step {}: \"{}\"{stands}", evidence.step, evidence.quote))?;
    }
    if found.evidence.is_empty()
        && let Some(turn) = found.step.and_then(|step| log.run.turn(step))
    {
        line("said", &turn.words_and_calls().chars().take(240).collect::<String>())?;
    }
    line("why", &found.reason)?;
    line("repair", &found.fix)?;
    line("mode", found.failure_mode.as_deref().unwrap_or_default())?;
    line("conflict", found.conflict.as_deref().unwrap_or_default())?;
    line("speaker", found.agent_of_step.as_deref().unwrap_or_default())
}
