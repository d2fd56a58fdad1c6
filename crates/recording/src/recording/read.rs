//! Reads a run back, live or sealed, and changes nothing.

use std::path::Path;

use super::{
    Manifest, Recording, RecordingError, Requests, Seal,
    amended::FactsFile,
    assemble::Assembly,
    decode::LogTexts,
    disk,
    head::read_unsealed,
    identity,
    json_file::{own_hash, read_json},
    label::{self, LABEL_FILE},
    own_hash::OwnHash,
    record::Record,
    recover::check_packed,
    renamed,
    scan::{Scan, corrupt, scan},
    threads::each_in_threads,
};
use crate::{identity::RosterRule, trajectory::Step};

/// The files beside the log that each have their own hash, and of which readers take what they say of the run.
const HASHED: [&str; 6] = ["run.json", "seal.json", LABEL_FILE, "identity.json", "cards.json", "trace.json"];
/// Records that are held before they are put together.
const AT_ONCE: usize = 8192;

/// Reads a recorded run. One that is being recorded is read as far as it is written; a torn end is left out and
/// counted, never repaired here.
///
/// # Errors
/// [`RecordingError::NotARun`] when the directory holds none; [`RecordingError::Corrupt`] when the log is damaged
/// before its end, refers to what it does not hold, or does not fit its seal; [`RecordingError::Future`].
pub fn read(run_dir: &Path) -> Result<Recording, RecordingError> {
    Ok(read_as(run_dir, false)?.0)
}

/// The same with the steps' requests apart, for a reader that seldom looks at one: those of a growing conversation
/// take as much memory as its words, not as all of them together. The steps' own `request` is empty.
///
/// # Errors
/// As [`read`].
pub fn read_apart(run_dir: &Path) -> Result<(Recording, Requests), RecordingError> {
    read_as(run_dir, true)
}

/// Reads `run.json`, of a sealed run when it ended and who took part, and what was learned since; not the log.
///
/// # Errors
/// [`RecordingError::NotARun`] when it is not there; [`RecordingError`] when it cannot be read.
pub fn read_manifest(run_dir: &Path) -> Result<Manifest, RecordingError> {
    let manifest = read_run_file(run_dir)?;
    // A seal that cannot be read is a matter of the log.
    let seal = read_seal(run_dir).unwrap_or_default();
    let mut manifest = manifest.with_seal(seal.as_ref());
    FactsFile::read(run_dir)?.amend_manifest(&mut manifest);
    Ok(manifest)
}

/// Reads `seal.json`; `None` where the run is not sealed.
///
/// # Errors
/// [`RecordingError`] when it is there and cannot be read.
pub fn read_seal(run_dir: &Path) -> Result<Option<Seal>, RecordingError> {
    read_json(&run_dir.join("seal.json"))
}

pub(super) fn read_run_file(run_dir: &Path) -> Result<Manifest, RecordingError> {
    read_json(&run_dir.join("run.json"))
        .map_err(|error| match error {
            RecordingError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotADirectory => {
                RecordingError::NotARun { path: run_dir.to_owned() }
            }
            other => other,
        })?
        .ok_or_else(|| RecordingError::NotARun { path: run_dir.to_owned() })
}

fn read_as(run_dir: &Path, apart: bool) -> Result<(Recording, Requests), RecordingError> {
    let (mut recording, requests) = read_unamended(run_dir, apart)?;
    let request = |at, step: &Step| if apart { requests.get(at) } else { step.request.clone() };
    FactsFile::read(run_dir)?.amend(&mut recording, request);
    Ok((recording, requests))
}

/// Reads a run as it was recorded, without what was learned of it since: for who goes on with its recording.
///
/// # Errors
/// As [`read`].
pub fn read_recorded(run_dir: &Path) -> Result<Recording, RecordingError> {
    Ok(read_unamended(run_dir, false)?.0)
}

/// Reads a run under the names of a roster, as if it had been given; nothing is written.
///
/// # Errors
/// As [`read`], and [`RecordingError::Roster`] where a rule cannot be used.
pub fn read_under(run_dir: &Path, rules: &[RosterRule]) -> Result<Recording, RecordingError> {
    let mut recording = read(run_dir)?;
    if !rules.is_empty() {
        let request = |_, step: &Step| step.request.clone();
        let later = renamed::by_roster(&read_unamended(run_dir, false)?.0, renamed::roster(rules)?, request);
        renamed::apply(&mut recording, &later.named, request);
        recording.manifest.agents = later.agents;
    }
    Ok(recording)
}

