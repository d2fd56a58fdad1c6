//! The log file of a run that is being recorded. Its lock is held for what must be in order: which texts are new, the
//! numbers, lines that are put together in their queue, one write.
//!
//! Lines may wait in a queue for those of other exchanges, and go to the file with them by one write. Nothing overtakes
//! them: whatever is written next takes them along.

use std::{
    collections::VecDeque,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    RecordingError,
    content_hash::ContentHash,
    disk::Disk,
    error::error_text,
    hash_cache::HashCache,
    line,
    recover::Recovered,
    rolled::{Roll, Rolled},
    settings::Durability,
    write,
};

/// Bytes that wait at most; more are written at once.
const QUEUE_MAX: usize = 256 << 10;

/// Bytes of the queue's memory that are kept for the next lines.
const KEPT: usize = 64 << 10;

/// A record that waits to be written.
#[derive(Debug, Clone, Copy)]
#[must_use = "the record is not written yet"]
pub struct Queued {
    pub(super) below: u64,
    /// Whether no other exchange of the run is under way: then nothing is worth waiting for.
    pub is_alone: bool,
}

/// The log of one run.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) disk: Disk,
    pub(super) path: PathBuf,
    pub(super) durability: Durability,
    pub(super) state: Mutex<LogState>,
    synced: Mutex<Synced>,
    stopped: AtomicBool,
    /// Whether it was stopped because there was no room for its next lines.
    lacked_room: AtomicBool,
    /// Taken before the state, and held while files are worked at.
    pub(super) rolled: Mutex<Rolled>,
    itself: Weak<Self>,
}

#[derive(Debug)]
pub(super) struct LogState {
    /// Locked as long as it is open: the run has one writer.
    pub(super) file: Arc<File>,
    pub(super) roll: Roll,
    next: u64,
    /// Texts that stand in the log already, or are sure to before any record that is written from now on.
    texts: HashCache<()>,
    /// Lines that wait for the next write, and how many bytes are whole lines: a record that panics halfway is none.
    queue: Vec<u8>,
    pub(super) whole: usize,
    /// Records below this number are in the file.
    written: u64,
    /// Why nothing more is written, once that is so.
    pub(super) why: Option<String>,
}

#[derive(Debug)]
struct Synced {
    /// Records below this number are on the device.
    below: u64,
    at: Instant,
}

impl Log {
    /// Goes on with an open log file that holds what was found; a mark for [rolling](super::roll) is set each `step` bytes.
    pub(super) fn new(
        disk: Disk,
        path: &Path,
        file: File,
        durability: Durability,
        found: Recovered,
        step: u64,
    ) -> Arc<Self> {
        let Recovered { records: next, texts, length, head, .. } = found;
        let roll = Roll::new(step, length);
        let file = Arc::new(file);
        Arc::new_cyclic(|itself| Self {
            disk,
            path: path.to_owned(),
            durability,
            state: Mutex::new(LogState {
                file,
                roll,
                next,
                texts,
                queue: Vec::new(),
                whole: 0,
                written: next,
                why: None,
            }),
            synced: Mutex::new(Synced { below: next, at: Instant::now() }),
            stopped: AtomicBool::new(false),
            lacked_room: AtomicBool::new(false),
            rolled: Mutex::new(Rolled::new(head)),
            itself: Weak::clone(itself),
        })
    }

    /// Whether an earlier error ended the log.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether there was no room for what was to be written, and nothing else is wrong.
    pub(super) fn lacked_room(&self) -> bool {
        self.lacked_room.load(Ordering::Acquire)
    }

    /// How many records it holds.
    pub(super) fn records(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// Ends the log: nothing more is written.
    pub(super) fn stop(&self, why: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.end(&mut state, why);
    }

    /// Ends the log because this could not be written.
    pub(super) fn fail(&self, error: &RecordingError) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.fail_in(&mut state, error);
    }

    fn fail_in(&self, state: &mut LogState, error: &RecordingError) {
        if state.why.is_none() {
            self.lacked_room.store(error.is_lack_of_room(), Ordering::Release);
        }
        self.end(state, &error_text(error));
    }

