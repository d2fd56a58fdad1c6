//! What passes in a tunnel, counted.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::trajectory::Uninspected;

/// What has passed so far, in bytes, and when it last did.
#[derive(Debug)]
pub(in crate::proxy) struct PassedBytes {
    pub(in crate::proxy) from_client: AtomicU64,
    pub(in crate::proxy) from_upstream: AtomicU64,
    opened: tokio::time::Instant,
    /// Microseconds after the opening.
    last_us: AtomicU64,
}

impl PassedBytes {
    pub(in crate::proxy) fn new() -> Self {
        Self {
            from_client: AtomicU64::new(0),
            from_upstream: AtomicU64::new(0),
            opened: tokio::time::Instant::now(),
            last_us: AtomicU64::new(0),
        }
    }

    /// So many bytes have passed.
    pub(in crate::proxy) fn passed(&self, count: &AtomicU64, bytes: usize) {
        count.fetch_add(bytes as u64, Ordering::Relaxed);
        let now = u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_us.store(now, Ordering::Relaxed);
    }

    /// Waits until nothing has passed for so long.
    pub(in crate::proxy) async fn idle(&self, limit: Duration) {
        loop {
            let last = self.opened + Duration::from_micros(self.last_us.load(Ordering::Relaxed));
            let Some(due) = last.checked_add(limit) else { return std::future::pending().await };
            if due <= tokio::time::Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    pub(in crate::proxy) fn so_far(&self) -> Uninspected {
        Uninspected {
            from_client: self.from_client.load(Ordering::Relaxed),
            from_upstream: self.from_upstream.load(Ordering::Relaxed),
        }
    }
}
