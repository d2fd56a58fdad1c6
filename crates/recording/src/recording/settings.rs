//! What a user may choose about recording.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{MachineKey, Redactor};

/// Which failure a finished record survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A killed process, an out-of-memory kill, a panic: the record is with the system. Costs a few µs.
    #[default]
    Written,
    /// A power cut too: the record is on the device (group commit; blocks the caller for a sync).
    Synced,
    /// A killed process; at a power cut at most what was written in this time, counted at each write.
    Interval(Duration),
}

/// Settings of a recorder.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which failure a finished record survives.
    pub durability: Durability,
    /// The longest body that is stored whole, in bytes; a longer one is cut there and marked as not exact.
    pub max_kept_body: usize,
    /// What is masked. Runs that share it share what they have heard.
    pub redactor: Redactor,
    /// The key by which recordings are known to be made here; `None` where none is to be marked.
    pub machine: Option<MachineKey>,
    /// The clock.
    pub clock: Clock,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            durability: Durability::Written,
            max_kept_body: 64 << 20,
            redactor: Redactor::default(),
            machine: None,
            clock: Clock::system(),
        }
    }
}

/// Wall and monotonic time, in one place, so that a test can make the wall clock leap.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
    wall: Option<Timestamp>,
}

impl Clock {
    /// The system's clocks; the monotonic one counts from now.
    pub fn system() -> Self {
        Self { began: Instant::now(), wall: None }
    }

    /// A wall clock that stands still, for tests and reproducible data.
    pub fn fixed(wall: Timestamp) -> Self {
        Self { began: Instant::now(), wall: Some(wall) }
    }

    /// The wall clock: a label, never the base of a duration.
    pub fn wall(&self) -> Timestamp {
        self.wall.unwrap_or_else(Timestamp::now)
    }

    /// Microseconds since the clock began, by the monotonic clock.
    pub fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
