//! `audit.jsonl`: who has changed what of a run over HTTP, a line a change. It is written before the change is made: one that cannot
//! be written down is refused. One that fails afterwards has a second line.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{ControlResult, Refusal};
use crate::{
    recording::{AppendedLines, Masked, make_private_dir},
    trajectory::RunId,
};

/// The file, in the log directory of the server.
const FILE: &str = "audit.jsonl";

/// Where the changes of one request are written down, and what is the same in all of them.
#[derive(Debug, Clone)]
pub(super) struct ChangeAudit {
    file: PathBuf,
    user: String,
    path: String,
}

/// A line of the file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct AuditLine<'a> {
    time: String,
    user: &'a str,
    /// The run; a refused name that looks like a key is masked.
    run: &'a str,
    what: &'static str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
}

/// The schema of a line of `audit.jsonl`.
pub fn audit_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.root_schema_for::<AuditLine<'static>>()
}

impl ChangeAudit {
    /// Of a request that this user makes with this path.
    pub(super) fn new(log_dir: &std::path::Path, user: &str, path: &str) -> Self {
        Self { file: log_dir.join(FILE), user: user.to_owned(), path: path.to_owned() }
    }

    /// Who asks.
    pub(super) fn user(&self) -> &str {
        &self.user
    }

    /// Writes down that something of a run is changed, and then changes it.
    ///
    /// # Errors
    /// It cannot be written down, and is not done; or it fails.
    pub(super) async fn change(
        &self,
        run: &RunId,
        what: &'static str,
        change: impl Future<Output = ControlResult>,
    ) -> ControlResult {
        self.write(run, what, None).await.map_err(|error| Refusal::audit(&error))?;
        let changed = change.await;
        if let Err(refusal) = &changed
            && let Err(error) = self.write(run, what, Some(refusal.code())).await
        {
            tracing::error!(%run, %error, "cannot write into audit.jsonl that the change failed");
        }
        changed
    }

    async fn write(&self, run: &RunId, what: &'static str, refused: Option<&'static str>) -> io::Result<()> {
        let Self { user, path, .. } = self;
        let time = jiff::Timestamp::now().to_string();
        let line = Masked::json_line(&AuditLine { time, user, run: run.as_str(), what, path, refused })?;
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || append(&file, &line)).await.map_err(io::Error::other)?
    }
}

/// Adds a line and waits until it is on the disk.
fn append(path: &Path, line: &Masked) -> io::Result<()> {
    // The first run of a server can be opened here.
    path.parent().map_or(Ok(()), make_private_dir)?;
    let lines = AppendedLines::open(path)?;
    lines.add(line)?;
    lines.sync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_stays_one_line() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(FILE);
        append(&path, &Masked::fixed(b"{}\n")).expect("written");
        std::fs::write(&path, "{}\n{\"ti").expect("written");
        append(&path, &Masked::fixed(b"{}\n")).expect("written");
        append(&path, &Masked::fixed(b"{}\n")).expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "{}\n{\"ti\n{}\n{}\n");
        std::fs::rename(&path, dir.path().join("real")).expect("moved");
        std::os::unix::fs::symlink(dir.path().join("real"), &path).expect("linked");
        assert!(append(&path, &Masked::fixed(b"{}\n")).is_err(), "no link is followed");
    }
}
