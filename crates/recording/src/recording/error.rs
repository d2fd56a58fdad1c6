//! Why a recording could not be written or read.

use std::{io, path::PathBuf};

use crate::equality::RulesError;

/// An error of the recording room.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file operation failed.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was tried, for example `write`.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The run is sealed: nothing is ever added to it.
    #[error("run `{run}` is sealed: nothing can be added to it; choose another run id")]
    Sealed {
        /// The run.
        run: String,
    },
    /// The run was sealed, and what says so is gone: its log is written over by nobody.
    #[error(
        "`{}` was sealed and has lost its `seal.json`: nothing is added, for that would write over `log.jsonl.zst`; \
         `aegis repair RUN_DIR --salvage` copies what it holds",
        path.display()
    )]
    SealLost {
        /// The run's directory.
        path: PathBuf,
    },
    /// Another process (or another recorder of this one) writes the run.
    #[error("run `{run}` is being recorded by process {}", .pid.map_or_else(|| "(unknown)".to_owned(), |pid| pid.to_string()))]
    Locked {
        /// The run.
        run: String,
        /// Who holds the lock, if it said so.
        pid: Option<u32>,
    },
    /// The run exists and was recorded under another plan; a plan is immutable for the life of a run.
    #[error("run `{run}` was recorded under another injection plan: choose another run id")]
    OtherPlan {
        /// The run.
        run: String,
    },
    /// An earlier write failed: the recording ended there and takes nothing more.
    #[error("the recording stopped at an earlier error: {why}")]
    Stopped {
        /// That error.
        why: String,
    },
    /// The log is damaged before its end.
    #[error("`{}` is damaged at line {line}: {why}; `aegis repair RUN_DIR --salvage` rescues the rest", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, 1-based; 0 where the damage has no line.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// A newer version of this program wrote the file.
    #[error("`{}` has format {found}: expected at most {known}; read it with a newer version", path.display())]
    Future {
        /// The file.
        path: PathBuf,
        /// The format found.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// The directory holds no recording.
    #[error("`{}` is not a recorded run: expected a directory with `run.json`", path.display())]
    NotARun {
        /// What was given.
        path: PathBuf,
    },
    /// The run was imported: it has no bytes that could be served or compared.
    #[error(
        "`{}` was imported from {format}: its bodies are remade, so it cannot be replayed, forked, traced or proven; \
         record a run of the program for that (`aegis run -- CMD`)",
        path.display()
    )]
    Imported {
        /// The run's directory.
        path: PathBuf,
        /// The format of the trace.
        format: String,
    },
    /// A JSON file of the run is not what it should be.
    #[error("`{}` is not readable: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        why: String,
    },
    /// A file beside the log is not as it was written.
    #[error(
        "`{}` differs from its hash: it was edited after it was written; remove it, and make it again: \
         `aegis repair RUN_DIR --seal` derives the label of what was planted from the log, `aegis prove` or `aegis trace` proves one",
        path.display()
    )]
    Edited {
        /// The file.
        path: PathBuf,
    },
    /// A rule of a roster cannot be used.
    #[error("the roster cannot be used: {why}")]
    Roster {
        /// Which rule, and what is wrong with it.
        why: String,
    },
    /// The rules of what is equal, as `run.json` keeps them, cannot be read.
    #[error(transparent)]
    Rules(RulesError),
    /// A run has as many facts as it may have.
    #[error("`{}` takes no more: it holds {most} bytes at most", path.display())]
    FactsFull {
        /// The file.
        path: PathBuf,
        /// The most that it may hold, in bytes.
        most: u64,
    },
    /// The values that are to be masked cannot be searched for.
    #[error("what is to be masked cannot be looked for: {why}")]
    Secrets {
        /// What the pattern's compiler said.
        why: String,
    },
    /// A symbolic link stands where a file or directory of the run is expected; links are never followed.
    #[error("`{}` is a symbolic link: expected a plain file or directory", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
}

impl RecordingError {
    /// Whether a file could not take more, on a device, in a quota or by a limit on the sizes of files: it may, later. A failed
    /// `sync` is not meant, after which nobody knows what is there.
    pub fn is_lack_of_room(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let Self::Io { doing, source, .. } = self else { return false };
        *doing != "sync" && matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }

    /// The exit code of the error: 2 usage and version, 5 recording and corruption.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Sealed { .. }
            | Self::Locked { .. }
            | Self::OtherPlan { .. }
            | Self::Future { .. }
            | Self::NotARun { .. }
            | Self::Imported { .. }
            | Self::Secrets { .. }
            | Self::Roster { .. }
            | Self::Rules(_)
            | Self::FactsFull { .. }
            | Self::Link { .. } => 2,
            Self::Io { source, .. } if is_refusal(source) => 2,
            Self::Io { .. }
            | Self::Stopped { .. }
            | Self::Corrupt { .. }
            | Self::SealLost { .. }
            | Self::Unreadable { .. }
            | Self::Edited { .. } => 5,
        }
    }
}

/// Whether the system refused the place, rather than failed in its work.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotADirectory
    )
}

/// An error and its causes in one line.
pub(super) fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
