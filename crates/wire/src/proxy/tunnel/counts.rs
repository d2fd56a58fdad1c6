//! What passes in a tunnel, counted.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::trajectory::Uninspected;

/// Kinds of messages that are told apart.
const KINDS_MAX: usize = 16;

/// Messages of a socket that belong to no step, by kind.
#[derive(Debug, Default)]
pub(in crate::proxy) struct UnreadMessages(BTreeMap<String, u64>);

impl UnreadMessages {
    /// One more.
    pub(in crate::proxy) fn add(&mut self, kind: String) {
        let kind = if self.0.len() < KINDS_MAX || self.0.contains_key(&kind) { kind } else { "others".to_owned() };
        *self.0.entry(kind).or_default() += 1;
    }

    /// One turned out to belong to a step.
    pub(in crate::proxy) fn remove(&mut self, kind: &str) {
        if let Some(count) = self.0.get_mut(kind) {
            *count -= 1;
        }
    }

    /// What is written down of them; `None` where there are none.
    pub(in crate::proxy) fn note(&self) -> Option<String> {
        let counted =
            |(kind, count): (&String, &u64)| format!("{count} × {}", kind.chars().take(80).collect::<String>());
        let counted: Vec<_> = self.0.iter().filter(|(_, count)| **count > 0).map(counted).collect();
        let counted = Some(counted.join("; ")).filter(|counted| !counted.is_empty())?;
        Some(format!("messages of a WebSocket that belong to no response: {counted}"))
    }
}

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
