//! Locks of this room.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic while a lock was held leaves counters that are at worst one off; refusing all traffic would be worse.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
