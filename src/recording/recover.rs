//! Opens the log of a run that was not ended in order: cuts a torn end, learns what the log holds already.

use std::{collections::BTreeMap, fs::File, io::Read, path::Path};

use super::{
    RecordingError,
    disk::{self, Disk},
    known::Known,
    log::TEXTS,
    record::Record,
    scan::{corrupt, scan},
};

/// What an existing log holds.
#[derive(Debug)]
pub(super) struct Recovered {
    /// Its records.
    pub(super) records: u64,
    /// Its latest texts.
    pub(super) texts: Known<()>,
    /// Steps per agent.
    pub(super) agents: BTreeMap<String, u64>,
    /// Exchanges that were opened.
    pub(super) exchanges: u64,
    /// Exchanges that were closed.
    pub(super) closed: u64,
    /// Bytes that were cut from its end.
    pub(super) torn: usize,
}

impl Default for Recovered {
    fn default() -> Self {
        Self { records: 0, texts: Known::new(TEXTS), agents: BTreeMap::new(), exchanges: 0, closed: 0, torn: 0 }
    }
}

/// Whether a run without a seal may go on: a packed log beside it must be what an interrupted sealing left, which the plain
/// log holds too.
///
/// # Errors
/// [`RecordingError::SealLost`] where it holds anything else, or there is no plain log.
pub(super) fn check_packed(run_dir: &Path) -> Result<(), RecordingError> {
    let packed = run_dir.join("log.jsonl.zst");
    let lost = || RecordingError::SealLost { path: run_dir.to_owned() };
    let Some(file) = disk::open_read(&packed)? else { return Ok(()) };
    let plain = disk::read_whole(&run_dir.join("log.jsonl"), u64::MAX - 1)?.ok_or_else(lost)?;
    let mut bytes = Vec::new();
    let decoder = zstd::Decoder::new(file).map_err(|_| lost())?;
    decoder.take(plain.len() as u64 + 1).read_to_end(&mut bytes).map_err(|_| lost())?;
    if plain.starts_with(&bytes) { Ok(()) } else { Err(lost()) }
}

/// Reads `log.jsonl`, moves a torn end to `log.torn`, and returns what is left.
pub(super) fn recover(disk: &Disk, run_dir: &Path, file: &File) -> Result<Recovered, RecordingError> {
    let path = run_dir.join("log.jsonl");
    let Some(bytes) = disk::read_whole(&path, u64::MAX - 1)? else { return Ok(Recovered::default()) };
    let found = scan(&bytes, &path)?;
    let mut recovered = Recovered { records: found.lines.len() as u64, torn: found.torn.len(), ..Recovered::default() };
    for line in &found.lines {
        let record: Record<'_> =
            serde_json::from_slice(line.record).map_err(|error| corrupt(&path, line.seq + 1, error.to_string()))?;
        match record {
            Record::Text(text) => recovered.texts.insert(text.hash, ()),
            Record::Open(open) => {
                recovered.exchanges += 1;
                if open.attempt == 0 {
                    *recovered.agents.entry(open.attribution.agent.to_string()).or_default() += 1;
                }
            }
            Record::Close(_) => recovered.closed += 1,
            _ => {}
        }
    }
    if !found.torn.is_empty() {
        let torn_path = run_dir.join("log.torn");
        let mut torn_file = disk.open_append(&torn_path)?;
        disk.append(&mut torn_file, &torn_path, found.torn)?;
        disk.sync(&torn_file, &torn_path)?;
        disk.truncate(file, &path, found.good as u64)?;
    }
    Ok(recovered)
}
