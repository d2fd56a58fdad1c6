//! Files of traces become recordings below a directory.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use super::{
    FieldNames, ForeignDefect, ForeignRun, ForeignTrace, Grouping, RecordedForeign, TracePlace, documents,
    error::{ForeignError, TOTAL},
    record,
};
use crate::{
    recording::{
        self, Amendment, AmendmentSource, FactContent, FactSource, GivenRoster, ImportedFrom, RecordingError, Redactor,
        Settings,
    },
    trajectory::RunId,
};

/// Most defects that are told one by one.
const DEFECTS: usize = 1000;
/// The longest readable part of a run's name.
const LABEL: usize = 40;

/// How traces are read.
#[derive(Debug, Clone, Default)]
pub struct ForeignOptions {
    /// What of several traces is one run.
    pub grouping: Grouping,
    /// Whether runs that were imported before are replaced; recorded ones never are.
    pub overwrite: bool,
    /// What the user calls the fields of a log.
    pub names: FieldNames,
    /// How recordings are written.
    pub settings: Settings,
    /// Who the agents are, where the user says it: the names of the traces give way to it.
    pub roster: Option<GivenRoster>,
}

/// What was read and written.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ForeignImport {
    /// The format.
    pub from: &'static str,
    /// How many files were read.
    pub files: u64,
    /// The runs, in the order of the traces.
    pub runs: Vec<RecordedForeign>,
    /// Runs without a model call: their keys.
    pub empty: u64,
    /// What could not be read.
    pub defects: Vec<ForeignDefect>,
}

/// Reads files, or those of directories, and writes each run to `log_dir/<run>/`.
///
/// # Errors
/// [`ForeignError`]. A document that cannot be read is no error, files without any run are. Nothing is written unless all
/// runs can be named.
pub fn import(
    format: &dyn ForeignTrace,
    paths: &[PathBuf],
    log_dir: &Path,
    options: &ForeignOptions,
) -> Result<ForeignImport, ForeignError> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(below(format, path)?);
    }
    let mut reader = format.reader(&options.names);
    let (mut defects, mut digests) = (Vec::new(), Vec::new());
    let mut room = TOTAL;
    for (number, file) in files.iter().enumerate() {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let shown = file.to_string_lossy().into_owned();
        let bytes = documents::bytes(file)?;
        room = room.checked_sub(bytes.len()).ok_or(ForeignError::TooMuch)?;
        digests.push((name.clone(), blake3::hash(&bytes).to_hex().to_string()));
        if let Some(advice) = format.advice(&bytes) {
            defects.push(ForeignDefect { file: shown, line: None, why: advice.to_owned() });
            continue;
        }
        let beside = read_companion(format, file);
        let mut more = 0;
        documents::each(&bytes, format.records(), &mut |line, document| {
            let place = TracePlace { file: &name, number, line, beside: beside.as_ref() };
            if let Err(why) = document.and_then(|document| reader.take(document, &place)) {
                if defects.len() < DEFECTS {
                    defects.push(ForeignDefect { file: shown.clone(), line, why });
                } else {
                    more += 1;
                }
            }
        });
        if more > 0 {
            defects.push(ForeignDefect { file: shown, line: None, why: format!("{more} more could not be read") });
        }
    }
    let without_call = reader.empty();
    let found = reader.finish(options.grouping);
    let (found, empty): (Vec<_>, Vec<_>) = found.into_iter().partition(|run| !run.calls.is_empty());
    let empty = empty.len() as u64 + without_call;
    if found.is_empty() {
        let what = paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
        return Err(ForeignError::Nothing { what, why: nothing(&defects, empty, files.len()) });
    }
    let named = named(format.name(), found, log_dir, options.overwrite)?;
    let mut runs = Vec::with_capacity(named.len());
    for (id, run) in named {
        let (file, blake3) = digests.get(run.file).cloned().unwrap_or_default();
        let origin = ImportedFrom {
            format: format.name().to_owned(),
            file,
            blake3,
            key: run.key.replace('\n', " ").trim().to_owned(),
            requests: run.requests.to_owned(),
        };
        let mut recorded = record::record(run, &id, origin, log_dir, &options.settings)?;
        if let Some(roster) = &options.roster {
            name(&mut recorded, roster, &log_dir.join(id.as_str()), &options.settings)?;
        }
        runs.push(recorded);
    }
    Ok(ForeignImport { from: format.name(), files: files.len() as u64, runs, empty, defects })
}

