//! `aegis diff A B`: two runs side by side, aligned by agent and call.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use super::{Exit, Failure, Finished, escape, matching::MatchArgs};
use crate::{
    recording::{self, Recording},
    replay::{CallChange, Changed, Comparison, Pair},
    viewer,
};
use clap::Args;

/// Options of `diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// Directory of the first run.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Directory of the second run.
    #[arg(value_name = "B")]
    b: PathBuf,
    #[command(flatten)]
    matching: MatchArgs,
    /// Show every differing pair word by word, not only the first.
    #[arg(long)]
    all: bool,
}

pub(super) fn run(arguments: &DiffArgs, as_json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    let (a, b) = (recording::read(&arguments.a)?, recording::read(&arguments.b)?);
    let rules = arguments.matching.inherited(&recording::rules_of_both(&a, &b)?, true)?;
    let comparison = Comparison::compare(&a.trajectory, &b.trajectory, &rules);
    let written = if as_json {
        writeln!(out, "{}", viewer::compared(&comparison, &a, &b))
    } else {
        write_text(arguments, &comparison, &a, &b, out)
    };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let (exit, summary) = match comparison.pairs.iter().filter(|pair| pair.differs()).count() {
        _ if comparison.is_same() => (Exit::Ok, "no difference".to_owned()),
        0 => (Exit::Finding, "the runs differ".to_owned()),
        differing => (Exit::Finding, format!("{differing} of {} calls differ", comparison.pairs.len())),
    };
    Ok(Finished { exit, summary, data: serde_json::Value::Null })
}

fn write_text(
    arguments: &DiffArgs,
    comparison: &Comparison,
    a: &Recording,
    b: &Recording,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (name, recording) in [("a", a), ("b", b)] {
        let verdict = format!("{:?}", recording.trajectory.outcome.verdict).to_lowercase();
        let steps = recording.trajectory.steps.len();
        writeln!(out, "{name}  {}  {steps} steps  outcome {verdict}", recording.manifest.run)?;
    }
    writeln!(out, "\n   a    b    {:<24} difference", "agent")?;
    for (index, pair) in comparison.pairs.iter().enumerate() {
        write_pair(pair, comparison.first == Some(index), out)?;
    }
    let Some(first) = comparison.first else { return writeln!(out, "\nno difference") };
    let shown = comparison
        .pairs
        .iter()
        .enumerate()
        .filter(|(index, pair)| *index == first || (arguments.all && pair.differs()));
    for (index, pair) in shown {
        let which = if index == first { "first divergence: " } else { "" };
        writeln!(out, "\n{which}{} call {}", escape(&title(pair)), call(pair))?;
        for block in pair.sent.iter().chain(&pair.blocks) {
            writeln!(out, "-- {}\n{}", escape(&block.place), escape(&difference(block)))?;
        }
    }
    if !comparison.spread.is_empty() {
        let steps: Vec<String> = comparison.spread.iter().map(ToString::to_string).collect();
        writeln!(out, "\nits words are quoted in b at step {}", steps.join(", "))?;
    }
    Ok(())
}

fn write_pair(pair: &Pair, first: bool, out: &mut dyn Write) -> io::Result<()> {
    let step = |place: Option<crate::replay::CallPlace>| place.map_or("-".to_owned(), |place| place.step.to_string());
    let what = match pair.change {
        CallChange::Same => "",
        CallChange::Request => "request",
        CallChange::Reply => "reply",
        CallChange::Both => "request, reply",
        CallChange::OnlyA => "only in a",
        CallChange::OnlyB => "only in b",
    };
    let edited = if pair.sent.is_empty() { "" } else { "request as delivered" };
    let what: Vec<&str> = [edited, what].into_iter().filter(|words| !words.is_empty()).collect();
    let what = what.join(", ");
    let mark = if first { ">" } else { " " };
    let line = format!("{mark}{:>3}  {:>3}    {:<24} {what}", step(pair.a), step(pair.b), title(pair));
    writeln!(out, "{}", escape(line.trim_end()))
}

fn title(pair: &Pair) -> String {
    pair.agent.numbered(pair.instance)
}

fn call(pair: &Pair) -> u32 {
    pair.a.or(pair.b).map_or(0, |place| place.call)
}

fn difference(block: &Changed) -> String {
    viewer::words(&block.a, &block.b)
}
