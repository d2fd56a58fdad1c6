//! What the bodies that are under way may take of the machine's memory, all together.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ProxyError;

/// What is counted in one piece, in bytes.
const UNIT: usize = 16 << 10;
/// A body up to this length is not counted: connections are.
const SMALL: usize = 64 << 10;
/// Most that is taken where nothing else is said, in bytes.
const MOST: usize = 2 << 30;
/// How long a body waits for memory where nothing else is said.
const WAIT: Duration = Duration::from_secs(10);

/// Memory for bodies. Clones share it.
#[derive(Debug, Clone)]
pub struct BodyMemory {
    free: Arc<Semaphore>,
    bytes: usize,
    /// How long a body waits for others to end.
    wait: Duration,
}

impl Default for BodyMemory {
    /// A quarter of the machine's memory, and 2 GiB at most.
    fn default() -> Self {
        Self::with_bytes(machine().map_or(MOST, |bytes| (bytes / 4).min(MOST)))
    }
}

impl BodyMemory {
    /// So many bytes.
    pub fn with_bytes(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(units)), bytes, wait: WAIT }
    }
}

/// Memory that one body has, until this is dropped.
#[derive(Debug, Default)]
pub(super) struct HeldMemory(Option<OwnedSemaphorePermit>);

impl HeldMemory {
    /// Takes more, where the body has grown to this length.
    ///
    /// # Errors
    /// Others have it, and did not end in time.
    pub(super) async fn grow(&mut self, memory: &BodyMemory, bytes: usize) -> Result<(), ProxyError> {
        let held = self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if bytes <= SMALL || bytes <= held * UNIT {
            return Ok(());
        }
        let full = || ProxyError::Memory { limit: memory.bytes };
        let more = u32::try_from(bytes.div_ceil(UNIT) - held).map_err(|_| full())?;
        let taken = Arc::clone(&memory.free).acquire_many_owned(more);
        let taken = tokio::time::timeout(memory.wait, taken).await.ok().and_then(Result::ok).ok_or_else(full)?;
        match &mut self.0 {
            Some(held) => held.merge(taken),
            none => *none = Some(taken),
        }
        Ok(())
    }
}

/// The memory that this process may use, in bytes.
fn machine() -> Option<usize> {
    let read = |path| std::fs::read_to_string(path).ok();
    let whole = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().trim_end_matches("kB").trim().parse::<usize>().ok()?.checked_mul(1024)
    });
    let group = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
    whole.into_iter().chain(group).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn hold(memory: &BodyMemory, bytes: usize) -> Result<HeldMemory, ProxyError> {
        let mut held = HeldMemory::default();
        held.grow(memory, bytes).await.map(|()| held)
    }

    #[tokio::test]
    async fn who_comes_last_waits_and_is_told() {
        let memory = BodyMemory { wait: Duration::ZERO, ..BodyMemory::with_bytes(1 << 20) };
        let first = hold(&memory, 900 << 10).await.expect("there is room");
        assert!(hold(&memory, SMALL).await.is_ok(), "a small body is not counted");
        assert!(matches!(hold(&memory, 200 << 10).await, Err(ProxyError::Memory { limit }) if limit == 1 << 20));
        assert!(matches!(hold(&memory, 2 << 20).await, Err(ProxyError::Memory { .. })), "it never fits");
        let patient = BodyMemory { wait: WAIT, ..memory.clone() };
        let waits = tokio::spawn(async move { hold(&patient, 200 << 10).await.is_ok() });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waits.await.expect("ended"));
        let mut grown = hold(&memory, 100 << 10).await.expect("there is room");
        grown.grow(&memory, 1 << 20).await.expect("all of it");
        assert_eq!(memory.free.available_permits(), 0);
        drop(grown);
        assert_eq!(memory.free.available_permits(), 64);
    }
}
