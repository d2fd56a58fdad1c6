//! `shard.json`: which part of which campaign a directory holds.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::digest::CampaignDigest;
use crate::{campaign::error::CampaignError, recording::RunFile};

/// Its file.
pub(super) const FILE: &str = "shard.json";
/// The newest format that this build reads.
const FORMAT: u32 = 1;

/// Which part of which campaign a directory holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct ShardManifest {
    /// Format of this file.
    pub(super) format: u32,
    /// The part's number, 0-based.
    pub(super) index: u64,
    /// Of so many.
    pub(super) of: u64,
    /// The version that made it.
    pub(super) version: String,
    /// What its rows depend on.
    pub(super) digest: CampaignDigest,
    /// What answered the model calls.
    pub(super) backend: String,
    /// Its chains.
    pub(super) chains: usize,
}

/// The schema of `shard.json`.
pub fn shard_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.root_schema_for::<ShardManifest>()
}

impl ShardManifest {
    pub(super) const FORMAT: u32 = FORMAT;

    /// Reads it.
    pub(super) fn read(dir: &Path) -> Result<Self, CampaignError> {
        let path = dir.join(FILE);
        let text = RunFile::bytes(&path).map_err(|source| CampaignError::Directory { path: path.clone(), source })?;
        let unshared = |why: String| CampaignError::Unshared { path: path.clone(), why };
        let read: Self = serde_json::from_slice(&text).map_err(|error| unshared(error.to_string()))?;
        if read.format > FORMAT {
            return Err(unshared(format!("it has format {}, and this build reads up to {FORMAT}", read.format)));
        }
        Ok(read)
    }
}

/// The shards in these directories: each is one, or holds some.
///
/// # Errors
/// One that neither is a shard nor holds any.
pub(super) fn shard_dirs(given: &[PathBuf]) -> Result<Vec<PathBuf>, CampaignError> {
    let mut found = Vec::new();
    for dir in given {
        if dir.join(FILE).is_file() {
            found.push(dir.clone());
            continue;
        }
        let entries = fs::read_dir(dir).map_err(|source| CampaignError::Directory { path: dir.clone(), source })?;
        let mut below: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.join(FILE).is_file()).collect();
        if below.is_empty() {
            return Err(CampaignError::NoShard(dir.clone()));
        }
        below.sort_unstable();
        found.append(&mut below);
    }
    Ok(found)
}
