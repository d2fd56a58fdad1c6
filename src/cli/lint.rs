//! `aegis lint DATASET`: what makes a dataset unfit to learn from or to measure with.

use crate::cli::printed::{LintedModes, ListedRule, ListedRules, PrintedLint, printed};
use std::{io::Write, path::PathBuf};

use clap::Args;

use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    corpus::CorpusArgs,
    escape,
    screen::{Colour, Screen},
    terminal,
};
use crate::dataset::{
    DatasetError,
    lint::{self, LintReport, Rule},
};

/// Options of `lint`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1: there are findings. `aegis export` refuses a data set with findings, except shortcuts and findings that a sound data set can have."
)]
pub(super) struct LintArgs {
    /// Data set: a directory with dataset.jsonl, a JSONL file, or a directory of runs.
    #[arg(value_name = "DATASET", required_unless_present = "list")]
    dataset: Option<PathBuf>,
    #[command(flatten)]
    corpus: CorpusArgs,
    /// List the rules and their meaning.
    #[arg(long, alias = "rules")]
    list: bool,
    /// Maximum findings shown per rule; 0 for all.
    #[arg(long, default_value_t = 20, value_name = "N")]
    show: usize,
}

pub(super) fn run(arguments: &LintArgs, global: &Global) -> Result<Finished, Failure> {
    if arguments.list {
        return rules(global);
    }
    let path = arguments.dataset.clone().unwrap_or_default();
    let dataset = arguments.corpus.open(&path, global.quiet)?;
    let mut report = lint::lint(&dataset).map_err(Failure::from)?;
    if let Some(harvest) = dataset.harvest() {
        // Its rows are in no file that anybody can look at: a finding is of a run.
        report.findings.iter_mut().for_each(|finding| {
            finding.file = harvest.recordings.get(&finding.sample).unwrap_or(&harvest.root).clone();
            (finding.line, finding.sample) = (0, String::new());
        });
    }
    if global.format == OutputFormat::Text {
        let out = &mut terminal::stdout();
        let said = write(&report, arguments.show, Screen::stdout(global), out)
            .and_then(|()| writeln!(out, "sure: {}", report.sure))
            .and_then(|()| write_modes(&report, out));
        said.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let (found, counts) = (report.findings.len(), report.counts());
    let summary = match found {
        0 if report.samples == 0 => "no sample: there is nothing to check".to_owned(),
        0 => format!("{} samples, nothing found", report.samples),
        _ => format!("{} samples, {found} findings of {} rules", report.samples, counts.len()),
    };
    let exit = if report.is_clean() && report.samples > 0 { Exit::Ok } else { Exit::Finding };
    let data = printed(&PrintedLint {
        samples: report.samples,
        findings: &report.findings,
        rules: counts.iter().map(|(rule, count)| (rule.name(), *count)).collect(),
        sure: &report.sure,
        modes: LintedModes { planted: report.planted, declared: report.declared },
    });
    Ok(Finished { exit, summary, data })
}

fn write(report: &LintReport, show: usize, screen: Screen, out: &mut dyn Write) -> std::io::Result<()> {
    let counts = report.counts();
    for (rule, count) in counts {
        writeln!(out, "{}  {count}  {}", screen.paint(Colour::Bad, rule.name()), rule.meaning())?;
        let of_rule = report.findings.iter().filter(|finding| finding.rule == rule);
        let shown = if show == 0 { usize::MAX } else { show };
        for finding in of_rule.take(shown) {
            let line = if finding.line > 0 { format!(":{}", finding.line) } else { String::new() };
            let sample = if finding.sample.is_empty() { String::new() } else { format!(" {}", finding.sample) };
            let place = format!("{}{line}{sample}", finding.file.display());
            writeln!(out, "  {}: {}", escape(&place), escape(&finding.what))?;
        }
        if count > shown {
            writeln!(out, "  … and {} more; `--show 0` shows all", count - shown)?;
        }
    }
    Ok(())
}

/// How many failure modes rest on their plan's word alone, where some do.
fn write_modes(report: &LintReport, out: &mut dyn Write) -> std::io::Result<()> {
    let LintReport { planted, declared, .. } = report;
    if *declared == 0 {
        return Ok(());
    }
    let are = if *declared == 1 { "is" } else { "are" };
    writeln!(
        out,
        "modes: {declared} of {planted} planted errors {are} of a failure mode that only the plan declares, or that was refuted; formats that name modes leave them out"
    )
}

fn rules(global: &Global) -> Result<Finished, Failure> {
    if global.format == OutputFormat::Text {
        let mut out = terminal::stdout();
        for rule in Rule::ALL {
            let written = writeln!(out, "{:20}{}", rule.name(), rule.meaning());
            written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
    }
    let all: Vec<_> = Rule::ALL.iter().map(|rule| ListedRule { rule: *rule, meaning: rule.meaning() }).collect();
    Ok(Finished { exit: Exit::Ok, summary: format!("{} rules", all.len()), data: printed(&ListedRules { rules: all }) })
}

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Self {
        let exit = if error.exit_code() == Exit::Usage.code() { Exit::Usage } else { Exit::Recording };
        let hint = match &error {
            DatasetError::NotADataset { .. } => Some(
                "`aegis demo` and `aegis campaign FILE` leave one; `aegis import --from whowhen PATH --out DIR` makes one of labelled files"
                    .to_owned(),
            ),
            _ => None,
        };
        Self { hint, ..Self::new(exit, error) }
    }
}
