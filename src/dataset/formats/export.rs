//! Writes a dataset in a foreign format: one sample at a time, in the dataset's order, nothing half-written, with a
//! manifest of counts and hashes beside it.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    ALL,
    admit::{refuse, taken},
    card::Card,
    format::{Context, Format, Options, Piece, Shape, Unfit},
    own::SAMPLE,
    pretty,
    rows::{FileHash, RowError},
    sink::Sink,
};
use crate::{
    dataset::{Dataset, DatasetError, Entry, Index, Kind, Placed, Sample},
    trajectory::nearest,
};

/// The name of our own samples among the schemas.
const OWN: &str = "dataset";
/// The format of the manifest.
const MANIFEST: u32 = 1;

/// What was written; it lies beside it as `NAME.manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportManifest {
    /// Format of this manifest.
    pub format: u32,
    /// The foreign format.
    pub to: &'static str,
    /// Samples read.
    pub read: u64,
    /// Samples written.
    pub written: u64,
    /// Rows or files written; some formats make none or several of a sample.
    pub pieces: u64,
    /// Samples without a place in the format, by the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Prompts that were cut to size.
    pub cut: CutTotal,
    /// Each file with its bytes and hash.
    pub files: BTreeMap<String, FileHash>,
}

/// Truncation over all samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CutTotal {
    /// Prompts.
    pub prompts: u64,
    /// Steps of which only beginning and end are left.
    pub shortened_steps: u64,
    /// Steps that are gone.
    pub dropped_steps: u64,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is no such format.
    #[error("unknown format `{name}`: expected one of {known}{}", .nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    UnknownFormat {
        /// What was written.
        name: String,
        /// All of them.
        known: String,
        /// The nearest.
        nearest: Option<&'static str>,
    },
    /// A format whose rows no folder holds.
    #[error("`{name}` is no format of rows: expected one of {known}")]
    NoRows {
        /// The format.
        name: &'static str,
        /// Those that are.
        known: String,
    },
    /// Lint found something.
    #[error("lint refuses the dataset: {findings} findings, the first {rule} in `{sample}`: {what}")]
    Refused {
        /// How many.
        findings: usize,
        /// The first one's rule.
        rule: &'static str,
        /// Its sample.
        sample: String,
        /// What it says.
        what: String,
    },
    /// The dataset cannot be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A file cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A row has no place in the columns of its file.
    #[error("{}:{line}: this sample has no place in a row of `{}`", from.display(), path.display())]
    Row {
        /// The dataset's file that the sample was read from.
        from: PathBuf,
        /// Its line there, 1-based.
        line: u64,
        /// The file that was to hold the row.
        path: PathBuf,
        /// The value, and what was expected.
        #[source]
        source: Box<RowError>,
    },
    /// A directory that is not of an earlier export lies where the files are to go.
    #[error("`{}` exists and is not an earlier export: name another with `--out`", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// Two samples would be one file.
    #[error("two samples would both be written to `{file}`: their source files have one name; export them apart")]
    SameFile {
        /// The file's name.
        file: String,
    },
    /// A sample asks for a file outside of the directory.
    #[error("a sample names `{}` as its file: expected a plain file name", file.escape_debug())]
    StrayFile {
        /// What it asks for.
        file: String,
    },
}

impl ExportError {
    /// Says where the sample of a refused row was read.
    fn read_from(mut self, file: Option<&PathBuf>, at: u64) -> Self {
        if let (Self::Row { from, line, .. }, Some(file)) = (&mut self, file) {
            from.clone_from(file);
            *line = at;
        }
        self
    }
}

/// The format of a name.
///
/// # Errors
/// [`ExportError::UnknownFormat`].
pub fn format(name: &str) -> Result<&'static dyn Format, ExportError> {
    ALL.iter().copied().find(|format| format.name() == name).ok_or_else(|| ExportError::UnknownFormat {
        name: name.chars().take(80).collect(),
        known: ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", "),
        nearest: nearest(name, ALL.iter().map(|format| format.name())),
    })
}

/// The format of a name, as one of a folder.
///
/// # Errors
/// [`ExportError::UnknownFormat`] and [`ExportError::NoRows`].
pub fn config(name: &str) -> Result<&'static dyn Format, ExportError> {
    let format = format(name)?;
    if format.shape() == Shape::Lines {
        return Ok(format);
    }
    let known = ALL.iter().filter(|format| format.shape() == Shape::Lines).map(|format| format.name());
    Err(ExportError::NoRows { name: format.name(), known: known.collect::<Vec<_>>().join(", ") })
}

