//! `aegis annotations [DIR…]`: what people said of runs with `aegis view --annotate`: how far they agree with each other
//! and with labels that were proven; to and from the files of Who&When.

use crate::cli::printed::{
    AnnotatedRow, AnnotatorAgreement, ExportedAnnotations, ImportedAnnotations, LabelAgreement, ListedAnnotations,
    UnreadRun, printed,
};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde_json::Value;

use super::{
    Exit, Failure, Finished, Global, OutputFormat, escape, logging,
    output::{OutputFile, Replaces},
    terminal,
};
use crate::{
    dataset::formats::{SpokenError, read_annotated, write_annotated},
    recording::{self, AnnotatedStep, Annotation, Masked, RunFile, annotate, annotations},
    score::{Agreement, RESAMPLED_MIN, Share, agreement},
    trajectory::{Label, LabelStatus},
    viewer::{Listing, RunRow},
};

/// The answer of those who saw no error.
const NONE: &str = "none";
/// Most runs that are listed; `--format json` has all.
const LISTED: usize = 40;

/// Options of `annotations`.
#[derive(Debug, Args)]
pub(super) struct AnnotationsArgs {
    /// Runs, or directories of runs.
    #[arg(value_name = "DIR", env = "AEGIS_LOG_DIR", default_value = "logs")]
    dirs: Vec<PathBuf>,
    /// Write the annotations as Who&When files, OUT/NAME/RUN.json. Those that name no error are omitted.
    #[arg(long, value_name = "OUT", conflicts_with = "import")]
    export: Option<PathBuf>,
    /// Replace existing files.
    #[arg(long, requires = "export")]
    overwrite: bool,
    /// Read Who&When files, each named after its run (RUN.json), or one such file.
    #[arg(long, value_name = "PATH", requires = "annotator")]
    import: Option<PathBuf>,
    /// Annotator of the imported files.
    #[arg(long, value_name = "NAME", requires = "import")]
    annotator: Option<String>,
}

/// A run and what was said of it.
struct AnnotatedRun {
    row: Arc<RunRow>,
    annotations: Vec<Annotation>,
    /// Its label, where it was proven by execution.
    proven: Option<Label>,
}

