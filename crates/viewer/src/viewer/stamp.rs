//! The stamp of a directory: what tells whether anything in it was written since.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use twox_hash::XxHash3_64;

/// What a directory looked like: names, lengths and times of its files, hashed. What is written changes it.
pub(super) type Stamp = u64;

/// How a run's directory looks now.
pub(super) fn stamp(dir: &Path) -> Stamp {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<Vec<u8>> = entries
        .filter_map(|entry| {
            let facts = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let mut file = entry.file_name().into_encoded_bytes();
            for number in [i64::try_from(facts.len()).unwrap_or(i64::MAX), facts.mtime(), facts.mtime_nsec()] {
                file.extend(number.to_le_bytes());
            }
            Some(file)
        })
        .collect();
    files.sort();
    hashed(&files.concat())
}

/// A hash of bytes that stays the same from one start to the next.
pub(super) fn hashed(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}