    /// Puts those of the texts (their escapes) that are new, then the record, into the queue. Gives how many records the
    /// log then has: the line is in the file once [`Log::write`] was called with that.
    pub(super) fn queue<'a>(
        &self,
        texts: impl IntoIterator<Item = (ContentHash, &'a [u8])>,
        record: impl FnOnce(&mut Vec<u8>),
    ) -> Result<u64, RecordingError> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        if let Some(why) = &state.why {
            return Err(RecordingError::Stopped { why: why.clone() });
        }
        for (hash, escaped) in texts {
            if state.texts.get(hash).is_none() {
                state.texts.insert(hash, ());
                state.line(|line| write::text(hash, escaped, line));
            }
        }
        state.line(record);
        if state.queue.len() > QUEUE_MAX {
            self.write_queue(state)?;
        }
        Ok(state.next)
    }

    /// Makes sure that the records below this number are in the file, all that wait with them. The first error ends the
    /// log for good: a second try on the same file could succeed and hide that the first one lost data.
    pub(super) fn write(&self, below: u64) -> Result<(), RecordingError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.written < below {
            if let Some(why) = &state.why {
                return Err(RecordingError::Stopped { why: why.clone() });
            }
            self.write_queue(&mut state)?;
        }
        drop(state);
        match self.durability {
            Durability::Written => Ok(()),
            Durability::Synced => self.sync_below(below),
            Durability::Interval(every) => self.sync_if_older(below, every),
        }
    }

    /// Ends the log with this record: what waits is written before it, nothing after it. Gives how many records there are.
    pub(super) fn finish(&self, record: impl FnOnce(&mut Vec<u8>), why: &str) -> Result<u64, RecordingError> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        if let Some(why) = &state.why {
            return Err(RecordingError::Stopped { why: why.clone() });
        }
        state.line(record);
        self.write_queue(state)?;
        if self.durability != Durability::Written {
            self.disk.sync(&state.file, &self.path).inspect_err(|error| self.end(state, &error_text(error)))?;
            synced.below = state.written;
        }
        self.end(state, why);
        Ok(state.written)
    }

    pub(super) fn write_queue(&self, state: &mut LogState) -> Result<(), RecordingError> {
        state.queue.truncate(state.whole);
        let written = self.disk.append(&state.file, &self.path, &state.queue);
        if written.is_ok() && state.roll.grew(state.whole) {
            later(Weak::clone(&self.itself));
        }
        state.queue.clear();
        state.whole = 0;
        // A long record must not cost every run that is open its length.
        state.queue.shrink_to(KEPT);
        match written {
            Ok(()) => state.written = state.next,
            Err(error) => {
                self.fail_in(state, &error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whoever comes first syncs for all that wait behind it.
    fn sync_below(&self, written: u64) -> Result<(), RecordingError> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if synced.below >= written {
            return Ok(());
        }
        let (file, below, why) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (Arc::clone(&state.file), state.written, state.why.clone())
        };
        if let Some(why) = why {
            return Err(RecordingError::Stopped { why });
        }
        self.disk.sync(&file, &self.path).inspect_err(|error| self.stop(&error_text(error)))?;
        synced.below = below;
        synced.at = Instant::now();
        Ok(())
    }

    fn sync_if_older(&self, written: u64, every: Duration) -> Result<(), RecordingError> {
        let due = {
            let synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
            synced.below < written && synced.at.elapsed() >= every
        };
        if due { self.sync_below(written) } else { Ok(()) }
    }

    pub(super) fn end(&self, state: &mut LogState, why: &str) {
        state.why.get_or_insert_with(|| why.to_owned());
        self.stopped.store(true, Ordering::Release);
    }
}

impl LogState {
    /// Puts a line into the queue.
    fn line(&mut self, record: impl FnOnce(&mut Vec<u8>)) {
        self.queue.truncate(self.whole);
        line::append(self.next, &mut self.queue, record);
        self.whole = self.queue.len();
        self.next += 1;
    }
}

/// Logs that are long, and whether the thread is there: only while there are any.
static LONG: Mutex<(VecDeque<Weak<Log>>, bool)> = Mutex::new((VecDeque::new(), false));

/// Has a log [rolled](Log::roll), in its turn.
fn later(log: Weak<Log>) {
    let mut long = LONG.lock().unwrap_or_else(PoisonError::into_inner);
    long.0.push_back(log);
    if !long.1 {
        // Without a thread it waits for the next one.
        long.1 = thread::Builder::new().name("aegis-roll".to_owned()).spawn(roll_all).is_ok();
    }
}

fn roll_all() {
    loop {
        let next = {
            let mut long = LONG.lock().unwrap_or_else(PoisonError::into_inner);
            let next = long.0.pop_front();
            long.1 = next.is_some();
            next
        };
        let Some(log) = next else { return };
        if let Some(log) = log.upgrade() {
            log.roll();
        }
    }
}
