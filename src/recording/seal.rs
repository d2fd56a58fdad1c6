//! Ends a run: the log is hashed and compressed, `seal.json` names the hash.
//!
//! A crash between any two of its steps leaves either an unsealed run with its log, or a sealed one.

use std::{
    io::{self, Read},
    path::Path,
};

use super::{
    RecordingError, Seal,
    disk::{self, Disk},
    manifest::write_json,
};

/// zstd level of a sealed log.
const LEVEL: i32 = 9;

/// Writes `log.jsonl.zst` and `seal.json`, then removes `log.jsonl`. Returns the seal with length and hash.
pub(super) fn seal(disk: &Disk, run_dir: &Path, mut seal: Seal) -> Result<Seal, RecordingError> {
    let plain = run_dir.join("log.jsonl");
    let missing = || disk::failed("open", &plain, io::ErrorKind::NotFound.into());
    let mut log = disk::open_read(&plain)?.ok_or_else(missing)?;
    let length = log.metadata().map_err(|source| disk::failed("read", &plain, source))?.len();
    let mut hasher = blake3::Hasher::new();
    disk.replace(&run_dir.join("log.jsonl.zst"), |file| {
        let mut encoder = zstd::Encoder::new(file, LEVEL)?;
        encoder.set_pledged_src_size(Some(length))?;
        encoder.include_checksum(true)?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = log.read(&mut buffer)?;
            let piece = buffer.get(..read).unwrap_or_default();
            if piece.is_empty() {
                break;
            }
            hasher.update(piece);
            io::Write::write_all(&mut encoder, piece)?;
        }
        // The plain log is removed below: this is the only copy then.
        encoder.finish()?.sync_all()
    })?;
    seal.log_bytes = length;
    seal.log_blake3 = hasher.finalize().to_hex().to_string();
    write_json(disk, &run_dir.join("seal.json"), &seal)?;
    disk.remove(&plain)?;
    Ok(seal)
}
