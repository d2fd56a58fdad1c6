//! `aegis agents RUN`: which agent made which call, and how that is known; unknown and ambiguous first.

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use clap::Args;
use serde_json::json;

use super::{Exit, Failure, escape};
use crate::{
    recording,
    trajectory::{Attribution, Source, Step},
};

/// Options of `agents`.
#[derive(Debug, Args)]
pub(super) struct AgentsArgs {
    /// The run's directory.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
}

/// What is known of one agent.
#[derive(Debug)]
struct Audit<'a> {
    calls: usize,
    first: &'a Attribution,
    ambiguous: usize,
}

pub(super) fn run(arguments: &AgentsArgs, json: bool, out: &mut dyn Write) -> Result<Exit, Failure> {
    let recording = recording::read(&arguments.dir).map_err(Failure::from)?;
    let steps = &recording.trajectory.steps;
    let mut agents: BTreeMap<(&str, &'static str), Audit<'_>> = BTreeMap::new();
    for step in steps {
        let attribution = &step.attribution;
        let audit = agents.entry((attribution.agent.as_str(), name_of(attribution.source)));
        let audit = audit.or_insert(Audit { calls: 0, first: attribution, ambiguous: 0 });
        audit.calls += 1;
        audit.ambiguous += usize::from(attribution.ambiguous);
    }
    let mut rows: Vec<_> = agents.into_iter().collect();
    // What needs a person's eye comes first.
    rows.sort_by_key(|((_, source), audit)| (*source != "fallback", audit.ambiguous == 0));
    let written = if json { write_json(&rows, steps, out) } else { write_text(&rows, steps.len(), out) };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Exit::Ok)
}

type Row<'a> = ((&'a str, &'static str), Audit<'a>);

fn write_json(rows: &[Row<'_>], steps: &[Step], out: &mut dyn Write) -> std::io::Result<()> {
    let agents: Vec<_> = rows
        .iter()
        .map(|((agent, source), audit)| {
            json!({"agent": agent, "calls": audit.calls, "source": source, "evidence": audit.first.evidence,
                "confidence": audit.first.confidence, "ambiguous": audit.ambiguous})
        })
        .collect();
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            let attribution = &step.attribution;
            json!({"step": step.step, "call": step.call, "turn": step.turn, "agent": attribution.agent,
                "instance": attribution.instance, "kind": "agent", "source": attribution.source,
                "confidence": attribution.confidence, "ambiguous": attribution.ambiguous, "attempts": step.attempts.len()})
        })
        .collect();
    writeln!(out, "{}", json!({"agents": agents, "steps": steps}))
}

fn write_text(rows: &[Row<'_>], steps: usize, out: &mut dyn Write) -> std::io::Result<()> {
    let width = rows.iter().map(|((agent, _), _)| escape(agent).chars().count()).max().unwrap_or(5).max(5);
    writeln!(out, "{:width$}  calls  known by   evidence", "agent")?;
    for ((agent, source), audit) in rows {
        let mark = if audit.ambiguous > 0 {
            format!("  ambiguous in {} of {} calls", audit.ambiguous, audit.calls)
        } else {
            String::new()
        };
        writeln!(
            out,
            "{:width$}  {:5}  {source:9}  {}{mark}",
            escape(agent),
            audit.calls,
            escape(&audit.first.evidence)
        )?;
    }
    let unnamed = rows.iter().filter(|((_, source), _)| *source == "fallback").count();
    writeln!(out, "{} agents, {steps} steps", rows.len())?;
    if unnamed > 0 {
        writeln!(
            out,
            "hint: {unnamed} have no name yet; tell them apart with [[agent]] rules in aegis.toml, a path /a/<agent>/ or a header"
        )?;
    }
    Ok(())
}

/// A rule's name in output.
fn name_of(source: Source) -> &'static str {
    match source {
        Source::Path => "path",
        Source::Header => "header",
        Source::Key => "key",
        Source::Metadata => "metadata",
        Source::Roster => "roster",
        Source::Model => "model",
        Source::Fallback => "fallback",
    }
}
