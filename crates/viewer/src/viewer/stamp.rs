//! The stamp of a directory: what tells whether anything in it was written since.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::recording::FACTS_FILE;

/// What a directory looked like: names, lengths and times of its files, hashed. What is written changes it.
pub(super) type Stamp = u64;

/// How a run's directory looks now.
pub(super) fn stamp(dir: &Path) -> Stamp {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<Vec<u8>> = entries
        .filter_map(|entry| {
            let facts = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let mut file = entry.file_name().into_encoded_bytes();
            file.extend(length_and_time(&facts));
            Some(file)
        })
        .collect();
    files.sort();
    hashed(&files.concat())
}

/// How files look now.
pub(super) fn stamp_of_files(files: &[PathBuf]) -> Stamp {
    let facts = files.iter().map(|file| fs::metadata(file).map_or([0; 24], |facts| length_and_time(&facts)));
    hashed(&facts.collect::<Vec<_>>().concat())
}

fn length_and_time(facts: &fs::Metadata) -> [u8; 24] {
    let mut bytes = [0; 24];
    let numbers = [facts.len().to_le_bytes(), facts.mtime().to_le_bytes(), facts.mtime_nsec().to_le_bytes()];
    for (place, number) in bytes.chunks_mut(8).zip(numbers) {
        place.copy_from_slice(&number);
    }
    bytes
}

/// A hash of bytes that stays the same from one start to the next.
pub(super) fn hashed(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// What is written in place in a run's directory, or may be by hand. All else is put there whole, under a new name, which changes
/// the directory.
const WRITTEN_IN_PLACE: [&str; 5] =
    ["run.json", "log.jsonl", FACTS_FILE, super::suspected::ATTRIBUTION_FILE, super::traced::TRACE_FILE];
/// Where the executions of a trace lie.
pub(super) const TRIALS: &str = "trials";
/// A directory that was written this short a time ago may be written again without a change of its time: file systems keep no finer
/// one.
const RECENT: Duration = Duration::from_secs(2);

/// The stamp of a run in a list of many: of a run that was seen before, only the directory and what is written in place is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunStamp {
    /// Of the directory itself; 0 where it was written a moment ago.
    names: Stamp,
    /// Of what is written in place.
    files: Stamp,
    /// Which of those there are, a bit each.
    present: u8,
    /// Whether it has executions of a trace.
    pub(super) has_trials: bool,
}

impl RunStamp {
    /// How a run's directory looks now, if it is one; `last` is how it looked before.
    pub(super) fn now(dir: &Path, facts: &fs::Metadata, last: Option<RunStamp>) -> Option<Self> {
        let age = facts.modified().ok().and_then(|written| SystemTime::now().duration_since(written).ok());
        if age.is_none_or(|age| age < RECENT) {
            let is_run = dir.join("run.json").is_file();
            let has_trials = dir.join(TRIALS).is_dir();
            return is_run.then(|| Self { names: 0, files: stamp(dir), present: 0, has_trials });
        }
        let names = hashed(&[&length_and_time(facts)[..], &facts.ino().to_le_bytes()].concat()).max(1);
        let last = last.filter(|last| last.names == names);
        let (mut found, mut present) = (Vec::new(), 0);
        for (bit, name) in WRITTEN_IN_PLACE.iter().enumerate() {
            if last.is_none_or(|last| last.present & 1 << bit != 0)
                && let Ok(facts) = fs::metadata(dir.join(name))
                && facts.is_file()
            {
                present |= 1 << bit;
                found.extend(length_and_time(&facts));
            }
        }
        let has_trials = last.map_or_else(|| dir.join(TRIALS).is_dir(), |last| last.has_trials);
        (present & 1 != 0).then(|| Self { names, files: hashed(&found), present, has_trials })
    }
}
