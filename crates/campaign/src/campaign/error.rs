//! Why a campaign cannot go on. What a cell comes to is no error.

use std::{io, path::PathBuf};

use crate::{
    dataset::DatasetError, execution::ExecutionError, launch::LaunchError, proxy::ProxyError, recording::RecordingError,
};

/// Why a campaign cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file or directory cannot be used.
    #[error("cannot use `{}`", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process works there.
    #[error("another campaign is at work in `{}`", .0.display())]
    Locked(PathBuf),
    /// A campaign was run there before.
    #[error("`{}` holds a campaign already", .0.display())]
    Exists(PathBuf),
    /// No campaign was run there, and one was to be gone on with.
    #[error("`{}` holds no campaign to go on with{}", path.display(),
        near.as_ref().map(|near| format!(": did you mean `{}`?", near.display())).unwrap_or_default())]
    Nothing {
        /// Where.
        path: PathBuf,
        /// A directory beside it that holds one.
        near: Option<PathBuf>,
    },
    /// What was run there is of another campaign, or asked another upstream.
    #[error("the finished runs in `{}` are not of this campaign: {what}", path.display())]
    OtherRuns {
        /// Where.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// There is something there that no campaign made.
    #[error("`{}` holds something else than this campaign, which would be lost: choose another directory", .0.display())]
    NotOurs(PathBuf),
    /// A state file is damaged.
    #[error("`{}` is damaged: {why}; delete it, and its cell is run again", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A state file cannot be put into words.
    #[error("`{}` cannot be written: {why}", path.display())]
    Unwritten {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The proxy cannot listen.
    #[error("cannot listen on a loopback port")]
    Listen(#[source] io::Error),
    /// A program cannot be started.
    #[error("system `{system}`")]
    Launch {
        /// The system.
        system: String,
        /// Why.
        source: LaunchError,
    },
    /// A run cannot be recorded or read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The dataset cannot be built or written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A run cannot be opened.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The programs of a system made no model call through the proxy.
    #[error("the program of system `{system}` made no model call through the proxy: {said}")]
    NoCall {
        /// The system.
        system: String,
        /// What it last said on its standard error.
        said: String,
    },
    /// A directory is no shard and holds none.
    #[error("`{}` is no shard, and holds none: there is no `shard.json`", .0.display())]
    NoShard(PathBuf),
    /// What a worker left of its campaign cannot be read.
    #[error("`{}` cannot be read: {why}", path.display())]
    Unshared {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The campaign that lies in a shard is not read as it was when it was kept there.
    #[error("the campaign that lies in the shard")]
    Snapshot(#[source] crate::plan::PlanError),
    /// Shards are of different campaigns.
    #[error(
        "`{}` and `{}` are of different campaigns: `{parts}` differs (made by version {} and {})",
        one.display(), other.display(), versions.0, versions.1
    )]
    OtherCampaign {
        /// One.
        one: PathBuf,
        /// The other.
        other: PathBuf,
        /// What of them differs.
        parts: String,
        /// The versions that made them.
        versions: (String, String),
    },
    /// A cell's task ended by a defect of this program.
    #[error("a cell ended without a result")]
    Lost,
}

impl CampaignError {
    /// Why a system's program could not be executed.
    pub(super) fn of_system(system: &str, error: ExecutionError) -> Self {
        match error {
            ExecutionError::Listen(source) => CampaignError::Listen(source),
            ExecutionError::Launch(source) => CampaignError::Launch { system: system.to_owned(), source },
            ExecutionError::Proxy(error) => CampaignError::Proxy(error),
            ExecutionError::Recording(error) => CampaignError::Recording(error),
            _ => CampaignError::Lost,
        }
    }
}
