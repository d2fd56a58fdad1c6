//! What methods would ask at most; nobody is asked.

use crate::cli::printed::{ForeseenAttribution, ForeseenMethod, printed};
use std::{fmt::Write as _, io::Write as _};

use super::{arguments::AttributeArgs, logs::Logs};
use crate::{
    attribution::{Foreseen, foresee, methods::View},
    cli::{Exit, Failure, Finished, Global, OutputFormat, terminal, tracer::ChosenMethod},
    trajectory::Usage,
};

/// Foretells each method over all runs.
pub(super) fn run(
    logs: &Logs,
    methods: &[ChosenMethod],
    arguments: &AttributeArgs,
    global: &Global,
) -> Result<Finished, Failure> {
    let price = arguments.judge.spending.price.unwrap_or_default();
    let mut all = Foreseen::default();
    let mut lines = format!("{:<15} {:>8} {:>14} {:>14}\n", "method", "calls", "tokens asked", "tokens said");
    let mut data = Vec::new();
    for method in methods {
        let mut sum = Foreseen::default();
        for log in logs.runs.iter().filter(|log| log.failed || method.takes_clean()) {
            let view = View {
                compat: arguments.compat.is_some(),
                longest_log: arguments.longest_log(),
                others: &log.others,
                ranker: None,
            };
            sum = sum.and(foresee(&**method, &log.run, view, arguments.votes));
        }
        let _ = writeln!(lines, "{:<15} {:>8} {:>14} {:>14}", method.name(), sum.calls, sum.bytes, sum.answers);
        data.push(ForeseenMethod { method: method.name().to_owned(), most: sum });
        all = all.and(sum);
    }
    if global.format == OutputFormat::Text {
        lines.push_str(
            "at most: a token has a byte at least, an answer is as long as it may be, and each is read at once\n",
        );
        let written = terminal::stdout().write_all(lines.as_bytes());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let most = price.cost(Usage { input: all.bytes, output: all.answers });
    let money = if most > 0.0 { format!(", {most:.4} in money") } else { String::new() };
    let summary = format!(
        "at most {} calls, {} tokens{money} over {} runs; nothing was asked",
        all.calls,
        all.bytes + all.answers,
        logs.runs.len()
    );
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&ForeseenAttribution { methods: data, most: all }) })
}
