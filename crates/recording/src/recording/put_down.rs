//! The end of the work on a run that does not end: its files are closed, and whoever asks for it goes on with it.

use std::sync::PoisonError;

use super::{Recorder, RecordingError, log::Log};

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