/// The JSON Schema of a format's lines, files or document, or of our own samples (`dataset`), over several lines.
///
/// # Errors
/// [`ExportError::UnknownFormat`].
pub fn json_schema(name: &str) -> Result<Vec<u8>, ExportError> {
    let schema = if name == OWN {
        SAMPLE.json_schema(OWN, "a line of dataset.jsonl or benign.jsonl: one run with its ground truth")
    } else {
        let format = format(name)?;
        format.schema().json_schema(name, format.about())
    };
    Ok(pretty(&schema, b"  "))
}

/// Writes a dataset to `out`.
///
/// # Errors
/// [`ExportError`]; what lay at `out` before is untouched then.
pub fn export(
    dataset: &Dataset,
    format: &dyn Format,
    out: &Path,
    options: &Options,
) -> Result<ExportManifest, ExportError> {
    refuse(dataset, &options.lint)?;
    let mut sink = Sink::create(format, out, options)?;
    let mut card = (format.shape() == Shape::Folder).then(Card::default);
    let mut manifest = ExportManifest {
        format: MANIFEST,
        to: format.name(),
        read: 0,
        written: 0,
        pieces: 0,
        left_out: BTreeMap::new(),
        cut: CutTotal::default(),
        files: BTreeMap::new(),
    };
    let relations = Relations::find(dataset, format)?;
    for placed in dataset.samples() {
        let Placed { sample, file, line, .. } = placed?;
        manifest.read += 1;
        let number = usize::try_from(manifest.written).unwrap_or(usize::MAX);
        let pieces = match taken(&sample, format, options) {
            Ok(()) => {
                let context = relations.context(dataset, &sample, number, options)?;
                format.pieces(&sample, &context)
            }
            Err(why) => Err(why),
        };
        match pieces {
            Ok(pieces) => {
                manifest.written += 1;
                if let Some(card) = &mut card {
                    card.add(&sample);
                }
                for piece in pieces {
                    manifest.count(&piece);
                    sink.push(piece).map_err(|refused| refused.read_from(dataset.files().get(file), line))?;
                }
            }
            Err(Unfit(why)) => *manifest.left_out.entry(why.to_owned()).or_default() += 1,
        }
    }
    if let Some(card) = card {
        let tables = sink.tables()?;
        let text = card.text(options, &tables, sink.hashes());
        sink.file("README.md", text.as_bytes())?;
    }
    sink.finish(manifest)
}

impl ExportManifest {
    fn count(&mut self, piece: &Piece) {
        self.pieces += 1;
        if let Some(cut) = piece.cut {
            self.cut.prompts += 1;
            self.cut.shortened_steps += cut.shortened_steps as u64;
            self.cut.dropped_steps += cut.dropped_steps as u64;
        }
    }
}

/// Which samples belong together, by place; ids are held, samples are not.
#[derive(Debug, Default)]
struct Relations {
    index: Option<Index>,
    failures: Option<BTreeMap<String, Vec<Entry>>>,
}

impl Relations {
    fn find(dataset: &Dataset, format: &dyn Format) -> Result<Self, ExportError> {
        let index = format.wants_twin().then(|| dataset.index()).transpose()?;
        let mut failures = format.wants_failures().then(BTreeMap::<String, Vec<Entry>>::new);
        if let Some(failures) = &mut failures {
            for placed in dataset.samples() {
                let placed = placed?;
                let entry =
                    Entry { file: placed.file, line: placed.line, offset: placed.offset, kind: placed.sample.kind };
                if let (Kind::Failure, Some(twin)) = (placed.sample.kind, placed.sample.clean_twin) {
                    failures.entry(twin).or_default().push(entry);
                }
            }
        }
        Ok(Self { index, failures })
    }

    fn context<'a>(
        &self,
        dataset: &Dataset,
        sample: &Sample,
        number: usize,
        options: &'a Options,
    ) -> Result<Context<'a>, ExportError> {
        let twin = self.index.as_ref().zip(sample.clean_twin.as_ref()).and_then(|(index, twin)| index.get(twin));
        let twin = twin.map(|entry| dataset.at(entry)).transpose()?;
        let entries = self.failures.as_ref().and_then(|failures| failures.get(&sample.id)).map(Vec::as_slice);
        let failures = entries.unwrap_or_default().iter().map(|entry| dataset.at(entry)).collect::<Result<_, _>>()?;
        Ok(Context { number, options, twin, failures })
    }
}
