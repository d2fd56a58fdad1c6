//! `aegis show RUN`: a recorded run in the terminal: what became of it, its steps, one step whole, what was changed.

mod change;
mod data;
mod evidence;
mod traced;
mod view;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;

pub(super) use self::change::words;
use self::{traced::Traced, view::View};
use super::{Exit, Failure, client_verdict, escape};
use crate::{
    recording::{self, Recording},
    trajectory::{Attempt, CloseCause, Label, NoLabel, Outcome, Step, StepIndex, Verdict},
    verdict::{self, Judgement},
};

/// Options of `show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The run's directory.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
    /// Show this step whole: messages, reply, attempts, injections.
    #[arg(long, value_name = "N")]
    step: Option<StepIndex>,
    /// Show what injections changed, word by word.
    #[arg(long)]
    before_after: bool,
    /// Show how the program met faults: what each try met, what the client did, and whether that was well.
    #[arg(long, conflicts_with_all = ["step", "before_after"])]
    verdict: bool,
    /// Write the same as a `JUnit` file: a case a call.
    #[arg(long, value_name = "FILE", requires = "verdict")]
    junit: Option<PathBuf>,
}

pub(super) fn run(arguments: &ShowArgs, json: bool, out: &mut dyn Write) -> Result<Exit, Failure> {
    let recording = recording::read(&arguments.dir)?;
    if arguments.verdict {
        return judged(&recording, arguments.junit.as_deref(), json, out);
    }
    let steps: Vec<&Step> = match arguments.step {
        None => recording.trajectory.steps.iter().collect(),
        Some(number) => vec![find(&recording, number)?],
    };
    let written = if json {
        writeln!(out, "{}", data::of(&recording, &steps, arguments.before_after))
    } else {
        write_text(arguments, &recording, &steps, out)
    };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Exit::Ok)
}

/// How the program met faults; a verdict that is not passed is a finding.
fn judged(
    recording: &Recording,
    junit: Option<&std::path::Path>,
    json: bool,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    let verdict = verdict::read(recording);
    if let Some(path) = junit {
        client_verdict::write_junit(path, recording.manifest.run.as_str(), &verdict)?;
    }
    let written = if json {
        let data = serde_json::json!({"run": recording.manifest.run, "client": verdict});
        writeln!(out, "{data}")
    } else {
        client_verdict::write(&verdict, out)
    };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(if verdict.result == Judgement::Passed { Exit::Ok } else { Exit::Finding })
}

fn find(recording: &Recording, number: StepIndex) -> Result<&Step, Failure> {
    let steps = &recording.trajectory.steps;
    steps.iter().find(|step| step.step == number).ok_or_else(|| {
        let expected = match steps.last() {
            Some(last) => format!("expected 0 to {}", last.step),
            None => "the run has no steps".to_owned(),
        };
        Failure::new(Exit::Usage, format!("step `{number}` is not in the run: {expected}"))
    })
}

fn write_text(arguments: &ShowArgs, recording: &Recording, steps: &[&Step], out: &mut dyn Write) -> io::Result<()> {
    let traced = Traced::of(&arguments.dir);
    if arguments.step.is_none() {
        write_head(recording, traced.as_ref(), out)?;
        if !recording.sealed {
            let dir = escape(&arguments.dir.display().to_string());
            writeln!(out, "next     aegis repair {dir} --seal  if its writer was killed")?;
        }
    }
    match (arguments.step, arguments.before_after) {
        (None, false) => write_table(steps, traced.as_ref(), out),
        (Some(_), false) => steps.iter().try_for_each(|step| view::write_step(step, recording, out)),
        (_, true) => {
            let changed = change::write_all(steps, out)?;
            if changed == 0 { writeln!(out, "no injection changed a byte") } else { Ok(()) }
        }
    }
}

/// The run: what it is, what became of it.
fn write_head(recording: &Recording, traced: Option<&Traced>, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &recording.manifest;
    let state = match (recording.sealed, recording.open_exchanges) {
        (true, 0) => "sealed".to_owned(),
        (true, open) => format!("sealed, {open} exchanges never closed"),
        (false, open) => format!("not sealed, {open} exchanges open"),
    };
    let mut line = |name: &str, value: &str| writeln!(out, "{name:9}{}", escape(value));
    line("run", &format!("{}  ({state})", manifest.run))?;
    line("began", &format!("{}  upstream {}", manifest.started, manifest.upstream))?;
    if let Some(task) = &manifest.task {
        line("task", &view::first_words(task, 90))?;
    }
    line("outcome", &outcome_text(&manifest.outcome))?;
    match &recording.label {
        Some(label) => {
            line("label", &label_text(label))?;
            evidence::lines(label).iter().try_for_each(|(name, text)| line(name, text))?;
        }
        None => line("label", &format!("none: {}", why_no_label(recording)))?,
    }
    if let Some(traced) = traced {
        line("trace", &traced.line())?;
    }
    match (&manifest.plan_digest, manifest.seed) {
        (Some(digest), Some(seed)) => {
            line("plan", &format!("{}  seed {seed}", digest.get(..16).unwrap_or(digest)))?;
        }
        _ => line("plan", "none")?,
    }
    for asked in &recording.manipulator_questions {
        let tokens = asked.usage.map(|usage| format!("  tokens {}>{}", usage.input, usage.output)).unwrap_or_default();
        let cost = asked.cost.map(|cost| format!("  cost {cost:.6}")).unwrap_or_default();
        let error = asked.error.as_ref().map(|error| format!("  {error}")).unwrap_or_default();
        let took = millis(asked.took_us);
        line(
            "asked",
            &format!("{} at step {}: {}  {took} ms{tokens}{cost}{error}", asked.model, asked.step, asked.template),
        )?;
    }
    for failure in &recording.manipulator_failures {
        let text = format!("`{}` failed at step {}: {}", failure.operator, failure.step, failure.why);
        line("failed", &text)?;
    }
    for note in &recording.notes {
        line("note", note)?;
    }
    writeln!(out)
}

