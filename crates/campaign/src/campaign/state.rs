//! The campaign's directory: what is finished, what was interrupted. State is files, written whole; a campaign that was
//! killed anywhere goes on from them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{ended::EndedCell, error::CampaignError, journal::Journal, salvage::Salvage, sitting::Sitting};
use crate::{
    recording::{self, Masked, MaskedFile, Redactor, RunFile},
    trajectory::{RunId, nearest},
};

/// The directory of what chains came to.
pub(super) const CHAINS: &str = "chains";

/// The directory of a campaign, locked.
#[derive(Debug)]
pub(super) struct CampaignState {
    root: PathBuf,
    /// Held as long as this program works in the directory.
    _lock: fs::File,
}

/// What is to become of what the directory holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingContent {
    /// Nothing may be there.
    Refuse,
    /// It is gone on with; something must be there, and of this campaign unless `changed`.
    Resume {
        /// Whether finished runs may be of another campaign, or have asked another upstream.
        changed: bool,
    },
    /// It is gone on with if anything is there.
    Either {
        /// As above.
        changed: bool,
    },
    /// It is deleted.
    Replace,
}

impl ExistingContent {
    /// Whether what is there must be of the campaign that goes on.
    pub(super) fn must_fit(self) -> bool {
        matches!(self, ExistingContent::Resume { changed: false } | ExistingContent::Either { changed: false })
    }
}

impl CampaignState {
    /// The sitting of the finished run whose file is the newest, and when that run ended by its own record: a copy of the directory
    /// makes no run younger.
    pub(super) fn newest_sitting(&self) -> Option<(Sitting, Timestamp)> {
        let files = fs::read_dir(self.root().join("cells")).ok()?.flatten();
        let written = |entry: &fs::DirEntry| entry.metadata().and_then(|about| about.modified()).ok();
        let newest =
            files.filter(|entry| entry.path().extension().is_some_and(|it| it == "json")).max_by_key(written)?;
        let ended: EndedCell = serde_json::from_slice(&RunFile::bytes(&newest.path()).ok()?).ok()?;
        let at = recording::read_manifest(&self.run_dir(&ended.run)).ok()?.ended?.parse().ok()?;
        Some((ended.sitting?, at))
    }

