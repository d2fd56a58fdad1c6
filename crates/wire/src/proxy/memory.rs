//! What the bodies that are under way may take of the machine's memory, all together.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
};

use super::{error::ProxyError, lock::locked};

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
        if !self.lacks(bytes) {
            return Ok(());
        }
        let full = || ProxyError::Memory { limit: memory.bytes };
        // For what never fits nobody waits.
        let more = u32::try_from(bytes.div_ceil(UNIT) - self.units()).ok().filter(|_| bytes <= memory.bytes);
        let more = more.ok_or_else(full)?;
        let taken = Arc::clone(&memory.free).acquire_many_owned(more);
        let taken = tokio::time::timeout(memory.wait, taken).await.ok().and_then(Result::ok).ok_or_else(full)?;
        match &mut self.0 {
            Some(held) => held.merge(taken),
            none => *none = Some(taken),
        }
        Ok(())
    }

    fn units(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    fn lacks(&self, bytes: usize) -> bool {
        bytes > SMALL && bytes > self.units() * UNIT
    }
}

/// What has come of a message that is not whole. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct GatheredMessage(Arc<Mutex<GatheredBytes>>);

#[derive(Debug, Default)]
struct GatheredBytes {
    bytes: usize,
    memory: HeldMemory,
    /// Since when it takes memory.
    since: Option<Instant>,
}

impl GatheredMessage {
    /// The message is whole: its memory is given back with it.
    pub(super) fn take(&self) -> HeldMemory {
        std::mem::take(&mut *locked(&self.0)).memory
    }

    /// So many of the bytes belong to no message.
    pub(super) fn passed(&self, bytes: usize) {
        let gathered = &mut locked(&self.0).bytes;
        *gathered = gathered.saturating_sub(bytes);
    }

    /// Waits until a message has taken memory for so long without being whole.
    pub(super) async fn overdue(&self, limit: Duration) {
        loop {
            let waited = locked(&self.0).since.map_or(Duration::ZERO, |since| since.elapsed());
            let Some(left) = limit.checked_sub(waited).filter(|left| !left.is_zero()) else { return };
            tokio::time::sleep(left).await;
        }
    }
}

/// Memory that is waited for.
type GrowingMemory = Pin<Box<dyn Future<Output = Result<HeldMemory, ProxyError>> + Send>>;

/// A connection whose messages take their memory while they come. Where there is none in time, nothing more is read of it: what
/// still comes is thrown away, so that its client can read why.
pub(super) struct CountedReading<R> {
    reading: R,
    memory: BodyMemory,
    gathered: GatheredMessage,
    growing: Option<GrowingMemory>,
    /// Who is told that there was none; then nobody.
    refusing: Option<oneshot::Sender<ProxyError>>,
}

impl<R> CountedReading<R> {
    /// Counts here what comes by a connection. Gives where it is told that there is no memory.
    pub(super) fn new(
        reading: R,
        memory: BodyMemory,
        gathered: GatheredMessage,
    ) -> (Self, oneshot::Receiver<ProxyError>) {
        let (refusing, refused) = oneshot::channel();
        (Self { reading, memory, gathered, growing: None, refusing: Some(refusing) }, refused)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for CountedReading<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.growing.is_none() && this.refusing.is_some() {
            let gathered = &mut *locked(&this.gathered.0);
            let needed = gathered.bytes + buffer.remaining();
            if gathered.memory.lacks(needed) {
                gathered.since.get_or_insert_with(Instant::now);
                let (mut held, memory) = (std::mem::take(&mut gathered.memory), this.memory.clone());
                this.growing = Some(Box::pin(async move { held.grow(&memory, needed).await.map(|()| held) }));
            }
        }
        if let Some(growing) = &mut this.growing {
            let grown = ready!(growing.as_mut().poll(context));
            this.growing = None;
            match grown {
                Ok(held) => locked(&this.gathered.0).memory = held,
                Err(full) => drop(this.refusing.take().map(|refusing| refusing.send(full))),
            }
        }
        let before = buffer.filled().len();
        while this.refusing.is_none() {
            ready!(Pin::new(&mut this.reading).poll_read(context, buffer))?;
            if buffer.filled().len() == before {
                return Poll::Ready(Ok(()));
            }
            buffer.set_filled(before);
        }
        let read = Pin::new(&mut this.reading).poll_read(context, buffer);
        locked(&this.gathered.0).bytes += buffer.filled().len() - before;
        read
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
