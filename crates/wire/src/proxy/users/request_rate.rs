//! How many requests a user makes in a minute: no minute holds more than its token allows, wherever it begins.

use std::{
    collections::VecDeque,
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::proxy::lock::locked;

/// What is counted.
const MINUTE: Duration = Duration::from_mins(1);

/// When the latest requests of a user came: as many as are allowed in a minute, at most.
#[derive(Debug, Default)]
pub(super) struct RequestTimes(Mutex<VecDeque<Instant>>);

impl RequestTimes {
    /// Takes in a request that comes now.
    ///
    /// # Errors
    /// It is one more than `most` within a minute, and is not counted: how long to wait for the next.
    pub(super) fn take(&self, most: usize, now: Instant) -> Result<(), Duration> {
        let mut times = locked(&self.0);
        while times.front().is_some_and(|oldest| now.saturating_duration_since(*oldest) >= MINUTE) {
            times.pop_front();
        }
        // More than one where fewer are allowed than before.
        let Some(first) = times.len().checked_sub(most).and_then(|surplus| times.get(surplus)) else {
            times.push_back(now);
            return Ok(());
        };
        Err(MINUTE.saturating_sub(now.saturating_duration_since(*first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_holds_more_than_is_allowed() {
        let (times, start) = (RequestTimes::default(), Instant::now());
        let at = |seconds: u64, most: usize| times.take(most, start + Duration::from_secs(seconds));
        assert_eq!([0, 10, 20].map(|seconds| at(seconds, 3)), [Ok(()); 3]);
        assert_eq!(at(30, 3), Err(Duration::from_secs(30)));
        assert_eq!(at(59, 3), Err(Duration::from_secs(1)), "a refused one does not count");
        assert_eq!((at(60, 3), at(60, 3)), (Ok(()), Err(Duration::from_secs(10))));
        // What is allowed changes while requests come.
        assert_eq!(at(61, 1), Err(Duration::from_secs(59)));
        assert_eq!(at(61, 5), Ok(()));
        assert_eq!(at(200, 1), Ok(()));
        assert_eq!(locked(&times.0).len(), 1);
    }
}