/// As [`read`], without the run's facts. `apart`: with the steps' requests apart.
pub(super) fn read_unamended(run_dir: &Path, apart: bool) -> Result<(Recording, Requests), RecordingError> {
    let manifest = read_run_file(run_dir)?;
    let mut seal: Option<Seal> = read_json(&run_dir.join("seal.json"))?;
    let found = match log_bytes(run_dir, seal.as_ref()) {
        Err(error) if seal.is_none() => {
            // It may have been sealed since.
            seal = read_json(&run_dir.join("seal.json"))?;
            if seal.is_some() { log_bytes(run_dir, seal.as_ref()) } else { Err(error) }
        }
        found => found,
    };
    let (bytes, path) = found?;
    let Scan { lines, torn, .. } = scan(&bytes, &path)?;
    if let Some(seal) = &seal {
        check_seal(seal, &bytes, lines.len() as u64, torn, &path)?;
    }
    let mut assembly = Assembly::new(LogTexts::new(run_dir), apart);
    for lines in lines.chunks(AT_ONCE) {
        let records = each_in_threads(lines, |line| Record::read(line.record));
        for (line, record) in lines.iter().zip(records) {
            let added = record.map_err(|error| error.to_string()).and_then(|record| assembly.add(record));
            added.map_err(|why| corrupt(&path, line.seq + 1, why))?;
        }
    }
    let (mut recording, requests) = assembly.finish(manifest.with_seal(seal.as_ref()));
    recording.label = label::read_as_it_is(run_dir)?;
    recording.late = identity::read_identity(run_dir)?;
    recording.sealed = seal.is_some();
    look_at_hashes(run_dir, &mut recording);
    recording.torn_bytes = torn.len() as u64;
    if !torn.is_empty() {
        recording.notes.push(format!("the last write is torn: {} bytes are left out", torn.len()));
    }
    Ok((recording, requests))
}

/// Notes which files beside the log were edited after they were written.
fn look_at_hashes(run_dir: &Path, recording: &mut Recording) {
    for name in HASHED {
        let why = match own_hash(&run_dir.join(name)) {
            Some(OwnHash::Differs) => {
                recording.edited.push(name);
                "differs from its hash: it was edited after it was written"
            }
            Some(OwnHash::Missing) if name == LABEL_FILE => "is without a hash: an earlier version wrote it",
            _ => continue,
        };
        recording.notes.push(format!("`{name}` {why}"));
    }
}

/// The uncompressed log and the file that it came from.
pub(super) fn log_bytes(run_dir: &Path, seal: Option<&Seal>) -> Result<(Vec<u8>, std::path::PathBuf), RecordingError> {
    let plain = run_dir.join("log.jsonl");
    let packed = run_dir.join("log.jsonl.zst");
    let Some(seal) = seal else {
        let read = read_unsealed(run_dir);
        let bytes = read.as_ref().ok().and_then(|read| Some(read.as_ref()?.bytes.as_slice()));
        check_packed(run_dir, bytes)?;
        return Ok((read?.unwrap_or_default().bytes, plain));
    };
    let Some(file) = disk::open_read(&packed)? else {
        let bytes = disk::read_whole(&plain, seal.log_bytes)?.ok_or_else(|| corrupt(&packed, 0, "it is missing"))?;
        return Ok((bytes, plain));
    };
    let damaged = |error: std::io::Error| corrupt(&packed, 0, error.to_string());
    let mut bytes = Vec::new();
    disk::unpack(file, seal.log_bytes.saturating_add(1), &mut bytes).map_err(damaged)?;
    Ok((bytes, packed))
}

fn check_seal(seal: &Seal, bytes: &[u8], records: u64, torn: &[u8], path: &Path) -> Result<(), RecordingError> {
    let hash = blake3::hash(bytes).to_hex();
    let fits = bytes.len() as u64 == seal.log_bytes
        && records == seal.records
        && torn.is_empty()
        && hash.as_str() == seal.log_blake3;
    if fits { Ok(()) } else { Err(corrupt(path, 0, "it does not fit the hash in `seal.json`")) }
}
