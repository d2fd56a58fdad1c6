//! A long log rolls: what was written moves into the [head](super::head), compressed, by one thread for all
//! runs. An exchange waits for none of it but the last step, which puts a new file in the log's place.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
};

use super::{
    RecordingError,
    disk::{self, failed},
    head::Head,
    log::{Log, LogState, error_text},
    settings::Durability,
};

/// A log that is as long is compressed, but for its last write; what comes meanwhile stays plain text too.
pub(super) const STEP: u64 = 512 << 10;

/// What a writer knows of the log's file, to tell when it is long.
#[derive(Debug)]
pub(super) struct Roll {
    /// How long is long.
    step: u64,
    /// Bytes of the file.
    length: u64,
    /// What stands before it may move into the head: all but the last write, for a log is never without a line.
    ready: u64,
    /// Whether the thread knows of it.
    is_due: bool,
}

/// The head, and whether it may still grow. Whoever holds it works at the files, for as long as that takes.
#[derive(Debug)]
pub(super) struct Rolled {
    head: Option<Head>,
    is_over: bool,
}

/// A log that does not roll any more.
#[derive(Debug)]
pub(super) struct RollEnded {
    pub(super) head: Option<Head>,
    pub(super) file: Arc<File>,
    /// Bytes of the file.
    pub(super) length: u64,
}

impl Rolled {
    pub(super) fn new(head: Option<Head>) -> Self {
        Self { head, is_over: false }
    }
}

impl Roll {
    /// Of a log that is this long.
    pub(super) fn new(step: u64, length: u64) -> Self {
        Self { step, length, ready: 0, is_due: false }
    }

    /// The file has grown; says whether the thread must be told.
    pub(super) fn grew(&mut self, bytes: usize) -> bool {
        let before = self.length;
        self.length += bytes as u64;
        if before >= self.step {
            self.ready = before;
        }
        let is_told = self.ready == 0 || std::mem::replace(&mut self.is_due, true);
        !is_told
    }

    /// What stood before this place has left the file.
    fn began_anew(&mut self, upto: u64) {
        self.length -= upto;
        // What came meanwhile is worth no frame of its own until it is long.
        self.ready = if self.length >= self.step { self.ready.saturating_sub(upto) } else { 0 };
    }
}

impl Log {
    /// Moves what is ready into the head. What goes wrong here loses nothing: the log only stays longer.
    pub(super) fn roll(&self) {
        let mut rolled = self.rolled.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let upto = {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let upto = if rolled.is_over || state.why.is_some() { 0 } else { state.roll.ready };
                state.roll.is_due = upto > 0;
                upto
            };
            if upto == 0 {
                return;
            }
            if let Err(error) = self.roll_before(&mut rolled, upto) {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.why.is_none() {
                    tracing::warn!(error = %error_text(&error), "a long log could not be compressed; it goes on as it is");
                }
                (state.roll.ready, state.roll.is_due) = (0, false);
                return;
            }
        }
    }

    /// The log's file as it stays from now on.
    pub(super) fn stop_rolling(&self) -> RollEnded {
        let mut rolled = self.rolled.lock().unwrap_or_else(PoisonError::into_inner);
        rolled.is_over = true;
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        RollEnded { head: rolled.head.clone(), file: Arc::clone(&state.file), length: state.roll.length }
    }

    /// Lets another writer go on with the run.
    pub(super) fn release(&self) {
        // The thread may hold the file for a moment longer.
        let _ = self.stop_rolling().file.unlock();
    }

    fn roll_before(&self, rolled: &mut Rolled, upto: u64) -> Result<(), RecordingError> {
        let missing = || failed("open", &self.path, io::ErrorKind::NotFound.into());
        let log = disk::open_read(&self.path)?.ok_or_else(missing)?;
        // After a power cut nothing may stand in the head alone.
        self.disk.sync(&log, &self.path)?;
        let head = rolled.head.get_or_insert_default();
        let run_dir = self.path.parent().unwrap_or(&self.path);
        if upto > head.overlap {
            head.append(&self.disk, run_dir, &log, upto)?;
        }
        let temporary = self.path.with_extension("jsonl.tmp");
        self.disk.remove(&temporary)?;
        let taken = || failed("create", &temporary, io::ErrorKind::AlreadyExists.into());
        let new = self.disk.create_log(&temporary)?.ok_or_else(taken)?;
        let begun = self.begin_anew(&log, new, upto);
        if begun.is_err() {
            // The head holds those lines too; they leave the log the next time.
            let _ = self.disk.remove(&temporary);
        } else {
            head.overlap = 0;
        }
        begun
    }

    /// Puts a file in the log's place that holds what comes behind `upto`.
    fn begin_anew(&self, log: &File, new: File, upto: u64) -> Result<(), RecordingError> {
        let temporary = self.path.with_extension("jsonl.tmp");
        // Locked before anybody else can find it.
        new.try_lock().map_err(|error| failed("lock", &temporary, error.into()))?;
        let known = self.state.lock().unwrap_or_else(PoisonError::into_inner).roll.length;
        self.disk.call("write", &temporary, || copy(log, upto..known, &new))?;
        self.disk.sync(&new, &temporary)?;
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state: &mut LogState = &mut guard;
        if let Some(why) = &state.why {
            return Err(RecordingError::Stopped { why: why.clone() });
        }
        self.disk.call("write", &temporary, || copy(log, known..state.roll.length, &new))?;
        if self.durability != Durability::Written {
            self.disk.sync(&new, &temporary)?;
        }
        // Who deleted the log must hear of it, not find it again.
        self.disk.call("find", &self.path, || disk::is_there(&state.file, &self.path))?;
        self.disk.call("rename", &temporary, || std::fs::rename(&temporary, &self.path))?;
        state.file = new.into();
        state.roll.began_anew(upto);
        if self.durability != Durability::Written {
            // Else what is acknowledged from now on could be in a file without a name.
            self.disk.sync_dir_of(&self.path).inspect_err(|error| self.end(state, &error_text(error)))?;
        }
        Ok(())
    }
}

fn copy(mut from: &File, range: std::ops::Range<u64>, mut to: &File) -> io::Result<()> {
    from.seek(SeekFrom::Start(range.start))?;
    let length = range.end.saturating_sub(range.start);
    if io::copy(&mut from.take(length), &mut to)? == length {
        return Ok(());
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Logs that are long, and whether the thread is there: only while there are any.
static LONG: Mutex<(VecDeque<Weak<Log>>, bool)> = Mutex::new((VecDeque::new(), false));

/// Has a log [rolled](Log::roll), in its turn.
pub(super) fn later(log: Weak<Log>) {
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
