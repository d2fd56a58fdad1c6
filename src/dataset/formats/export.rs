//! Writes a dataset in a foreign format: one sample at a time, in the dataset's order, nothing half-written, with a
//! manifest of counts and hashes beside it.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use super::{
    ALL,
    admit::{refuse, taken},
    prompt::{Cut, Prompt, Template},
    sink::{FileHash, Sink},
};
use crate::{
    dataset::{Dataset, DatasetError, Entry, Index, Kind, Sample, Split, lint::Rule},
    trajectory::nearest,
};

/// The format of the manifest.
const MANIFEST: u32 = 1;

/// A foreign format that can be written.
pub trait Format: std::fmt::Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// One line: what it is, and the base of its steps.
    fn about(&self) -> &'static str;
    /// How its pieces lie on disk.
    fn shape(&self) -> Shape;
    /// Whether clean runs have a place in it.
    fn takes_clean(&self) -> bool {
        false
    }
    /// Whether a failure is written together with its clean twin.
    fn wants_twin(&self) -> bool {
        false
    }
    /// Whether a clean run is written together with the failures that it is the twin of.
    fn wants_failures(&self) -> bool {
        false
    }
    /// What one sample becomes.
    ///
    /// # Errors
    /// [`Unfit`] when it has no place in the format; it is counted, and the export goes on.
    fn pieces(&self, sample: &Sample, context: &Context<'_>) -> Result<Vec<Piece>, Unfit>;
}

/// How the pieces of a format lie on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One file, one JSON object a line.
    Lines,
    /// One JSON document: its beginning, the pieces with commas between, its end.
    Document {
        /// What stands before the first piece.
        open: &'static str,
        /// What stands behind the last.
        close: &'static str,
    },
    /// A directory with a file a piece.
    Files,
}

/// One written thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The name of its file, for [`Shape::Files`].
    pub file: String,
    /// The bytes.
    pub text: Vec<u8>,
    /// What truncation left out.
    pub cut: Option<Cut>,
}

impl Piece {
    /// A JSON value in one line.
    pub fn row(value: &Value) -> Self {
        Self { file: String::new(), text: value.to_string().into_bytes(), cut: None }
    }

    /// A file of its own.
    pub fn file(name: String, text: Vec<u8>) -> Self {
        Self { file: name, text, cut: None }
    }

    /// With what truncation left out.
    #[must_use]
    pub fn cut(mut self, cut: Option<Cut>) -> Self {
        self.cut = cut;
        self
    }
}

/// Why a sample has no place in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit(pub &'static str);

/// What a format may look at beside the sample.
#[derive(Debug)]
pub struct Context<'a> {
    /// How many samples were written before, 0-based.
    pub number: usize,
    /// The choices of the user.
    pub options: &'a Options,
    /// The clean twin of a failure, where the format wants it and the dataset has it.
    pub twin: Option<Sample>,
    /// The failures of a clean run, where the format wants them.
    pub failures: Vec<Sample>,
}

/// The choices of the user.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The attribution prompt.
    pub template: Template,
    /// Whether the prompt tells the right answer.
    pub gold_answer: bool,
    /// Longest prompt in estimated tokens.
    pub tokens: Option<usize>,
    /// Only this part of the dataset.
    pub split: Option<Split>,
    /// Also labels that were delivered and are not proven.
    pub unverified: bool,
    /// What lint's findings lead to.
    pub lint: Lint,
}

/// What lint's findings lead to. Samples that were imported are as their source has them: what is wrong with them was
/// reported then, and refuses nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lint {
    /// A finding refuses the export, but for those of these rules.
    RefuseBut(Vec<Rule>),
    /// Lint is not asked.
    Ignore,
}

impl Default for Lint {
    fn default() -> Self {
        Lint::RefuseBut(Vec::new())
    }
}

impl Options {
    /// The attribution prompt of a sample.
    ///
    /// # Errors
    /// [`Unfit`] for a run of which no step is known: there is nothing to ask about.
    pub(super) fn prompt(&self, sample: &Sample) -> Result<Prompt, Unfit> {
        if sample.steps.is_empty() {
            return Err(Unfit("no step"));
        }
        Ok(self.template.fill(sample, self.gold_answer, self.tokens))
    }
}

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
    let mut sink = Sink::create(format.shape(), out)?;
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
        let sample = placed?.sample;
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
                for piece in pieces {
                    manifest.count(&piece);
                    sink.push(&piece)?;
                }
            }
            Err(Unfit(why)) => *manifest.left_out.entry(why.to_owned()).or_default() += 1,
        }
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
