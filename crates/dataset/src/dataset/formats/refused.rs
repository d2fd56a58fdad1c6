//! Why an export wrote nothing.

use std::{collections::BTreeMap, io, path::PathBuf};

use super::rows::RowError;
use crate::dataset::DatasetError;

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
    /// A format of labels, for a recording that has none that is shown.
    #[error("`{name}` is written of datasets, whose labels are shown: one recorded run goes out as {known}")]
    NotOfRecordings {
        /// The format.
        name: &'static str,
        /// Those that take one.
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
    /// The failures make several kinds of claims, and nobody said which go out.
    #[error("the labels make several kinds of claims, which rows do not tell apart: {}", .counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", "))]
    SeveralKinds {
        /// Samples that would be written, by kind.
        counts: BTreeMap<String, u64>,
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
    /// What is not of an earlier export lies where the files are to go.
    #[error("`{}` exists and is not an earlier export: name another with `--out`", path.display())]
    Occupied {
        /// The file or directory.
        path: PathBuf,
    },
    /// The files are to go where the dataset lies that is read.
    #[error("`{}` lies with the dataset that is read, and would be lost: name another with `--out`", path.display())]
    OwnSource {
        /// Where they were to go.
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
    pub(super) fn read_from(mut self, file: Option<&PathBuf>, at: u64) -> Self {
        if let (Self::Row { from, line, .. }, Some(file)) = (&mut self, file) {
            from.clone_from(file);
            *line = at;
        }
        self
    }
}
