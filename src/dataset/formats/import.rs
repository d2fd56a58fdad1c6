//! Reads foreign labelled files into a dataset of ours. Nothing is trusted, everything odd is reported by file and
//! rule; raw names are kept beside canonical ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use parquet::{
    errors::ParquetError,
    file::reader::{FileReader, SerializedFileReader},
};
use serde::{Deserializer as _, Serialize, de};
use serde_json::Value;

use super::{
    aegis, agentracer,
    foreign::{Defect, Defects},
    mast, whowhen,
};
use crate::dataset::{BENIGN_FILE, DatasetError, DatasetManifest, FILE, MANIFEST_FILE, Sample, Writer};

/// The report of defects, beside the samples.
const REPORT: &str = "import.json";

/// Whose files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
}

/// What was read.
#[derive(Debug, Clone, Serialize)]
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
    let files = files(path)?;
    let mut reader =
        SampleReader { from, defects: Defects::default(), ids: BTreeMap::new(), tasks: BTreeMap::new(), samples: 0 };
    let mut writer = Writer::create(out)?;
    for file in &files {
        let name = file.strip_prefix(path).ok().filter(|name| !name.as_os_str().is_empty()).unwrap_or(file);
        let name = if name == file.as_path() { file.file_name().map_or(file.as_path(), Path::new) } else { name };
        let mut broken = None;
        read(file, &name.to_string_lossy(), &mut |place| match reader.row(place) {
            Some(sample) => writer.push(&sample).map_err(|error| broken = Some(error)).is_ok(),
            None => true,
        })?;
        if let Some(error) = broken {
            return Err(error.into());
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
    let mut rules: BTreeMap<&'static str, u64> = BTreeMap::new();
    for defect in &defects {
        *rules.entry(defect.rule).or_default() += 1;
    }
    let imported = Imported { from, files: files.len() as u64, samples, rules, defects };
    let report = out.join(REPORT);
    let failed = |source| DatasetError::Io { doing: "write", path: report.clone(), source };
    let mut text = serde_json::to_vec_pretty(&imported).map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    let temporary = out.join(format!(".{REPORT}.tmp"));
    fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, &report)).map_err(failed)?;
    Ok((imported, writer.finish()?))
}

/// What a directory holds that took runs to make.
fn holds(dir: &Path) -> Option<&'static str> {
    let there = |names: &[&str]| names.iter().any(|name| dir.join(name).exists());
    if there(&["cells", "logs"]) {
        return Some("campaign");
    }
    there(&[FILE, BENIGN_FILE, MANIFEST_FILE]).then_some("dataset")
}

/// The files of a path, in a fixed order: numbers by value, so that `2.json` comes before `10.json`.
fn files(path: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let failed = |source| ImportError::Read { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut dirs) = (Vec::new(), vec![path.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let entry = entry.map_err(failed)?.path();
            let kinds = ["json", "jsonl", "parquet"];
            let known = entry.extension().is_some_and(|extension| kinds.iter().any(|kind| extension == *kind));
            if entry.is_dir() {
                dirs.push(entry);
            } else if known {
                found.push(entry);
            }
        }
    }
    found.sort_by_cached_key(|path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (path.parent().map(Path::to_owned), stem.parse::<u64>().unwrap_or(u64::MAX), stem)
    });
    Ok(found)
}

/// A value of a file, or what stands in its place.
struct ImportPlace<'a> {
    file: &'a str,
    row: Option<u64>,
    value: Result<Value, String>,
}

/// Turns values into samples.
struct SampleReader {
    from: ImportSource,
    defects: Defects,
    ids: BTreeMap<String, u64>,
    /// The layouts that hold a task.
    tasks: BTreeMap<String, BTreeSet<(String, String)>>,
    samples: u64,
}

