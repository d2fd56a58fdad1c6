//! Reads foreign labelled files into a dataset of ours. Nothing is trusted, everything odd is reported by file and
//! rule; raw names are kept beside canonical ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use super::{
    aegis, agentracer, codetracebench,
    foreign::{Defect, Defects},
    mast, mpbench, traceelephant, trail, whowhen, whowhen_pro,
};
use crate::{
    dataset::{
        BENIGN_FILE, DatasetError, DatasetManifest, FILE, MANIFEST_FILE, Sample, Writer,
        values::{self, ValuePlace},
    },
    recording::{Masked, MaskedFile},
};

/// The report of defects, beside the samples.
const REPORT: &str = "import.json";

/// Whose files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportSource {
    /// Who&When: a directory of `N.json` files, either layout or both below it, or one file.
    Whowhen,
    /// Aegis' unified records: JSON lines or one array.
    Aegis,
    /// AgenTracer's rows: Parquet, JSON lines, one array, or a directory of such files.
    Agentracer,
    /// MAST's rows: one array or JSON lines.
    Mast,
    /// MP-Bench, as its script writes it: a directory of `N.json` files, or one file.
    Mpbench,
    /// Who&When Pro: JSON lines, or a file a run.
    WhowhenPro,
    /// `TraceElephant`: directories of `trace_metadata.json` and `step_records.json`.
    Traceelephant,
    /// TRAIL: traces of spans, with their annotations in a directory beside.
    Trail,
    /// `CodeTraceBench`: its manifest, with the steps of each run below it.
    Codetracebench,
}

impl ImportSource {
    /// Whether a file of a directory is read for itself; the others are read with the one that they belong to.
    fn begins_at(self, path: &Path) -> bool {
        match self {
            Self::Traceelephant => path.file_name().is_some_and(|name| name == traceelephant::METADATA),
            Self::Trail => !trail::is_annotation(path),
            Self::Codetracebench => codetracebench::is_manifest(path),
            _ => true,
        }
    }
}

/// What was read.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Imported {
    /// Whose files.
    pub from: ImportSource,
    /// How many files were read.
    pub files: u64,
    /// How many samples they gave.
    pub samples: u64,
    /// How often each rule found something.
    pub rules: BTreeMap<&'static str, u64>,
    /// Every defect.
    pub defects: Vec<Defect>,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is nothing of the kind.
    #[error("`{}` holds no sample of this kind: {why}", path.display())]
    Nothing {
        /// What was named.
        path: PathBuf,
        /// What was expected, or the first defect.
        why: String,
    },
    /// What lies there would be lost.
    #[error("`{}` holds a {holds}, and importing would replace its dataset: name another directory, or say `--overwrite`", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// A campaign or a dataset.
        holds: &'static str,
    },
    /// The dataset cannot be written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

/// Imports `path` into the dataset directory `out`, with its defects in `import.json`. A campaign or dataset that lies
/// there is only replaced where that is asked for (`overwrite`).
///
/// # Errors
/// [`ImportError`]; a defective row is no error, a path without any good row is.
pub fn import(
    from: ImportSource,
    path: &Path,
    out: &Path,
    overwrite: bool,
) -> Result<(Imported, DatasetManifest), ImportError> {
    let holds = if overwrite { None } else { holds(out) };
    if let Some(holds) = holds {
        return Err(ImportError::Occupied { path: out.to_owned(), holds });
    }
    let mut writer = Writer::create(out)?;
    let (files, samples, defects) = each_sample(from, path, &mut |sample| Ok(writer.push(&sample)?))?;
    let mut rules: BTreeMap<&'static str, u64> = BTreeMap::new();
    for defect in &defects {
        *rules.entry(defect.rule).or_default() += 1;
    }
    let imported = Imported { from, files, samples, rules, defects };
    let report = out.join(REPORT);
    let failed = |source| DatasetError::Io { doing: "write", path: report.clone(), source };
    Masked::json_pretty(&imported).and_then(|text| MaskedFile::replace(&report, &text)).map_err(failed)?;
    Ok((imported, writer.finish()?))
}

/// Reads foreign files without writing anything: every sample, in order, and every defect.
///
/// # Errors
/// As [`import`], but for what is written.
pub fn read_foreign(from: ImportSource, path: &Path) -> Result<(Vec<Sample>, Vec<Defect>), ImportError> {
    let mut samples = Vec::new();
    let (_, _, defects) = each_sample(from, path, &mut |sample| {
        samples.push(sample);
        Ok(())
    })?;
    Ok((samples, defects))
}