/// Names the agents of a run that was imported.
fn name(
    run: &mut RecordedForeign,
    roster: &GivenRoster,
    run_dir: &Path,
    settings: &Settings,
) -> Result<(), RecordingError> {
    let amendment = Amendment { roster: Some(roster.clone()), ..Amendment::default() };
    let giver = AmendmentSource { source: FactSource::Import, by: None };
    for fact in recording::amend(run_dir, &amendment, &giver, settings)? {
        if let FactContent::Roster { roster } = fact.content {
            let named: usize = roster.named.iter().map(|group| group.steps.len()).sum();
            run.remade.unnamed = run.remade.unnamed.min(run.calls.saturating_sub(named as u64));
            run.agents = roster.agents;
        }
    }
    Ok(())
}

/// Why there is no run.
fn nothing(defects: &[ForeignDefect], empty: u64, files: usize) -> String {
    match defects.first() {
        Some(ForeignDefect { file, line, why }) => {
            let line = line.map(|line| format!(" line {line}")).unwrap_or_default();
            format!("{file}{line}: {why}")
        }
        None if empty > 0 => format!("{empty} traces hold no model call"),
        None if files == 0 => "there is no file that looks like one".to_owned(),
        None => "the files hold nothing".to_owned(),
    }
}

/// A file, or the files below a directory that may be of the format, in order.
fn below(format: &dyn ForeignTrace, path: &Path) -> Result<Vec<PathBuf>, ForeignError> {
    let unread = |path: &Path, source| ForeignError::Read { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(|error| unread(path, error))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut others, mut dirs) = (Vec::new(), Vec::new(), vec![path.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).map_err(|error| unread(&dir, error))? {
            let entry = entry.map_err(|error| unread(&dir, error))?;
            // A link is not followed: it may lead back up.
            let kind = entry.file_type().map_err(|error| unread(&dir, error))?;
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() && has_extension(format, &entry.path()) {
                let is_named = entry.file_name().to_string_lossy().contains(format.in_names());
                if is_named { &mut found } else { &mut others }.push(entry.path());
            }
        }
    }
    // Files of other names are looked at where none has the name that the format's own tools give.
    let mut found = if found.is_empty() { others } else { found };
    found.sort();
    Ok(found)
}

/// Whether a file may be one of the format, by its extension.
fn has_extension(format: &dyn ForeignTrace, path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    format.extensions().iter().any(|known| extension == *known)
}

/// What stands beside a file and says more of its run, where it can be read.
fn read_companion(format: &dyn ForeignTrace, file: &Path) -> Option<Value> {
    let path = file.parent().unwrap_or(Path::new("")).join(format.companion_file()?);
    let bytes = path.is_file().then(|| documents::bytes(&path).ok())??;
    serde_json::from_slice(&bytes).ok()
}

/// Names runs, and makes sure that there is room for each before any is written.
fn named(
    format: &str,
    runs: Vec<ForeignRun>,
    log_dir: &Path,
    overwrite: bool,
) -> Result<Vec<(RunId, ForeignRun)>, ForeignError> {
    let mut taken = BTreeSet::new();
    let mut named = Vec::with_capacity(runs.len());
    for run in runs {
        let mut id = id_of(format, &run);
        let mut number = 1;
        while !taken.insert(id.clone()) {
            number += 1;
            id = RunId::hashed(format, format!("{}\n{number}", run.key).as_bytes());
        }
        named.push((id, run));
    }
    let there = named.iter().map(|(id, _)| id).filter(|id| log_dir.join(id.as_str()).exists());
    for id in there.collect::<Vec<_>>() {
        let dir = log_dir.join(id.as_str());
        let imported = recording::read_manifest(&dir).is_ok_and(|manifest| manifest.imported.is_some());
        if !(imported && overwrite) {
            return Err(ForeignError::Occupied { log_dir: log_dir.to_owned(), run: id.to_string(), imported });
        }
    }
    for (id, _) in &named {
        let dir = log_dir.join(id.as_str());
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|source| RecordingError::Io { doing: "replace", path: dir, source })?;
        }
    }
    Ok(named)
}

/// `<format>-<what people would call it>`, with a hash behind it where that does not tell it from others.
fn id_of(format: &str, run: &ForeignRun) -> RunId {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let label: String = Redactor::of_process().text(&run.label).chars().map(plain).take(LABEL).collect();
    let whole = RunId::parse(&format!("{format}-{label}")).ok().filter(|_| label == run.key);
    let hash = blake3::hash(run.key.as_bytes()).to_hex();
    let hashed = || RunId::parse(&format!("{format}-{label}-{}", hash.get(..8).unwrap_or_default())).ok();
    whole.or_else(hashed).unwrap_or_else(|| RunId::hashed(format, run.key.as_bytes()))
}
