//! A long log rolls: what was written moves into the [head](super::head), compressed, by one thread for all
//! runs. An exchange waits for none of it but the last step, which puts a new file in the log's place.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::{Arc, PoisonError},
};

use super::{
    RecordingError,
    disk::{self, failed},
    error::error_text,
    head::Head,
    log::{Log, LogState},
    rolled::Rolled,
    settings::Durability,
};

/// A log that is as long is compressed, but for its last write; what comes meanwhile stays plain text too. Each step waits
/// three times for the device: at half of this, that took a twentieth of what an exchange costs.
pub(super) const STEP: u64 = 1 << 20;

/// A log that does not roll any more.
#[derive(Debug)]
pub(super) struct RollEnded {
    pub(super) head: Option<Head>,
    pub(super) file: Arc<File>,
    /// Bytes of the file.
    pub(super) length: u64,
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
