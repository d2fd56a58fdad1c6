//! Why nothing was imported.

use std::{io, path::PathBuf};

use crate::recording::RecordingError;

/// The longest file, in bytes: a document is read whole, and takes several times its length of memory.
pub(super) const LONGEST: u64 = 256 << 20;
/// Most bytes of all files of an import: they are held until the last is read, for a trace may go on in another file.
pub(super) const TOTAL: usize = 1 << 30;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file is too long to be held.
    #[error("`{}` is longer than {} MB: cut it at a line, or by trace", path.display(), LONGEST >> 20)]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The files are too long together.
    #[error("the files have more than {} MB together: import them one after another", TOTAL >> 20)]
    TooMuch,
    /// There is nothing of the kind.
    #[error("no run of a model call in {what}: {why}")]
    Nothing {
        /// What was read.
        what: String,
        /// The first defect, or what was expected.
        why: String,
    },
    /// Runs of these names are there.
    #[error("`{}` holds a run `{run}` already: name another directory{}", log_dir.display(), if *imported { ", or say `--overwrite`" } else { "; it was recorded and is never replaced" })]
    Occupied {
        /// The directory.
        log_dir: PathBuf,
        /// The first of them.
        run: String,
        /// Whether it was imported.
        imported: bool,
    },
    /// A run cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}
