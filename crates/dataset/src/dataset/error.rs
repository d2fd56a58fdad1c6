//! Why a dataset could not be read, built or written.

use std::{io, path::PathBuf};

use crate::{recording::RecordingError, trajectory::RunId};

/// An error of the dataset room.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// A file operation failed.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was tried, for example `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What was named holds no dataset.
    #[error(
        "`{}` is no dataset: expected a JSONL file of samples, a directory with `dataset.jsonl`, or one of recorded runs", path.display()
    )]
    NotADataset {
        /// What was named.
        path: PathBuf,
    },
    /// A directory of runs belongs to a data set, which says more of them.
    #[error("`{}` holds the recordings of the data set `{}`: name that", path.display(), dataset.display())]
    LogsOfDataset {
        /// What was named.
        path: PathBuf,
        /// The data set.
        dataset: PathBuf,
    },
    /// A line is no sample.
    #[error("{}:{line}:{column}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, 1-based.
        line: u64,
        /// The column, 1-based; 0 where there is none.
        column: usize,
        /// What is wrong, and what was expected.
        why: String,
    },
    /// Lines of a task set are no tasks.
    #[error("{}", said.join("\n"))]
    Tasks {
        /// Each as [`DatasetError::Line`] is told.
        said: Vec<String>,
    },
    /// A newer version of this program wrote the line.
    #[error("{}:{line}: the sample has format {found}: expected at most {known}; read it with a newer version", path.display())]
    Future {
        /// The file.
        path: PathBuf,
        /// The line, 1-based.
        line: u64,
        /// The format found.
        found: u64,
        /// The newest format that this version reads.
        known: u32,
    },
    /// A label points at a step that its recording does not hold.
    #[error("run `{run}`: the label names step {step}, which the recording does not hold")]
    Stray {
        /// The run.
        run: RunId,
        /// The step.
        step: u32,
    },
    /// A recording could not be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

impl DatasetError {
    /// The exit code of the error: 2 usage and version, 5 what cannot be read or written.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotADataset { .. } | Self::LogsOfDataset { .. } | Self::Future { .. } => 2,
            Self::Recording(error) => error.exit_code(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => 2,
            Self::Io { .. } | Self::Line { .. } | Self::Tasks { .. } | Self::Stray { .. } => 5,
        }
    }
}
