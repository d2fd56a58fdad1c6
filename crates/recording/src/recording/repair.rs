//! Rescues what can be read of a damaged run, into a new directory; the damaged one is left as it is, but for a torn
//! end, which any writer would cut.

use std::path::Path;

use super::{
    Manifest, Recorder, RecordingError, Seal, Settings,
    assemble::Assembly,
    decode::LogTexts,
    disk::{self, Disk},
    head,
    json_file::{read_json, write_json},
    line, lock,
    read::log_bytes,
    record::Record,
    recover::{check_packed, recover},
    scan::{salvage, scan},
};

/// What a repair did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Repaired {
    /// Records of the log that are whole.
    pub records: u64,
    /// Records that were given up: damaged, or of no use without a damaged one.
    pub lost: u64,
    /// Bytes of a torn end that were moved to `log.torn`.
    pub torn_bytes: u64,
    /// Steps that can be read now.
    pub steps: u64,
}

/// Repairs a run. Without `salvage_to` only a torn end is cut. With it, every record that is whole and can be
/// understood is copied into a new run directory, which is unsealed and says in a note what is missing.
///
/// # Errors
/// [`RecordingError::Corrupt`] when the log is damaged before its end and nothing was to be salvaged;
/// [`RecordingError::Locked`] when the run is being written; [`RecordingError::Io`], also when `salvage_to` exists.
pub fn repair(run_dir: &Path, salvage_to: Option<&Path>) -> Result<Repaired, RecordingError> {
    let disk = Disk::new(true);
    let manifest: Option<Manifest> = read_json(&run_dir.join("run.json"))?;
    let manifest = manifest.ok_or_else(|| RecordingError::NotARun { path: run_dir.to_owned() })?;
    // A sealed run has no log that grows, and needs no lock.
    let log = lock::open_left(&disk, run_dir, manifest.run.as_str())?;
    // A seal that cannot be read is no reason to give the log up.
    let seal: Option<Seal> = read_json(&run_dir.join("seal.json")).ok().flatten();
    let manifest = manifest.with_seal(seal.as_ref());
    if let Some(target) = salvage_to {
        return rescue(&disk, run_dir, target, &manifest, seal.as_ref());
    }
    let mut repaired = Repaired::default();
    if let Some(log) = log.filter(|_| seal.is_none()) {
        repaired.torn_bytes = recover(&disk, run_dir, &log)?.torn as u64;
    }
    let recording = super::read(run_dir)?;
    let (bytes, path) = log_bytes(run_dir, seal.as_ref())?;
    repaired.records = scan(&bytes, &path)?.lines.len() as u64;
    repaired.steps = recording.trajectory.steps.len() as u64;
    Ok(repaired)
}

/// Ends a run in order whose writer was killed: a torn end is cut, what is left is sealed. One that is sealed already
/// stays as it is.
///
/// # Errors
/// [`RecordingError::Locked`] when the run is being written, [`RecordingError::Corrupt`] when its log is damaged before
/// its end, [`RecordingError::Io`].
pub fn seal_left(run_dir: &Path) -> Result<(), RecordingError> {
    let manifest: Option<Manifest> = read_json(&run_dir.join("run.json"))?;
    let manifest = manifest.ok_or_else(|| RecordingError::NotARun { path: run_dir.to_owned() })?;
    let named = run_dir.file_name().is_some_and(|name| name == manifest.run.as_str());
    let log_dir =
        run_dir.parent().filter(|_| named).ok_or_else(|| RecordingError::NotARun { path: run_dir.to_owned() })?;
    match Recorder::create(log_dir, manifest, &Settings::default()) {
        Ok(left) => left.seal().map(drop),
        Err(RecordingError::Sealed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a recorded run with all that lies in its directory. One that is being written, is damaged, or is no recording
/// stays as it is.
///
/// # Errors
/// As [`seal_left`].
pub fn discard(run_dir: &Path) -> Result<(), RecordingError> {
    seal_left(run_dir)?;
    remove_tree(run_dir)
}

pub(super) fn remove_tree(dir: &Path) -> Result<(), RecordingError> {
    std::fs::remove_dir_all(dir).map_err(|source| disk::failed("remove", dir, source))
}

fn rescue(
    disk: &Disk,
    run_dir: &Path,
    target: &Path,
    manifest: &Manifest,
    seal: Option<&Seal>,
) -> Result<Repaired, RecordingError> {
    if target.exists() {
        let exists = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(disk::failed("create", target, exists));
    }
    let bytes = whatever_is_left(run_dir, seal)?;
    disk.make_dir(target)?;
    copy_blobs(disk, run_dir, target)?;
    let mut repaired = Repaired::default();
    let mut assembly = Assembly::new(LogTexts::new(target), false);
    let mut log: Vec<u8> = Vec::new();
    let mut put = |record: &[u8], records: &mut u64| {
        line::append(*records, &mut log, |line| line.extend_from_slice(record));
        *records += 1;
    };
    for line in salvage(&bytes) {
        // What follows from a lost record cannot be kept either: a reader would refuse the whole.
        let kept = Record::read(line.record).is_ok_and(|record| assembly.add(record).is_ok());
        if kept {
            put(line.record, &mut repaired.records);
        }
    }
    let all = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64;
    repaired.lost = all.saturating_sub(repaired.records);
    let note = Record::Note(super::record::NoteRecord {
        at: manifest.started.as_str().into(),
        text: format!("salvaged: {} of {all} records; the rest was damaged", repaired.records).into(),
    });
    let note = serde_json::to_vec(&note).map_err(|error| disk::failed("writing", target, error.into()))?;
    put(&note, &mut repaired.records);
    disk.replace(&target.join("log.jsonl"), |file| std::io::Write::write_all(file, &log))?;
    repaired.steps = assembly.finish(manifest.clone()).0.trajectory.steps.len() as u64;
    // Last, so that a crash in between leaves no directory that passes for a run.
    write_json(disk, &target.join("run.json"), &Manifest { ended: None, ..manifest.clone() })?;
    Ok(repaired)
}

/// The log's bytes, as many as can be had.
fn whatever_is_left(run_dir: &Path, seal: Option<&Seal>) -> Result<Vec<u8>, RecordingError> {
    let left = head::remains(run_dir)?;
    let path = run_dir.join("log.jsonl.zst");
    let Some(file) = disk::open_read(&path)? else {
        let missing = || disk::failed("open", &path, std::io::ErrorKind::NotFound.into());
        let is_there = run_dir.join("log.jsonl").exists() || !left.is_empty();
        return is_there.then_some(left).ok_or_else(missing);
    };
    let limit = seal.map_or(1 << 32, |seal| seal.log_bytes);
    let mut packed = Vec::new();
    // A damaged block ends the stream; what came before it counts.
    let _ = disk::unpack(file, limit, &mut packed);
    // A packed log that holds something else was there first.
    let is_same = seal.is_some() || check_packed(run_dir, Some(&left)).is_ok();
    Ok(if is_same && left.len() >= packed.len() { left } else { packed })
}

fn copy_blobs(disk: &Disk, run_dir: &Path, target: &Path) -> Result<(), RecordingError> {
    let from = run_dir.join("blobs");
    let Ok(entries) = std::fs::read_dir(&from) else { return Ok(()) };
    disk.make_dir(&target.join("blobs"))?;
    for entry in entries.flatten() {
        let Ok(Some(bytes)) = disk::read_whole(&entry.path(), 1 << 30) else { continue };
        disk.replace(&target.join("blobs").join(entry.file_name()), |file| std::io::Write::write_all(file, &bytes))?;
    }
    Ok(())
}