fn write_table(steps: &[&Step], traced: Option<&Traced>, out: &mut dyn Write) -> io::Result<()> {
    const TITLES: [&str; 8] = ["step", "call", "agent", "status", "ms", "tokens", "injected", "reply"];
    let rows: Vec<[String; 8]> = steps.iter().map(|step| row(step)).collect();
    let widths = TITLES.iter().enumerate().map(|(column, title)| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(title.len())
    });
    let widths: Vec<usize> = widths.collect();
    let marks = steps.iter().map(|step| traced.and_then(|traced| traced.mark(step.step)));
    let rows = std::iter::once((TITLES.map(str::to_owned), None)).chain(rows.into_iter().zip(marks));
    for (row, mark) in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let is_number = matches!(column, 0 | 1 | 4 | 5);
            if is_number { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let mark = mark.map(|mark| format!("  {mark}")).unwrap_or_default();
        writeln!(out, "{}{mark}", line.trim_end())?;
    }
    Ok(())
}

fn row(step: &Step) -> [String; 8] {
    let attribution = &step.attribution;
    let instance = if attribution.instance > 0 { format!("#{}", attribution.instance) } else { String::new() };
    let doubt = if attribution.ambiguous { "?" } else { "" };
    let last = step.last_attempt();
    let usage = last.and_then(|attempt| attempt.usage);
    [
        step.step.to_string(),
        step.call.to_string(),
        format!("{}{instance}{doubt}", escape(attribution.agent.as_str())),
        status_text(step),
        last.and_then(|attempt| attempt.last_byte_us).map(millis).unwrap_or_default(),
        usage.map(|usage| format!("{}>{}", usage.input, usage.output)).unwrap_or_default(),
        injected_text(step),
        escape(&view::first_words(&View::of(step).reply_text(), 60)),
    ]
}

/// Microseconds as milliseconds.
fn millis(micros: u64) -> String {
    format!("{}.{}", micros / 1000, micros % 1000 / 100)
}

/// Status and cause of the last attempt, and how many there were.
fn status_text(step: &Step) -> String {
    let ended = step.last_attempt().map_or_else(|| "open".to_owned(), attempt_text);
    if step.attempts.len() > 1 { format!("{ended} x{}", step.attempts.len()) } else { ended }
}

/// Status and cause of an attempt.
fn attempt_text(attempt: &Attempt) -> String {
    let status = attempt.status.map(|status| status.to_string()).unwrap_or_default();
    match attempt.cause {
        None => "open".to_owned(),
        Some(CloseCause::Complete) => status,
        Some(cause) => format!("{status} {}", data::word(&cause)).trim().to_owned(),
    }
}

/// The failure modes (or faults) that were planted, and whether they arrived.
fn injected_text(step: &Step) -> String {
    let marks = step.injected.iter().map(|error| {
        let what = error.failure_mode.map_or(error.operator.as_str(), |mode| mode.code());
        if error.delivered { format!("*{what}") } else { format!("({what})") }
    });
    escape(&marks.collect::<Vec<_>>().join(" "))
}

fn outcome_text(outcome: &Outcome) -> String {
    let verdict = match outcome.verdict {
        Verdict::Success => "success",
        Verdict::Failure => "failure",
        Verdict::Unknown => "unknown",
    };
    let reason = outcome.reason.map(|reason| format!("  by {}", data::word(&reason))).unwrap_or_default();
    let evidence = view::first_words(&outcome.evidence, 80);
    format!("{verdict}{reason}{}{evidence}", if evidence.is_empty() { "" } else { ": " })
}

fn label_text(label: &Label) -> String {
    let errors = label.errors.iter().map(|entry| {
        let error = &entry.error;
        let mode = error.failure_mode.map(|mode| format!("{} {}", mode.code(), mode.name())).unwrap_or_default();
        format!("{mode} by {} at step {} ({}, {})", error.agent, error.step, data::word(&error.side), error.operator)
    });
    format!("{}: {}", data::word(&label.status), errors.collect::<Vec<_>>().join("; "))
}

fn why_no_label(recording: &Recording) -> String {
    match crate::trajectory::derive(&recording.trajectory, recording.edits_failed()) {
        Err(NoLabel::NotInjected) if recording.manifest.plan_digest.is_none() => "no plan".to_owned(),
        Err(why) => why.to_string(),
        Ok(_) => "not written yet".to_owned(),
    }
}

#[cfg(test)]
mod tests;
