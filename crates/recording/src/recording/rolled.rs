//! What a log that may roll knows of itself: how long its file is, and the [head](super::head) before it.

use super::head::Head;

/// What a writer knows of the log's file, to tell when it is long.
#[derive(Debug)]
pub(super) struct Roll {
    /// How long is long.
    step: u64,
    /// Bytes of the file.
    pub(super) length: u64,
    /// What stands before it may move into the head: all but the last write, for a log is never without a line.
    pub(super) ready: u64,
    /// Whether the thread knows of it.
    pub(super) is_due: bool,
}

/// The head, and whether it may still grow. Whoever holds it works at the files, for as long as that takes.
#[derive(Debug)]
pub(super) struct Rolled {
    pub(super) head: Option<Head>,
    pub(super) is_over: bool,
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
    pub(super) fn began_anew(&mut self, upto: u64) {
        self.length -= upto;
        // What came meanwhile is worth no frame of its own until it is long.
        self.ready = if self.length >= self.step { self.ready.saturating_sub(upto) } else { 0 };
    }
}
