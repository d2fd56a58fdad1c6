//! `aegis import --from F`: foreign labelled files become a dataset (`PATH --out DIR`), foreign traces become runs
//! (`FILE… --log-dir DIR`); what could not be read is reported.

mod traces;

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum, builder::PossibleValuesParser};

use self::traces::Group;
use super::{Exit, Failure, Finished, escape};
use crate::{
    dataset::formats::{self, ImportError, ImportSource, Imported},
    foreign,
};

/// Most defects of one rule that are written out; all are in the report.
const SHOWN: usize = 5;

/// Options of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Format of the files. Labelled files become a data set: `whowhen`, `whowhen-pro`, `aegis`, `agentracer`, `mast`,
    /// `mpbench`, `traceelephant`, `trail`, `codetracebench`. Traces become runs: `otlp`, `inspect`, `atif`, `langfuse`, `log`.
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(names()))]
    from: String,
    /// Files or directories; one for labelled files.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Labelled files: directory for the data set and its defects (`import.json`).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Traces: directory for recordings.
    #[arg(long, env = "AEGIS_LOG_DIR", value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// OTLP: what makes one run.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Group::Trace)]
    run_by: Group,
    /// Plain logs: name of the field for `agent`, `content`, `time`, `inputs`, `error`, `model` or `run`; repeatable.
    #[arg(long, value_name = "FIELD=NAME")]
    map: Vec<String>,
    /// Configuration file. Default: ./aegis.toml.
    #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Replace the existing data set or runs.
    #[arg(long)]
    overwrite: bool,
}

/// Every format that is read.
fn names() -> impl Iterator<Item = &'static str> {
    let labelled = ImportFrom::value_variants().iter().map(|from| from.name());
    labelled.chain(foreign::ALL.iter().map(|format| format.name()))
}

/// The formats of labelled files.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ImportFrom {
    /// Who&When, either layout or both.
    Whowhen,
    /// Aegis' unified records.
    Aegis,
    /// AgenTracer's rows.
    Agentracer,
    /// MAST's rows.
    Mast,
    /// MP-Bench's annotated files.
    Mpbench,
    /// Who&When Pro's rows.
    WhowhenPro,
    /// `TraceElephant`'s directories.
    Traceelephant,
    /// TRAIL's annotated spans.
    Trail,
    /// `CodeTraceBench`'s manifest.
    Codetracebench,
}

impl ImportFrom {
    /// Its name on the command line.
    fn name(self) -> &'static str {
        match self {
            ImportFrom::Whowhen => "whowhen",
            ImportFrom::Aegis => "aegis",
            ImportFrom::Agentracer => "agentracer",
            ImportFrom::Mast => "mast",
            ImportFrom::Mpbench => "mpbench",
            ImportFrom::WhowhenPro => "whowhen-pro",
            ImportFrom::Traceelephant => "traceelephant",
            ImportFrom::Trail => "trail",
            ImportFrom::Codetracebench => "codetracebench",
        }
    }
}

pub(super) fn run(arguments: &ImportArgs, json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    if let Some(format) = foreign::ALL.iter().find(|format| format.name() == arguments.from) {
        return traces::run(*format, arguments, json, out);
    }
    let known = ImportFrom::value_variants().iter().find(|from| from.name() == arguments.from);
    let from = *known.ok_or_else(|| Failure::new(Exit::Usage, format!("unknown format `{}`", arguments.from)))?;
    let wanted = |error: &str| Failure::new(Exit::Usage, format!("--from {}: {error}", arguments.from));
    let ([path], Some(dir)) = (arguments.paths.as_slice(), &arguments.out) else {
        let error = wanted("labelled files become a dataset: expected one PATH and `--out DIR`");
        return Err(error.hint(format!("aegis import --from {} PATH --out DIR", arguments.from)));
    };
    let from = match from {
        ImportFrom::Whowhen => ImportSource::Whowhen,
        ImportFrom::Aegis => ImportSource::Aegis,
        ImportFrom::Agentracer => ImportSource::Agentracer,
        ImportFrom::Mast => ImportSource::Mast,
        ImportFrom::Mpbench => ImportSource::Mpbench,
        ImportFrom::WhowhenPro => ImportSource::WhowhenPro,
        ImportFrom::Traceelephant => ImportSource::Traceelephant,
        ImportFrom::Trail => ImportSource::Trail,
        ImportFrom::Codetracebench => ImportSource::Codetracebench,
    };
    let (imported, _) = formats::import(from, path, dir, arguments.overwrite).map_err(|error| match error {
        ImportError::Dataset(error) => error.into(),
        other => Failure::new(Exit::Usage, other),
    })?;
    if !json {
        write(&imported, out).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let summary =
        format!("{} samples from {} files, {} defects", imported.samples, imported.files, imported.defects.len());
    let data = serde_json::to_value(&imported).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// Defects by rule, the first few of each.
fn write(imported: &Imported, out: &mut dyn Write) -> std::io::Result<()> {
    for (rule, count) in &imported.rules {
        let meaning = formats::RULES.iter().find(|(name, _)| name == rule).map_or("", |(_, meaning)| meaning);
        writeln!(out, "{rule} ({count}): {meaning}")?;
        for defect in imported.defects.iter().filter(|defect| defect.rule == *rule).take(SHOWN) {
            let row = defect.row.map(|row| format!(":{row}")).unwrap_or_default();
            writeln!(out, "  {}{row}: {}", escape(&defect.file), escape(&defect.found))?;
        }
        if let Some(more) = count.checked_sub(SHOWN as u64).filter(|more| *more > 0) {
            writeln!(out, "  and {more} more, in import.json")?;
        }
    }
    Ok(())
}
