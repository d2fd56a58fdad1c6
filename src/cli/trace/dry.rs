//! What a trace would cost; nothing is executed.

use crate::cli::printed::{ForetoldSearch, MostExecuted, printed};
use std::io::Write;

use super::{
    arguments::TraceArgs,
    prepared::{PreparedSearch, require_corrections},
};
use crate::{
    attribution::{Corrections, ForetoldTrace, at_most, foretell},
    cli::{Exit, Failure, Finished, Global, OutputFormat, terminal, trial::ExecutionSpec},
    replay::Cassette,
};

/// Foretells the executions and live calls of a model that repeats itself, and says how many there can be at most.
pub(super) fn tell(
    cassette: &Cassette,
    search: &PreparedSearch,
    executed: &ExecutionSpec,
    arguments: &TraceArgs,
    global: &Global,
) -> Result<Finished, Failure> {
    let run = &cassette.recording().trajectory;
    // What an analyzer will propose is not known: perhaps something for each step.
    let asked = search.analyzer.is_some();
    let proposed = asked.then(|| Corrections::redrawn(run));
    let corrections = proposed.as_ref().unwrap_or(&search.given);
    require_corrections(corrections)?;
    let foretold = foretell(cassette, corrections, &search.settings);
    let questions = if asked { 2 * run.steps.len() as u64 } else { 0 };
    let mut most = at_most(cassette, corrections, &search.settings);
    most.calls += questions;
    if let Some(calls) = arguments.execute.budget.limits()?.budget.calls {
        most.calls = most.calls.min(calls);
    }
    let line = |foretold: &ForetoldTrace| {
        let at =
            foretold.step.map_or("no correction heals:".to_owned(), |step| format!("the error is at step {step}:"));
        format!("{at:<26} {} executions, {} live calls", foretold.executions, foretold.calls + questions)
    };
    if global.format == OutputFormat::Text {
        let mut out = terminal::stdout();
        let lines = foretold.iter().map(line).collect::<Vec<_>>().join("\n");
        writeln!(
            out,
            "foretold for a model that repeats itself, and as many calls an execution as were recorded\n{lines}\n\
             at most, whatever the model says: {} executions, {} live calls",
            most.executions, most.calls
        )
        .map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let likely = foretold.iter().max_by_key(|foretold| foretold.executions);
    let likely = likely.map_or_else(String::new, |likely| {
        format!(
            "; for a model that repeats itself {} executions, {} live calls foretold",
            likely.executions,
            likely.calls + questions
        )
    });
    let summary = format!(
        "at most {} executions, {} live calls where none makes more calls than were recorded{likely}; nothing was executed{}",
        most.executions,
        most.calls,
        executed.needs()
    );
    let data = printed(&ForetoldSearch {
        foretold: &foretold,
        at_most: MostExecuted { executions: most.executions, calls: most.calls },
        analyzer_questions: questions,
    });
    Ok(Finished { exit: Exit::Ok, summary, data })
}
