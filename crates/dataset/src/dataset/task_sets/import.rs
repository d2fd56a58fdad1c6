//! Reads a public set's files and writes a task file of ours, with a manifest beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use super::{SetTerms, TaskFields, TaskSet, TaskSetRow, Unusable};
use crate::{
    dataset::{
        Task,
        values::{self, ValuePlace},
    },
    recording::{Masked, MaskedFile},
    trajectory::Verdict,
    verify::Case,
};

/// The format of the manifest.
const MANIFEST: u32 = 1;
/// Kinds of files that sets are published in.
const KINDS: [&str; 5] = ["json", "jsonl", "jsonl.gz", "parquet", "csv"];
/// What a packed file may unpack to, in bytes: the largest of the sets has a tenth of it.
const UNPACKED_MAX: u64 = 1 << 30;
/// Most fields of a row that an error names.
const NAMED: usize = 20;

/// The choices of the user.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `generic`: what the fields of rows are called.
    pub fields: TaskFields,
    /// Also tasks about a file that the task cannot bring.
    pub with_files: bool,
    /// Whether a file that lies where the tasks go is replaced.
    pub overwrite: bool,
}

/// What was read, as the manifest beside the tasks has it (`NAME.manifest.json`).
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ImportedTasks {
    /// Format of the manifest.
    pub format: u32,
    /// The set.
    pub from: &'static str,
    /// Whose it is, and on what terms.
    #[serde(flatten)]
    pub terms: SetTerms,
    /// How many rows its files have.
    pub rows: u64,
    /// How many tasks were written.
    pub tasks: u64,
    /// How many of them bring a command, which a campaign runs only if it is told so.
    pub commands: u64,
    /// Rows that could not be used, by the reason.
    pub left_out: BTreeMap<String, LeftOutRows>,
    /// Each file that was read, with its hash.
    pub files: BTreeMap<String, String>,
}

/// Rows that could not be used for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LeftOutRows {
    /// How many.
    pub rows: u64,
    /// The first of them: file and row.
    pub first: String,
}

/// Why no task file was written.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// A file cannot be read or written.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something lies where the tasks are to go.
    #[error("`{}` exists: name another with `--out`, or say `--overwrite`", path.display())]
    Occupied {
        /// The file.
        path: PathBuf,
    },
    /// The tasks are to go where they are read from.
    #[error("`{}` is what is read, and would be lost: name another with `--out`", path.display())]
    OwnSource {
        /// The file.
        path: PathBuf,
    },
    /// No row can be used.
    #[error("`{}` holds no usable row of {from} ({about}): {why}", path.display())]
    Nothing {
        /// What was read.
        path: PathBuf,
        /// The set.
        from: &'static str,
        /// What its rows look like.
        about: &'static str,
        /// The first reason, and where.
        why: String,
    },
}

/// Imports the files of `path` as tasks into `out`.
///
/// # Errors
/// [`TasksError`]; a row that cannot be used is none, a path without any that can is.
pub fn import(set: &dyn TaskSet, path: &Path, out: &Path, options: Options) -> Result<ImportedTasks, TasksError> {
    let unread = |path: &Path, source| TasksError::Io { doing: "read", path: path.to_owned(), source };
    let files = values::files(path, &KINDS).map_err(|source| unread(path, source))?;
    if let Ok(target) = out.canonicalize() {
        if files.iter().any(|file| file.canonicalize().is_ok_and(|file| file == target)) {
            return Err(TasksError::OwnSource { path: out.to_owned() });
        }
        if !options.overwrite || target.is_dir() {
            return Err(TasksError::Occupied { path: out.to_owned() });
        }
    }
    let mut reader = Reader::new(set, options);
    for file in &files {
        let name = values::named(file, path);
        let bytes = fs::read(file).map_err(|source| unread(file, source))?;
        reader.imported.files.insert(name.to_string(), blake3::hash(&bytes).to_hex().to_string());
        let mut each = |place: ValuePlace<'_>| reader.row(&place);
        let is = |kind| file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(kind));
        let read = if is("csv") {
            values::read_csv(&bytes, &name, set.columns(), &mut each);
            Ok(())
        } else if is("gz") {
            unpacked(file, &bytes).and_then(|(_dir, file)| values::read(&file, &name, &mut each))
        } else {
            values::read(file, &name, &mut each)
        };
        read.map_err(|source| unread(file, source))?;
    }
    if reader.imported.tasks == 0 {
        let first = reader.imported.left_out.iter().next();
        let mut why = first.map_or_else(|| "it has no rows".to_owned(), |(why, rows)| format!("{}: {why}", rows.first));
        if !reader.fields.is_empty() {
            why = format!("{why}; the first row has the fields `{}`", reader.fields.join("`, `"));
        }
        return Err(TasksError::Nothing { path: path.to_owned(), from: set.name(), about: set.description(), why });
    }
    write(out, &reader.lines)?;
    let mut manifest = serde_json::to_vec_pretty(&reader.imported).unwrap_or_default();
    manifest.push(b'\n');
    let name = format!("{}.manifest.json", out.file_name().unwrap_or_default().to_string_lossy());
    write(&out.with_file_name(name), &manifest)?;
    Ok(reader.imported)
}

