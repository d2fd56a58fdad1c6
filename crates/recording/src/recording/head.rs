//! The head of a long log: what stands compressed in `head.jsonl.zst` while the run is open. `log.jsonl` goes on
//! behind it.
//!
//! The head is a row of zstd frames of whole lines, written by the run's writer alone. A frame is on the device before its
//! lines leave `log.jsonl`: at whatever moment the writer is killed, each line is in one of the two, some in both, and a
//! frame that was cut is none, for its lines are still in `log.jsonl`. Who reads reads the log first, then the head.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::Path,
};

use super::{
    RecordingError,
    disk::{self, Disk, failed},
    line,
    scan::corrupt,
};

/// The file.
pub(super) const HEAD: &str = "head.jsonl.zst";
/// zstd level of the head: it is compressed while the run is under way, on the processors that serve it.
const LEVEL: i32 = 1;
/// How often head and log of a run under way are read until both were read between two moves of lines.
const READS_MAX: usize = 100;

/// What a writer knows of the head.
#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    /// Bytes of the file that are whole frames.
    pub(super) frames: u64,
    /// Bytes of the log that stand in them.
    pub(super) plain: u64,
    /// Bytes at the start of `log.jsonl` that stand in them too.
    pub(super) overlap: u64,
    /// The hash of the log as far as it stands in them.
    pub(super) hasher: Box<blake3::Hasher>,
}

/// The log of a run that is not sealed, in one piece.
#[derive(Debug, Default)]
pub(super) struct Unsealed {
    /// The head's lines, then those of `log.jsonl` that it does not hold.
    pub(super) bytes: Vec<u8>,
    /// The head, where there is one.
    pub(super) head: Option<Head>,
}

impl Head {
    /// Appends what stands in the log before `upto` and not yet in the head.
    pub(super) fn append(&mut self, disk: &Disk, run_dir: &Path, log: &File, upto: u64) -> Result<(), RecordingError> {
        let path = run_dir.join(HEAD);
        let file = disk.open_append(&path)?;
        // What a crash, or a disk that was full, left of a frame.
        disk.truncate(&file, &path, self.frames)?;
        let mut hasher = self.hasher.clone();
        disk.call("write", &path, || compress(log, self.overlap..upto, &file, LEVEL, &mut hasher))?;
        disk.sync(&file, &path)?;
        self.frames = file.metadata().map_err(|source| failed("read", &path, source))?.len();
        self.plain += upto - self.overlap;
        self.overlap = upto;
        self.hasher = hasher;
        Ok(())
    }
}

/// Compresses these bytes of a file into a frame of its own, and hashes them.
pub(super) fn compress(
    mut from: &File,
    range: std::ops::Range<u64>,
    to: impl Write,
    level: i32,
    hasher: &mut blake3::Hasher,
) -> io::Result<()> {
    from.seek(SeekFrom::Start(range.start))?;
    let length = range.end.saturating_sub(range.start);
    let mut encoder = zstd::Encoder::new(to, level)?;
    encoder.set_pledged_src_size(Some(length))?;
    encoder.include_checksum(true)?;
    let mut left = BufReader::with_capacity(64 << 10, from.take(length));
    loop {
        let piece = left.fill_buf()?;
        if piece.is_empty() {
            return encoder.finish()?.flush();
        }
        hasher.update(piece);
        encoder.write_all(piece)?;
        let read = piece.len();
        left.consume(read);
    }
}

/// Reads the log of a run that is not sealed; `None` when it has none. A writer may move lines from the log into the head between the
/// reading of the one and of the other: then both are read again.
///
/// # Errors
/// [`RecordingError::Corrupt`] where head and log do not go together, or one is missing.
pub(super) fn read_unsealed(run_dir: &Path) -> Result<Option<Unsealed>, RecordingError> {
    let state = || {
        let found = std::fs::metadata(run_dir.join("log.jsonl")).ok()?;
        Some((found.ino(), found.len(), found.modified().ok()?))
    };
    let mut before = state();
    for _ in 1..READS_MAX {
        let read = read_head_and_log(run_dir);
        let after = state();
        if read.is_ok() || before == after {
            return read;
        }
        before = after;
    }
    read_head_and_log(run_dir)
}

fn read_head_and_log(run_dir: &Path) -> Result<Option<Unsealed>, RecordingError> {
    let path = run_dir.join("log.jsonl");
    let log = disk::read_whole(&path, u64::MAX - 1)?;
    let Some((mut bytes, frames)) = read_frames(run_dir)? else {
        return Ok(log.map(|bytes| Unsealed { bytes, head: None }));
    };
    let log = log.ok_or_else(|| corrupt(&path, 0, format!("it is missing, and `{HEAD}` goes before it")))?;
    let apart = || corrupt(&path, 0, format!("it does not go on where `{HEAD}` ends"));
    let overlap = overlap(&bytes, &log).ok_or_else(apart)?;
    let mut hasher = Box::new(blake3::Hasher::new());
    hasher.update(&bytes);
    let head = Head { frames, plain: bytes.len() as u64, overlap: overlap as u64, hasher };
    bytes.extend_from_slice(log.get(overlap..).unwrap_or_default());
    Ok(Some(Unsealed { bytes, head: Some(head) }))
}

/// Whatever is left of the log of a run that is not sealed, whether or not it goes together.
pub(super) fn remains(run_dir: &Path) -> Result<Vec<u8>, RecordingError> {
    let log = disk::read_whole(&run_dir.join("log.jsonl"), u64::MAX - 1)?.unwrap_or_default();
    let (mut bytes, _) = read_frames(run_dir)?.unwrap_or_default();
    let held = lines(&bytes);
    let is_held =
        |raw: &[u8]| raw.strip_suffix(b"\n").and_then(|raw| line::parse(raw).ok()).is_some_and(|l| l.seq < held);
    let left = log.split_inclusive(|byte| *byte == b'\n').filter(|raw| !is_held(raw));
    left.for_each(|raw| bytes.extend_from_slice(raw));
    Ok(bytes)
}

/// Where the log's own lines begin: behind those that the head holds, which must be the same there.
fn overlap(head: &[u8], log: &[u8]) -> Option<usize> {
    if head.is_empty() {
        return Some(0);
    }
    let first = log.split(|byte| *byte == b'\n').next()?;
    let twice = lines(head).checked_sub(line::parse(first).ok()?.seq)?;
    let Some(last) = usize::try_from(twice).ok()?.checked_sub(1) else { return Some(0) };
    let end = memchr::memchr_iter(b'\n', log).nth(last)? + 1;
    head.ends_with(log.get(..end)?).then_some(end)
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// The lines of the whole frames at the start of the head, and how many of its bytes those are.
fn read_frames(run_dir: &Path) -> Result<Option<(Vec<u8>, u64)>, RecordingError> {
    let path = run_dir.join(HEAD);
    let Some(file) = disk::open_read(&path)? else { return Ok(None) };
    let unread = |source| failed("read", &path, source);
    let (mut bytes, mut frames) = (Vec::new(), 0);
    let mut rest = BufReader::new(file);
    while !rest.fill_buf().map_err(unread)?.is_empty() {
        let whole = bytes.len();
        let mut frame = zstd::Decoder::with_buffer(rest).map_err(unread)?.single_frame();
        if frame.read_to_end(&mut bytes).is_err() {
            bytes.truncate(whole);
            break;
        }
        rest = frame.finish();
        frames = rest.stream_position().map_err(unread)?;
    }
    Ok(Some((bytes, frames)))
}
