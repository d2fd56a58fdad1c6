//! A campaign with all that it names, kept as text beside its shards: what was asked to be made is known wherever they go.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{
    campaign::{definition::Campaign, definition::Files, error::CampaignError, read},
    recording::{self, RunFile},
};

/// Its file.
const FILE: &str = "campaign.json.zst";
/// How hard it is compressed: task files are long, and each shard has one.
const LEVEL: i32 = 3;
/// Most that is unpacked of one, in bytes: the largest public task sets have a tenth of it.
const PLAIN_MAX: u64 = 1 << 30;

/// A campaign file and the files that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CampaignSnapshot {
    /// What messages call the file.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Where requests go, if that was said beside the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    files: BTreeMap<String, String>,
    directories: BTreeMap<String, Vec<String>>,
}

impl CampaignSnapshot {
    /// The campaign, read anew.
    ///
    /// # Errors
    /// This version reads it otherwise than the one that kept it.
    pub fn campaign(&self) -> Result<Campaign, crate::plan::PlanError> {
        let mut campaign = read::parse(&self.text, &self.name, self)?;
        campaign.upstream = self.upstream.clone().or(campaign.upstream);
        Ok(campaign)
    }

    /// Writes it into the directory of a shard, whole.
    pub(super) fn write(&self, dir: &Path) -> Result<(), CampaignError> {
        let path = dir.join(FILE);
        let temporary = path.with_extension("tmp");
        let write = || {
            let text = serde_json::to_vec(self).map_err(io::Error::other)?;
            let mut file = recording::create_private(&temporary)?;
            zstd::stream::copy_encode(text.as_slice(), &mut file, LEVEL)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|source| CampaignError::Directory { path: path.clone(), source })
    }

    /// Reads it from there.
    pub(super) fn read(dir: &Path) -> Result<Self, CampaignError> {
        let path = dir.join(FILE);
        let file = RunFile::open(&path).and_then(zstd::stream::Decoder::new);
        let file = file.map_err(|source| CampaignError::Directory { path: path.clone(), source })?;
        serde_json::from_reader(io::BufReader::new(file.take(PLAIN_MAX)))
            .map_err(|error| CampaignError::Unshared { path, why: error.to_string() })
    }
}

impl Files for CampaignSnapshot {
    fn read(&self, path: &str) -> io::Result<String> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        self.directories.get(directory).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Files that notes what is read of them, so that it can be kept.
#[derive(Debug)]
pub struct NotedFiles<F> {
    from: F,
    noted: RefCell<CampaignSnapshot>,
}

impl<F: Files> NotedFiles<F> {
    /// Reads from there.
    pub fn new(from: F) -> Self {
        Self { from, noted: RefCell::default() }
    }

    /// What was read, with the campaign file that named it.
    pub fn into_snapshot(self, name: String, text: String, upstream: Option<String>) -> CampaignSnapshot {
        CampaignSnapshot { name, text, upstream, ..self.noted.into_inner() }
    }
}

impl<F: Files> Files for NotedFiles<F> {
    fn read(&self, path: &str) -> io::Result<String> {
        let text = self.from.read(path)?;
        self.noted.borrow_mut().files.insert(path.to_owned(), text.clone());
        Ok(text)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let names = self.from.list(directory)?;
        self.noted.borrow_mut().directories.insert(directory.to_owned(), names.clone());
        Ok(names)
    }
}