    /// Opens the directory, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be written, another process works in it, or it holds a campaign and `earlier` refuses that.
    pub(super) fn open(root: &Path, earlier: ExistingContent) -> Result<Self, CampaignError> {
        let cannot = |source| CampaignError::Directory { path: root.to_owned(), source };
        if matches!(earlier, ExistingContent::Resume { .. }) && !holds_campaign(root) {
            return Err(CampaignError::Nothing { path: root.to_owned(), near: near(root) });
        }
        recording::make_private_dir(root).map_err(cannot)?;
        let lock = RunFile::append(&root.join("lock")).map(RunFile::into_file).map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(CampaignError::Locked(root.to_owned())),
            Err(fs::TryLockError::Error(source)) => return Err(cannot(source)),
        }
        let state = Self { root: root.to_owned(), _lock: lock };
        let held = [state.cells(), state.logs(), state.partial(), state.output(), state.chains()];
        let ours = ["cells", "spent.jsonl", "report.json"].iter().any(|name| root.join(name).exists());
        match earlier {
            // What is not a campaign's is not deleted.
            ExistingContent::Replace if !ours && held.iter().any(|dir| dir.exists()) => {
                return Err(CampaignError::NotOurs(root.to_owned()));
            }
            ExistingContent::Refuse if held.iter().any(|dir| dir.exists()) => {
                return Err(CampaignError::Exists(root.to_owned()));
            }
            ExistingContent::Replace => {
                for dir in held.iter().filter(|dir| dir.exists()) {
                    fs::remove_dir_all(dir).map_err(cannot)?;
                }
                for file in ["spent.jsonl", "judge.jsonl"] {
                    let _ = fs::remove_file(state.root.join(file));
                }
            }
            ExistingContent::Refuse | ExistingContent::Resume { .. } | ExistingContent::Either { .. } => {}
        }
        for dir in [state.cells(), state.logs(), state.chains()] {
            recording::make_private_dir(&dir).map_err(cannot)?;
        }
        Ok(state)
    }

    /// Where the files lie that users read.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the recordings are.
    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The recording of a run.
    pub(super) fn run_dir(&self, run: &RunId) -> PathBuf {
        self.logs().join(run.as_str())
    }

    fn cells(&self) -> PathBuf {
        self.root.join("cells")
    }

    fn chains(&self) -> PathBuf {
        self.root.join(CHAINS)
    }

    fn partial(&self) -> PathBuf {
        self.root.join("partial")
    }

    fn output(&self) -> PathBuf {
        self.root.join("output")
    }

    /// Where what a program says on its standard error goes.
    pub(super) fn errors_of(&self, run: &RunId) -> Result<PathBuf, CampaignError> {
        let dir = self.output();
        recording::make_private_dir(&dir).map_err(|source| CampaignError::Directory { path: dir.clone(), source })?;
        Ok(dir.join(format!("{run}.stderr")))
    }

    /// Makes that file, empty, for the owner only.
    pub(super) fn begin_errors(&self, run: &RunId) -> Result<PathBuf, CampaignError> {
        let path = self.errors_of(run)?;
        match recording::create_private(&path) {
            Ok(_) => Ok(path),
            Err(source) => Err(CampaignError::Directory { path, source }),
        }
    }

    /// Masks secrets in that file, once the program has ended: programs say their keys when they fail.
    pub(super) fn mask_errors(&self, run: &RunId, redactor: &Redactor) -> Result<(), CampaignError> {
        let path = self.errors_of(run)?;
        redactor.mask_file(&path).map_err(|source| CampaignError::Directory { path: path.clone(), source })
    }

    /// A directory of a cell's own, empty.
    pub(super) fn scratch(&self, run: &RunId) -> Result<PathBuf, CampaignError> {
        let dir = std::path::absolute(self.root.join("scratch").join(run.as_str()));
        let dir = dir.map_err(|source| CampaignError::Directory { path: self.root.clone(), source })?;
        let _ = fs::remove_dir_all(&dir);
        recording::make_private_dir(&dir).map_err(|source| CampaignError::Directory { path: dir.clone(), source })?;
        Ok(dir)
    }

    /// The file that says that a cell is finished.
    pub(super) fn cell_file(&self, run: &RunId) -> PathBuf {
        self.cells().join(format!("{run}.json"))
    }

    /// What came of a cell; `None` where it is not finished.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub(super) fn ended(&self, run: &RunId) -> Result<Option<EndedCell>, CampaignError> {
        let path = self.cell_file(run);
        match RunFile::bytes(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| CampaignError::Damaged { path, why: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(CampaignError::Directory { path, source }),
        }
    }

    /// Says that a cell is finished.
    pub(super) fn finish(&self, ended: &EndedCell) -> Result<(), CampaignError> {
        let name = format!("cells/{}.json", ended.run);
        let unwritten =
            |error: serde_json::Error| CampaignError::Unwritten { path: self.root.join(&name), why: error.to_string() };
        self.replace(&name, &Masked::new(serde_json::to_vec(ended).map_err(unwritten)?))
    }

    /// Lays aside what an unfinished run left, and says what of it is paid for.
    pub(super) fn salvage(&self, run: &RunId) -> Result<Salvage, CampaignError> {
        let (dir, aside) = (self.run_dir(run), self.partial().join(run.as_str()));
        let cannot = |source| CampaignError::Directory { path: aside.clone(), source };
        if dir.exists() {
            recording::make_private_dir(&aside).map_err(cannot)?;
            let next = fs::read_dir(&aside).map_err(cannot)?.count();
            fs::rename(&dir, aside.join(format!("{next:04}"))).map_err(cannot)?;
        }
        // What cannot be read was paid for all the same: only a directory that is not there holds nothing.
        let mut laid: Vec<PathBuf> = match fs::read_dir(&aside) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>().map_err(cannot)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(cannot(error)),
        };
        laid.sort_unstable();
        Ok(Salvage::read(&laid))
    }

    /// What was spent, line by line.
    pub(super) fn journal(&self) -> Result<Journal, CampaignError> {
        let path = self.root.join("spent.jsonl");
        Journal::open(&path).map_err(|source| CampaignError::Directory { path, source })
    }

    /// Replaces a file whole: a reader, and a campaign that was killed, sees the old one or the new one.
    pub(super) fn replace(&self, name: &str, bytes: &Masked) -> Result<(), CampaignError> {
        let path = self.root.join(name);
        MaskedFile::replace(&path, bytes).map_err(|source| CampaignError::Directory { path: path.clone(), source })
    }
}

/// Whether a campaign was begun in a directory.
fn holds_campaign(dir: &Path) -> bool {
    ["cells", "logs", "partial", "output", CHAINS].iter().any(|name| dir.join(name).exists())
}

/// The directory beside one that is not there which holds a campaign and is called most like it.
fn near(dir: &Path) -> Option<PathBuf> {
    let name = dir.file_name()?.to_str()?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let beside = fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?.flatten();
    let held = beside.filter(|entry| entry.path().join("cells").is_dir());
    let mut names: Vec<String> = held.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let near = nearest(name, names.iter().map(String::as_str))
        .or_else(|| names.first().map(String::as_str).filter(|_| names.len() == 1))?;
    Some(parent.map_or_else(|| PathBuf::from(near), |parent| parent.join(near)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_paid_for_and_cannot_be_read_is_no_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = CampaignState::open(dir.path(), ExistingContent::Refuse).expect("opens");
        let run = RunId::parse("c-1").expect("an id");
        assert!(state.salvage(&run).is_ok(), "nothing was laid aside");
        fs::create_dir_all(state.partial()).expect("made");
        fs::write(state.partial().join("c-1"), "no directory").expect("written");
        let failed = state.salvage(&run).err().map(|error| error.to_string());
        assert!(failed.is_some_and(|said| said.contains("c-1")), "it is said");
    }
}
