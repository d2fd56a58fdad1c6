//! The end of the work on a run that does not end: its files are closed, and whoever asks for it goes on with it.

use std::{
    io::Write,
    path::Path,
    sync::{
        PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    Recorder, RecordingError,
    disk::{Disk, failed, make_private_dir},
    log::Log,
};

/// Bytes that a directory must have room for, so that recordings in it may go on.
const ROOM: usize = 64 << 10;

/// Checks that a directory takes more: writes a file of 64 kB there, and removes it.
///
/// # Errors
/// [`RecordingError::Io`]: it does not.
pub fn check_room(dir: &Path) -> Result<(), RecordingError> {
    static CHECKS: AtomicU64 = AtomicU64::new(0);
    let number = CHECKS.fetch_add(1, Ordering::Relaxed);
    let path = dir.join(format!(".room-{}-{number}", std::process::id()));
    let disk = Disk::new(false);
    make_private_dir(dir).map_err(|source| failed("create", dir, source))?;
    // Not zeros: some file systems keep none of those.
    let written = disk.replace(&path, |file| file.write_all(&vec![b'.'; ROOM]));
    let temporary = path.with_file_name(format!(".room-{}-{number}.tmp", std::process::id()));
    disk.remove(&path).and(disk.remove(&temporary)).and(written)
}

impl Recorder {
    /// Ends the work on a run that does not end: what waits is written and forced to the device, and the files are let go.
    /// [`Recorder::create`] goes on with it, here or in another process.
    ///
    /// # Errors
    /// [`RecordingError::Stopped`] when the recording failed before; [`RecordingError::Io`]. Even then the files are let go.
    pub fn put_down(&self) -> Result<(), RecordingError> {
        let put_down = self.log.put_down();
        self.let_go();
        put_down
    }

    /// Whether the recording has failed only because there was no room: [`Recorder::create`] may go on with it later, once this
    /// one has [let go](Recorder::let_go).
    pub fn lacked_room(&self) -> bool {
        self.log.lacked_room()
    }

    /// Lets somebody else go on with a recording that has failed, while exchanges still hold this one.
    pub fn let_go(&self) {
        self.log.stop("the run was let go");
        self.log.release();
    }
}

impl Log {
    fn put_down(&self) -> Result<(), RecordingError> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        if let Some(why) = &state.why {
            return Err(RecordingError::Stopped { why: why.clone() });
        }
        if state.whole > 0 {
            self.write_queue(state)?;
        }
        self.end(state, "the run was put down");
        self.disk.sync(&state.file, &self.path)
    }
}
