//! When directories were looked at: long lists are not looked through for each page.

use std::time::{Duration, Instant};

/// Looking that takes less is done for whoever asks.
const SHORT: Duration = Duration::from_millis(250);
/// Looking that takes longer is done again after so many times its length.
const REST: u32 = 10;

/// When directories were looked at, and how long that took.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookTimes {
    ended: Instant,
    took: Duration,
}

impl LookTimes {
    /// It began then, and has just ended.
    pub(super) fn since(began: Instant) -> Self {
        Self { ended: Instant::now(), took: began.elapsed() }
    }

    /// Whether what was found is fresh enough.
    pub(super) fn is_fresh(self) -> bool {
        self.took > SHORT && self.ended.elapsed() < self.took * REST
    }
}
