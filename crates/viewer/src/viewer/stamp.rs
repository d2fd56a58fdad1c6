//! The stamp of a directory: what tells whether anything in it was written since.

use std::{fs, path::Path, time::SystemTime};

/// What a directory looked like: names, lengths and times of its files. What is written changes it.
pub(super) type Stamp = Vec<(std::ffi::OsString, u64, Option<SystemTime>)>;

/// How a run's directory looks now.
pub(super) fn stamp(dir: &Path) -> Stamp {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut stamp: Stamp = entries
        .filter_map(|entry| {
            let facts = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((entry.file_name(), facts.len(), facts.modified().ok()))
        })
        .collect();
    stamp.sort();
    stamp
}