/// Hands on each sample of a path: how many files and samples there were, and what was odd.
fn each_sample(
    from: ImportSource,
    path: &Path,
    hand_on: &mut dyn FnMut(Sample) -> Result<(), ImportError>,
) -> Result<(u64, u64, Vec<Defect>), ImportError> {
    let unread = |path: &Path, source| ImportError::Read { path: path.to_owned(), source };
    let files = values::files(path, &values::KINDS).map_err(|source| unread(path, source))?;
    let mut reader = SampleReader {
        from,
        path: PathBuf::new(),
        defects: Defects::default(),
        ids: BTreeMap::new(),
        tasks: BTreeMap::new(),
        samples: 0,
    };
    let files: Vec<&PathBuf> = files.iter().filter(|file| file.as_path() == path || from.begins_at(file)).collect();
    for file in files.iter().copied() {
        let mut broken = None;
        reader.path.clone_from(file);
        let read = values::read(file, &values::named(file, path), &mut |place| match reader.row(place) {
            Some(sample) => hand_on(sample).map_err(|error| broken = Some(error)).is_ok(),
            None => true,
        });
        read.map_err(|source| unread(file, source))?;
        if let Some(error) = broken {
            return Err(error);
        }
    }
    reader.shared_tasks();
    let (samples, defects) = (reader.samples, reader.defects.finish());
    if samples == 0 {
        let why = defects.first().map_or("expected JSON files".to_owned(), |defect| {
            format!("{}: {}: {}", defect.file, defect.rule, defect.found)
        });
        return Err(ImportError::Nothing { path: path.to_owned(), why });
    }
    Ok((files.len() as u64, samples, defects))
}

/// What a directory holds that took runs to make.
fn holds(dir: &Path) -> Option<&'static str> {
    let there = |names: &[&str]| names.iter().any(|name| dir.join(name).exists());
    if there(&["cells", "logs"]) {
        return Some("campaign");
    }
    there(&[FILE, BENIGN_FILE, MANIFEST_FILE]).then_some("dataset")
}

/// Turns values into samples.
struct SampleReader {
    from: ImportSource,
    /// The file that is being read.
    path: PathBuf,
    defects: Defects,
    ids: BTreeMap<String, u64>,
    /// The layouts that hold a task.
    tasks: BTreeMap<String, BTreeSet<(String, String)>>,
    samples: u64,
}

impl SampleReader {
    fn row(&mut self, place: ValuePlace<'_>) -> Option<Sample> {
        self.defects.at(place.file, place.row);
        let value = match place.value {
            Ok(value) => value,
            Err(why) => {
                self.defects.add("not-json", why);
                return None;
            }
        };
        let stem = Path::new(place.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let row = place.row.map_or_else(|| stem.clone(), |row| format!("{stem}-{row}"));
        let defects = &mut self.defects;
        let mut sample = match self.from {
            ImportSource::Whowhen => whowhen::read(&value, &row, &self.path, defects),
            ImportSource::Agentracer => agentracer::read(&value, &format!("agentracer-{row}"), defects),
            ImportSource::Mast => mast::read(&value, &format!("mast-{row}"), defects),
            ImportSource::Mpbench => mpbench::read(&value, &row, &self.path, defects),
            ImportSource::WhowhenPro => whowhen_pro::read(&value, defects),
            ImportSource::Traceelephant => traceelephant::read(&value, &self.path, defects),
            ImportSource::Trail => trail::read(&value, &stem, &self.path, defects),
            ImportSource::Codetracebench => codetracebench::read(&value, &self.path, defects),
            ImportSource::Aegis => {
                let id = value.get("id").and_then(Value::as_str).unwrap_or(&row);
                aegis::read(&value, id, defects)
            }
        }?;
        let seen = self.ids.entry(sample.id.clone()).or_default();
        *seen += 1;
        if *seen > 1 {
            self.defects.add("doubled-id", format!("`{}`", sample.id));
            sample.id = format!("{}~{seen}", sample.id);
        }
        if self.from == ImportSource::Whowhen {
            let layout = sample.extra.get("format").and_then(Value::as_str).unwrap_or_default().to_owned();
            self.tasks.entry(sample.task.id.clone()).or_default().insert((layout, place.file.to_owned()));
        }
        self.samples += 1;
        Some(sample)
    }

    /// Tasks that both layouts hold.
    fn shared_tasks(&mut self) {
        for (task, places) in &self.tasks {
            let layouts: BTreeSet<&String> = places.iter().map(|(layout, _)| layout).collect();
            if layouts.len() > 1 && !task.is_empty() {
                let files: Vec<&str> = places.iter().map(|(_, file)| file.as_str()).collect();
                self.defects.at(files.first().copied().unwrap_or_default(), None);
                self.defects.add("shared-task", format!("task `{task}` in {}", files.join(", ")));
            }
        }
    }
}