impl SampleReader {
    fn row(&mut self, place: ImportPlace<'_>) -> Option<Sample> {
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
            ImportSource::Whowhen => whowhen::read(&value, &row, defects),
            ImportSource::Agentracer => agentracer::read(&value, &format!("agentracer-{row}"), defects),
            ImportSource::Mast => mast::read(&value, &format!("mast-{row}"), defects),
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

/// Hands every value of a file on, one at a time; `each` answers whether to go on.
fn read(path: &Path, name: &str, each: &mut dyn FnMut(ImportPlace<'_>) -> bool) -> Result<(), ImportError> {
    let failed = |source| ImportError::Read { path: path.to_owned(), source };
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return table(path, name, each).map_err(failed);
    }
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
    let first = loop {
        let buffer = file.fill_buf().map_err(failed)?;
        match buffer.iter().position(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf)) {
            Some(at) => break buffer.get(at).copied(),
            None if buffer.is_empty() => break None,
            None => {
                let length = buffer.len();
                file.consume(length);
            }
        }
    };
    if first == Some(b'[') {
        skip_to(&mut file, b'[').map_err(failed)?;
        let mut rows = serde_json::Deserializer::from_reader(file);
        let mut row = 0;
        let visited = rows.deserialize_seq(ArrayRows {
            each: &mut |value| {
                row += 1;
                each(ImportPlace { file: name, row: Some(row), value: Ok(value) })
            },
        });
        if let Err(error) = visited {
            each(ImportPlace { file: name, row: Some(row + 1), value: Err(error.to_string()) });
        }
        return Ok(());
    }
    if path.extension().is_none_or(|extension| extension != "jsonl") {
        let bytes = fs::read(path).map_err(failed)?;
        if let Ok(value) = serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)) {
            each(ImportPlace { file: name, row: None, value: Ok(value) });
            return Ok(());
        }
    }
    lines(file, name, each).map_err(failed)
}

/// One value a row of Parquet.
fn table(path: &Path, name: &str, each: &mut dyn FnMut(ImportPlace<'_>) -> bool) -> io::Result<()> {
    let file = File::open(path)?;
    let unread = |error: ParquetError, row| ImportPlace { file: name, row, value: Err(error.to_string()) };
    let reader = match SerializedFileReader::new(file) {
        Ok(reader) => reader,
        Err(error) => {
            each(unread(error, None));
            return Ok(());
        }
    };
    let rows = match reader.get_row_iter(None) {
        Ok(rows) => rows,
        Err(error) => {
            each(unread(error, None));
            return Ok(());
        }
    };
    for (number, row) in rows.enumerate() {
        let number = Some(number as u64 + 1);
        let place = match row {
            Ok(row) => ImportPlace { file: name, row: number, value: Ok(row.to_json_value()) },
            Err(error) => unread(error, number),
        };
        let broken = place.value.is_err();
        if !each(place) || broken {
            break;
        }
    }
    Ok(())
}

/// One value a line.
fn lines(file: impl BufRead, name: &str, each: &mut dyn FnMut(ImportPlace<'_>) -> bool) -> io::Result<()> {
    for (number, line) in file.split(b'\n').enumerate() {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let value = serde_json::from_slice(&line).map_err(|error| error.to_string());
        if !each(ImportPlace { file: name, row: Some(number as u64 + 1), value }) {
            break;
        }
    }
    Ok(())
}

/// Skips what stands before a byte, a byte order mark among it.
fn skip_to(file: &mut impl BufRead, byte: u8) -> io::Result<()> {
    loop {
        let buffer = file.fill_buf()?;
        match buffer.first() {
            Some(first) if *first != byte => file.consume(1),
            _ => return Ok(()),
        }
    }
}

/// The elements of an array, one at a time, so that a file of any size fits.
struct ArrayRows<'a> {
    each: &'a mut dyn FnMut(Value) -> bool,
}

impl<'de> de::Visitor<'de> for ArrayRows<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array of rows")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element::<Value>()? {
            if !(self.each)(row) {
                break;
            }
        }
        Ok(())
    }
}