pub(super) fn run(arguments: &AnnotationsArgs, global: &Global) -> Result<Finished, Failure> {
    if let Some(missing) = arguments.dirs.iter().find(|dir| !dir.exists()) {
        let error = format!("there is nothing at `{}`", missing.display());
        return Err(Failure::new(Exit::Usage, error).hint("`aegis annotations DIR`, where DIR holds recordings"));
    }
    let rows = Listing::scan(&arguments.dirs).runs;
    if let (Some(path), Some(name)) = (&arguments.import, &arguments.annotator) {
        return import(&rows, path, name);
    }
    let AnnotatedRuns { runs, unread } = annotated(rows)?;
    for unread in &unread {
        logging::line(format_args!("unread   {}: {}", escape(&unread.run), escape(&unread.why)));
    }
    let exit = if unread.is_empty() { Exit::Ok } else { Exit::Finding };
    if let Some(out) = &arguments.export {
        return Ok(Finished { exit, ..export(&runs, out, arguments.overwrite)? });
    }
    let compared = compared(&runs);
    if global.format == OutputFormat::Text {
        write(&runs, &compared, &mut terminal::stdout()).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let said: usize = runs.iter().map(|run| run.annotations.len()).sum();
    let listed = runs.iter().map(|run| AnnotatedRow { run: &run.row.key, said: &run.annotations });
    let count = runs.len();
    let data = printed(&ListedAnnotations { runs: listed.collect(), agreement: compared.printed(), unread });
    Ok(Finished { exit, summary: format!("{said} annotations of {count} runs"), data })
}

/// The runs of which something was said, and those whose files do not let it be compared.
#[derive(Default)]
struct AnnotatedRuns {
    runs: Vec<AnnotatedRun>,
    unread: Vec<UnreadRun>,
}

/// The runs of which something was said.
fn annotated(rows: Vec<Arc<RunRow>>) -> Result<AnnotatedRuns, Failure> {
    let mut annotated = AnnotatedRuns::default();
    for row in rows.into_iter().filter(|row| row.trial_of.is_none()) {
        // What is no recording has no words.
        let Ok(manifest) = recording::read_manifest(&row.dir) else { continue };
        let said = annotations(&row.dir, &manifest.run).map_err(|error| Failure::new(Exit::Usage, error))?;
        if said.is_empty() {
            continue;
        }
        let stands = row.label.as_ref().is_some_and(|label| label.refused.is_none());
        // One whose label cannot be read is named, and the others are compared.
        let label = match recording::read_label(&row.dir) {
            Ok(label) => label,
            Err(error) => {
                annotated.unread.push(UnreadRun { run: row.key.clone(), why: error.to_string() });
                continue;
            }
        };
        let proven = label.filter(|label| stands && label.status == LabelStatus::Verified);
        annotated.runs.push(AnnotatedRun { row, annotations: said, proven });
    }
    Ok(annotated)
}

/// How far people agree.
struct ComparedAnnotations {
    /// By question: who, when, when but for one step.
    questions: Vec<(&'static str, Agreement)>,
    /// Of each annotator's words on runs whose label was proven: those that name one of its agents, one of its steps.
    proven: BTreeMap<String, (Share, Share)>,
}

fn compared(runs: &[AnnotatedRun]) -> ComparedAnnotations {
    let answers = |of: &dyn Fn(&AnnotatedStep) -> String| -> Vec<Vec<String>> {
        let answer = |said: &Annotation| said.error.as_ref().map_or_else(|| NONE.to_owned(), of);
        runs.iter().map(|run| run.annotations.iter().map(answer).collect()).collect()
    };
    let who = answers(&|error| error.agent.clone());
    let when = answers(&|error| error.step.to_string());
    let near = |one: &str, other: &str| match (one.parse::<u32>(), other.parse::<u32>()) {
        (Ok(one), Ok(other)) => one.abs_diff(other) <= 1,
        _ => one == other,
    };
    let questions = vec![
        ("who", agreement(&who, |one, other| one == other)),
        ("when", agreement(&when, |one, other| one == other)),
        ("when, give or take a step", agreement(&when, near)),
    ];
    let mut counts: BTreeMap<String, (usize, usize, usize)> = BTreeMap::new();
    for run in runs {
        let Some(label) = &run.proven else { continue };
        for said in &run.annotations {
            let error = said.error.as_ref();
            let names = |agent: &str| label.errors.iter().any(|entry| entry.error.agent.as_str() == agent);
            let has = |step: u32| label.errors.iter().any(|entry| entry.error.step == step);
            let count = counts.entry(said.annotator.clone()).or_default();
            count.0 += usize::from(error.is_some_and(|error| names(&error.agent)));
            count.1 += usize::from(error.is_some_and(|error| has(error.step)));
            count.2 += 1;
        }
    }
    let share = |(who, when, of)| (Share::new(who, of), Share::new(when, of));
    let proven = counts.into_iter().map(|(name, count)| (name, share(count))).collect();
    ComparedAnnotations { questions, proven }
}

impl ComparedAnnotations {
    fn printed(&self) -> AnnotatorAgreement<'_> {
        let proven = self.proven.iter().map(|(name, (who, when))| (name.as_str(), LabelAgreement { who, when }));
        AnnotatorAgreement {
            questions: self.questions.iter().map(|(name, found)| (*name, found)).collect(),
            against_proven_labels: proven.collect(),
        }
    }
}

fn write(runs: &[AnnotatedRun], compared: &ComparedAnnotations, out: &mut dyn io::Write) -> io::Result<()> {
    for run in runs.iter().take(LISTED) {
        let said = run.annotations.iter().map(|said| match &said.error {
            Some(error) => format!("{}: {} at {}", said.annotator, error.agent, error.step),
            None => format!("{}: {NONE}", said.annotator),
        });
        writeln!(out, "{}  {}", escape(&run.row.key), escape(&said.collect::<Vec<_>>().join("  ")))?;
    }
    if let Some(more) = runs.len().checked_sub(LISTED).filter(|more| *more > 0) {
        writeln!(out, "and {more} runs more: --format json")?;
    }
    writeln!(out, "\namong people, of runs that several annotated")?;
    for (name, found) in &compared.questions {
        let pairs = &found.pairs;
        let alpha = match (found.alpha, found.interval) {
            (Some(alpha), Some(interval)) => format!("alpha {alpha:.2} ({:.2} to {:.2})", interval.low, interval.high),
            (Some(alpha), None) => format!("alpha {alpha:.2} (no interval: fewer than {RESAMPLED_MIN} runs)"),
            (None, _) => "alpha cannot be told: all answers are one, or there are none".to_owned(),
        };
        // What one step is forgiven is no category, and chance is not known for it.
        let alpha = if name.contains(',') { String::new() } else { alpha };
        let line = format!("  {name:<26} {} of {} pairs agree, {} runs  {alpha}", pairs.hits, pairs.of, found.units);
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "against labels that were proven")?;
    if compared.proven.is_empty() {
        writeln!(out, "  none: no annotated run has a verified label")?;
    }
    for (name, (who, when)) in &compared.proven {
        let told = |share: &Share| format!("{} of {} ({})", share.hits, share.of, percents(share));
        writeln!(out, "  {:<26} who {}  when {}", escape(name), told(who), told(when))?;
    }
    Ok(())
}

/// A share's interval in percent.
fn percents(share: &Share) -> String {
    format!("{:.0} to {:.0} %", 100.0 * share.interval.low, 100.0 * share.interval.high)
}

fn export(runs: &[AnnotatedRun], out: &Path, overwrite: bool) -> Result<Finished, Failure> {
    let (mut files, mut without) = (Vec::new(), 0);
    for run in runs {
        let recording = recording::read(&run.row.dir)?;
        for said in &run.annotations {
            let Some(error) = &said.error else {
                without += 1;
                continue;
            };
            let spoken = SpokenError { agent: error.agent.clone(), step: error.step, why: error.why.clone() };
            let bytes = write_annotated(&recording, &spoken).map_err(|error| Failure::new(Exit::Recording, error))?;
            let path = out.join(&said.annotator).join(format!("{}.json", run.row.key));
            files.push((path, Masked::new(bytes)));
        }
    }
    // All of them or none.
    let named = files.iter().map(|(path, bytes)| Ok((OutputFile::named(path, Replaces::OnRequest(overwrite))?, bytes)));
    let named = named.collect::<Result<Vec<_>, Failure>>()?;
    let written = named.len();
    named.iter().try_for_each(|(file, bytes)| file.write_aloud(bytes))?;
    let left = if without > 0 { format!("; {without} that saw no error are left out") } else { String::new() };
    let summary = format!("{}  {written} files{left}", out.display());
    Ok(Finished {
        exit: Exit::Ok,
        summary,
        data: printed(&ExportedAnnotations { out, files: written, left_out: without }),
    })
}

fn import(rows: &[Arc<RunRow>], path: &Path, annotator: &str) -> Result<Finished, Failure> {
    let wrong = |path: &Path, why: String| Failure::new(Exit::Usage, format!("`{}`: {why}", path.display()));
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| wrong(path, error.to_string()))?;
        files = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
    }
    // All are read before one is written: a file that cannot be used leaves nothing behind.
    let mut said = Vec::new();
    for file in &files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let row = rows.iter().find(|row| row.key == stem && row.trial_of.is_none()).ok_or_else(|| {
            wrong(file, format!("there is no run `{stem}`")).hint("a file is named by its run: RUN.json")
        })?;
        let text = RunFile::bytes(file).map_err(|error| wrong(file, error.to_string()))?;
        let value: Value = serde_json::from_slice(&text).map_err(|error| wrong(file, error.to_string()))?;
        let recording = recording::read(&row.dir)?;
        let spoken = read_annotated(&value, &recording).map_err(|error| wrong(file, error.to_string()))?;
        let error = AnnotatedStep { agent: spoken.agent, step: spoken.step, why: spoken.why };
        let annotation = Annotation::now(recording.manifest.run.clone(), annotator, Some(error))
            .map_err(|error| wrong(file, error.to_string()))?;
        said.push((&row.dir, annotation));
    }
    for (dir, annotation) in &said {
        annotate(dir, annotation).map_err(|error| Failure::new(Exit::Usage, error))?;
    }
    let summary = format!("{} annotations of {annotator}", said.len());
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&ImportedAnnotations { annotator, annotations: said.len() }) })
}
