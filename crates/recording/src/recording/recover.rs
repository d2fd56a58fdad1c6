//! Opens the log of a run that was not ended in order: cuts a torn end, learns what the log holds already.

use std::{fs::File, path::Path};

use super::{
    RecordingError,
    counts::RecordCounts,
    disk::{self, Disk},
    hash_cache::{HashCache, TEXTS},
    head::{Head, Unsealed, read_unsealed},
    record::Record,
    scan::{corrupt, scan},
};

/// The note of a recording that goes on.
pub(super) const REOPENED: &str = "the recording was reopened";

/// What an existing log holds.
#[derive(Debug)]
pub(super) struct Recovered {
    /// Its records.
    pub(super) records: u64,
    /// Its latest texts.
    pub(super) texts: HashCache<()>,
    /// What was counted of it.
    pub(super) counts: RecordCounts,
    /// Bytes that were cut from its end.
    pub(super) torn: usize,
    /// Bytes of `log.jsonl`.
    pub(super) length: u64,
    /// What goes before them.
    pub(super) head: Option<Head>,
}

impl Default for Recovered {
    fn default() -> Self {
        Self {
            records: 0,
            texts: HashCache::new(TEXTS),
            counts: RecordCounts::default(),
            torn: 0,
            length: 0,
            head: None,
        }
    }
}

/// Whether a run without a seal may go on, or be read: a packed log beside it must be what an interrupted sealing left,
/// which the log holds too.
///
/// # Errors
/// [`RecordingError::SealLost`] where it holds anything else, or there is no log.
pub(super) fn check_packed(run_dir: &Path, log: Option<&[u8]>) -> Result<(), RecordingError> {
    let packed = run_dir.join("log.jsonl.zst");
    let lost = || RecordingError::SealLost { path: run_dir.to_owned() };
    let Some(file) = disk::open_read(&packed)? else { return Ok(()) };
    let log = log.ok_or_else(lost)?;
    let mut bytes = Vec::new();
    disk::unpack(file, log.len() as u64 + 1, &mut bytes).map_err(|_| lost())?;
    if log.starts_with(&bytes) { Ok(()) } else { Err(lost()) }
}

/// Whether a log may be made: there must be nothing that one was before.
///
/// # Errors
/// [`RecordingError::SealLost`], [`RecordingError::Corrupt`].
pub(super) fn check_absent(run_dir: &Path) -> Result<(), RecordingError> {
    check_packed(run_dir, None)?;
    read_unsealed(run_dir).map(drop)
}

/// Reads the log, moves a torn end to `log.torn`, and returns what is left.
pub(super) fn recover(disk: &Disk, run_dir: &Path, file: &File) -> Result<Recovered, RecordingError> {
    let path = run_dir.join("log.jsonl");
    let read = read_unsealed(run_dir);
    check_packed(run_dir, read.as_ref().ok().and_then(|read| Some(read.as_ref()?.bytes.as_slice())))?;
    let Unsealed { bytes, head } = read?.unwrap_or_default();
    let found = scan(&bytes, &path)?;
    let (records, torn) = (found.lines.len() as u64, found.torn.len());
    let mut recovered = Recovered { records, torn, head, ..Recovered::default() };
    let (plain, overlap) = recovered.head.as_ref().map_or((0, 0), |head| (head.plain, head.overlap));
    let own = (found.good as u64).checked_sub(plain).ok_or_else(|| corrupt(&path, records + 1, "it is cut off"))?;
    recovered.length = own + overlap;
    for line in &found.lines {
        let record = Record::read(line.record).map_err(|error| corrupt(&path, line.seq + 1, error.to_string()))?;
        match record {
            Record::Text(text) => recovered.texts.insert(text.hash, ()),
            Record::Open(open) => {
                recovered.counts.opened((open.step, open.attempt), open.attribution.agent.as_str(), open.t_us);
            }
            Record::Close(close) => recovered.counts.closed((close.step, close.attempt), close.last_byte_us),
            Record::Note(note) if note.text == REOPENED => recovered.counts.reopened(),
            _ => {}
        }
    }
    if !found.torn.is_empty() {
        let torn_path = run_dir.join("log.torn");
        let torn_file = disk.open_append(&torn_path)?;
        disk.append(&torn_file, &torn_path, found.torn)?;
        disk.sync(&torn_file, &torn_path)?;
        disk.truncate(file, &path, recovered.length)?;
    }
    Ok(recovered)
}
