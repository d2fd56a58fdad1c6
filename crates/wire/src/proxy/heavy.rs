//! Work on a large body: it takes a processor for long enough to be felt by the exchanges beside it.
//!
//! It is done [apart]: on threads of its own, of which all processors but one have one, and which give way to all others. Whoever
//! has such work waits for its [turn]. What ends a reply cannot wait so: it has other threads, and keeps its own until it is done.

use std::{sync::LazyLock, thread};

use rayon_core::{ThreadPool, ThreadPoolBuilder};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{Semaphore, SemaphorePermit},
};
use tracing::Span;

/// From this many bytes on. Each piece of work goes over a body once or a few times, at about a byte a nanosecond, and an exchange
/// has about eight of them: below, handing it on costs more than it keeps others waiting. At 64 kB it doubled what a request
/// costs.
const HEAVY: usize = 512 << 10;
/// How much the threads give way to others, of 19. They get a third of a processor that others want whole.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(at_a_time()));

/// Threads for such work. None where the system gives none: the work is done where it comes up.
type LargeBodyThreads = LazyLock<Option<ThreadPool>>;

/// The threads of whoever has a turn.
static WORKING: LargeBodyThreads = LazyLock::new(threads);
/// The threads of what ends a reply: a long edit must not keep it.
static ENDING: LargeBodyThreads = LazyLock::new(threads);

fn threads() -> Option<ThreadPool> {
    let threads = ThreadPoolBuilder::new().num_threads(at_a_time()).thread_name(|_| "large-body".to_owned());
    threads.start_handler(|_| give_way()).build().ok()
}

/// How many pieces of such work are done at a time.
fn at_a_time() -> usize {
    thread::available_parallelism().map_or(1, |processors| processors.get().saturating_sub(1).max(1))
}

/// Lets other threads go first. Only where a thread can do so by itself, without its program.
fn give_way() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Does work on so many bytes; where it is much, on a thread for that. What else this thread has to do goes on elsewhere.
pub(super) fn run_heavy<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    apart_on(&WORKING, bytes, work)
}

/// As [`run_heavy`], for what cannot wait for a turn because it ends a reply. Many clients may be cut off at once, and each end holds
/// all that was said.
pub(super) fn at_end<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    apart_on(&ENDING, bytes, work)
}

fn apart_on<T: Send>(threads: &LargeBodyThreads, bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    let is_shared = |own: &Handle| own.runtime_flavor() == RuntimeFlavor::MultiThread;
    let runtime = if bytes >= HEAVY { Handle::try_current().ok().filter(is_shared) } else { None };
    // The first large body starts the threads.
    let started = runtime.and_then(|runtime| Some((runtime, threads.as_ref()?)));
    let Some((runtime, threads)) = started else { return work() };
    let span = Span::current();
    let there = || {
        let _entered = runtime.enter();
        span.in_scope(work)
    };
    tokio::task::block_in_place(|| threads.install(there))
}

/// As [`run_heavy`], in its turn.
pub(super) async fn in_turn<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    let _turn = turn(bytes).await;
    run_heavy(bytes, work)
}

/// The turn of work on so many bytes: it lasts until it is dropped. What is small needs none.
pub(super) async fn turn(bytes: usize) -> Option<SemaphorePermit<'static>> {
    // Nobody closes the turns.
    if bytes >= HEAVY { TURNS.acquire().await.ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// One worker: work that is not done apart would keep the other task from running.
    #[test]
    fn what_is_heavy_keeps_no_worker() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let (told, hear) = mpsc::channel();
        runtime.block_on(async {
            let waits = tokio::spawn(in_turn(HEAVY, move || hear.recv()));
            let tells = tokio::spawn(async move { told.send(7) });
            tells.await.expect("it ran").expect("it is heard");
            assert_eq!(waits.await.expect("it ran"), Ok(7));
        });
    }

    #[tokio::test]
    async fn turns_are_bounded_and_small_work_takes_none() {
        let mut turns = Vec::new();
        while let Ok(turn) = TURNS.try_acquire() {
            turns.push(turn);
        }
        assert_eq!(in_turn(HEAVY - 1, || 1).await, 1);
        let heavy = tokio::spawn(in_turn(HEAVY, || 2));
        tokio::task::yield_now().await;
        assert!(!heavy.is_finished());
        drop(turns);
        assert_eq!(heavy.await.expect("it ran"), 2);
    }
}