/// What a packed file holds, in a directory that goes away with the first of the two.
fn unpacked(file: &Path, packed: &[u8]) -> io::Result<(tempfile::TempDir, PathBuf)> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join(file.file_stem().unwrap_or_default());
    let mut bytes = flate2::read::MultiGzDecoder::new(packed).take(UNPACKED_MAX + 1);
    if io::copy(&mut bytes, &mut File::create(&path)?)? > UNPACKED_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it unpacks to more than 1 GiB"));
    }
    Ok((dir, path))
}

/// Puts a file in place whole, for its owner alone where there was none.
fn write(path: &Path, bytes: &[u8]) -> Result<(), TasksError> {
    let failed = |source| TasksError::Io { doing: "write", path: path.to_owned(), source };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed)?;
    MaskedFile::replace(path, &Masked::new(bytes)).map_err(failed)
}

/// Turns values into tasks.
struct Reader<'a> {
    set: &'a dyn TaskSet,
    options: Options,
    ids: BTreeSet<String>,
    /// Of the first row.
    fields: Vec<String>,
    lines: Vec<u8>,
    imported: ImportedTasks,
}

impl<'a> Reader<'a> {
    fn new(set: &'a dyn TaskSet, options: Options) -> Self {
        let said = ImportedTasks {
            format: MANIFEST,
            from: set.name(),
            terms: set.terms(),
            rows: 0,
            tasks: 0,
            commands: 0,
            left_out: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        Self { set, options, ids: BTreeSet::new(), fields: Vec::new(), lines: Vec::new(), imported: said }
    }

    fn row(&mut self, place: &ValuePlace<'_>) -> bool {
        self.imported.rows += 1;
        let row = place.row.map_or_else(String::new, |row| format!(":{row}"));
        let at = format!("{}{row}", place.file);
        if let (true, Ok(Value::Object(fields))) = (self.fields.is_empty(), &place.value) {
            self.fields = fields.keys().take(NAMED).cloned().collect();
        }
        let task = match &place.value {
            Ok(Value::Object(fields)) => self.set.task(&TaskSetRow { fields, file: place.file }, &self.options),
            Ok(_) => Err(Unusable::new("a row that is no object")),
            Err(_) => Err(Unusable::new("a row that cannot be read")),
        };
        if let Err(Unusable(why)) = task.and_then(|task| self.take(&task)) {
            self.imported.left_out.entry(why).or_insert(LeftOutRows { rows: 0, first: at }).rows += 1;
        }
        true
    }

    /// Takes a task, if no earlier row is the same and its checker takes its own answer.
    fn take(&mut self, task: &Task) -> Result<(), Unusable> {
        let said = task.check.as_ref().and_then(|check| {
            let output = format!("ANSWER: {}", task.answer);
            check.compares(&Case { question: &task.question, expected: &task.answer, output: &output })
        });
        if said.is_some_and(|verdict| verdict != Verdict::Success) {
            return Err(Unusable::new("its checker does not take its own answer"));
        }
        if !self.ids.insert(task.id.clone()) {
            return Err(Unusable::new("an earlier row is the same task"));
        }
        let line = serde_json::to_vec(task).map_err(|_| Unusable::new("it cannot be written as a line"))?;
        self.lines.extend(line);
        self.lines.push(b'\n');
        self.imported.tasks += 1;
        self.imported.commands += u64::from(said.is_none());
        Ok(())
    }
}
