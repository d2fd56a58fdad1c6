//! `aegis import --from F PATH --out DIR`: foreign labelled files become a dataset, every defect reported.

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};

use super::{Exit, Failure, Finished, escape};
use crate::dataset::formats::{self, ImportError, ImportSource, Imported};

/// Most defects of one rule that are written out; all are in the report.
const SHOWN: usize = 5;

/// Options of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Whose files they are.
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: ImportFrom,
    /// A file, or a directory of files.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Where the dataset goes: `dataset.jsonl`, `dataset.json`, and the defects in `import.json`.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace the dataset or campaign's dataset that lies there.
    #[arg(long)]
    overwrite: bool,
}

/// The formats that are read.
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
}

pub(super) fn run(arguments: &ImportArgs, json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    let from = match arguments.from {
        ImportFrom::Whowhen => ImportSource::Whowhen,
        ImportFrom::Aegis => ImportSource::Aegis,
        ImportFrom::Agentracer => ImportSource::Agentracer,
        ImportFrom::Mast => ImportSource::Mast,
    };
    let (imported, _) =
        formats::import(from, &arguments.path, &arguments.out, arguments.overwrite).map_err(|error| match error {
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
