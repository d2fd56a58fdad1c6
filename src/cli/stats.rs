//! `aegis stats DATASET`: what is in a dataset, how balanced it is, and whether its injections give themselves away.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;

use super::{
    Exit, Failure, Finished, Global, OutputFormat, browser,
    corpus::CorpusArgs,
    counted as many, escape,
    output::{OutputFile, Replaces},
    terminal,
};
use crate::{
    dataset::{
        self,
        statistics::{self, Statistics, Summary},
    },
    trajectory::Need,
    viewer::{ViewerLibrary, dataset_bundle},
};

/// Options of `stats`.
#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// Data set: a directory with dataset.jsonl, a JSONL file, or a directory of runs.
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,
    #[command(flatten)]
    corpus: CorpusArgs,
    /// Also write the page of `aegis view` as one file: counts, findings, samples.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Replace an existing FILE.
    #[arg(long, requires = "html")]
    overwrite: bool,
    /// Open that page in the browser.
    #[arg(long, requires = "html")]
    open: bool,
}

pub(super) fn run(arguments: &StatsArgs, global: &Global) -> Result<Finished, Failure> {
    let replaces = Replaces::OnRequest(arguments.overwrite);
    let html = arguments.html.as_deref().map(|path| OutputFile::named(path, replaces)).transpose()?;
    let dataset = arguments.corpus.open(&arguments.dataset, global.quiet)?;
    let counted = statistics::statistics(&dataset).map_err(Failure::from)?;
    if let (Some(path), Some(file)) = (&arguments.html, html) {
        let page = dataset_bundle(&ViewerLibrary::new(vec![arguments.dataset.clone()]));
        let page = page.map_err(|error| {
            Failure::new(Exit::Usage, error).hint("leave out --html: the same figures are printed here")
        })?;
        file.write_aloud(&page.html)?;
        if arguments.open {
            browser::open(&path.to_string_lossy());
        }
    }
    if global.format == OutputFormat::Text {
        write(&counted, &mut terminal::stdout()).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let failures = counted.kinds.get("failure").copied().unwrap_or_default();
    let summary = format!("{} samples of {} tasks, {}", counted.samples, counted.tasks, dataset::failures(failures));
    let data = serde_json::to_value(&counted).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Finished { exit: Exit::Ok, summary, data })
}

fn write(counted: &Statistics, out: &mut dyn Write) -> io::Result<()> {
    let labels = &counted.labels;
    row(out, "samples", counted.kinds.iter())?;
    writeln!(out, "{:14}{}", "sure", escape(&counted.sure))?;
    row(out, "parts", counted.splits.iter())?;
    row(out, "systems", counted.systems.iter())?;
    row(out, "backends", counted.backends.iter())?;
    row(out, "modes", labels.modes.iter())?;
    if let Some(even) = labels.mode_evenness {
        writeln!(out, "{:14}{even:.2} of 1; {} of 14 modes missing", "evenness", labels.modes_missing.len())?;
    }
    row(out, "manipulators", labels.manipulators.iter())?;
    row(out, "sides", labels.sides.iter())?;
    for (name, counts) in [("culprits", &labels.culprits), ("missed catch", &labels.missed_catch)] {
        if !counts.is_empty() {
            row(out, name, counts.iter())?;
        }
    }
    for (name, summary) in [("steps", &counted.lengths.steps), ("characters", &counted.lengths.characters)] {
        let Summary { min, median, mean, max, .. } = summary;
        writeln!(out, "{name:14}min {min}  median {median}  mean {mean:.1}  max {max}")?;
    }
    row(out, "error at step", counted.position.step.iter())?;
    for (count, state) in [(labels.others, Need::NotNeeded), (labels.not_shown, Need::NotShown)] {
        if count > 0 {
            writeln!(out, "{:14}{count}, {}", "also planted", state.words())?;
        }
    }
    writeln!(out, "{:14}{} of {} errors", "at first call", counted.position.first_call, labels.errors)?;
    let twins = &counted.twins;
    writeln!(out, "{:14}{} clean, {} failures paired, {} not", "twins", twins.clean, twins.paired, twins.unpaired)?;
    for agent in &counted.agents {
        let name = escape(&format!("{} · {}", agent.system, agent.agent));
        let [steps, errors] = [(agent.steps, "step"), (agent.errors, "error")]
            .map(|(count, what)| many(usize::try_from(count).unwrap_or(usize::MAX), what));
        writeln!(out, "{:14}{name}: {steps}, {errors}", "agent")?;
    }
    for probed in &counted.probe {
        let figure = match (probed.auc, probed.interval) {
            (Some(auc), Some((low, high))) => format!("AUC {auc:.2} ({low:.2} to {high:.2})"),
            _ => "too few for a figure".to_owned(),
        };
        let tells: Vec<_> = probed.tells.iter().map(|tell| format!("`{tell}`")).collect();
        let tells = if tells.is_empty() { String::new() } else { format!("; tells: {}", tells.join(" ")) };
        let line = format!("{}: {figure}, {} replies{tells}", probed.manipulator, probed.injected);
        writeln!(out, "{:14}{}", "detectability", escape(&line))?;
    }
    Ok(())
}

fn row<'a, L: std::fmt::Display + 'a>(
    out: &mut dyn Write,
    name: &str,
    counts: impl Iterator<Item = (&'a L, &'a u64)>,
) -> io::Result<()> {
    let counts: Vec<_> = counts.map(|(label, count)| format!("{label} {count}")).collect();
    let all = if counts.is_empty() { "none".to_owned() } else { counts.join(" · ") };
    writeln!(out, "{name:14}{}", escape(&all))
}
