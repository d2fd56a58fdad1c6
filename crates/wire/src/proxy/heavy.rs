//! Work on a large body: it keeps a thread for long enough to be felt by the exchanges that share it.
//!
//! It is done [apart]: what else the thread has to do goes on elsewhere. As many such pieces of work as there are processors are
//! done at a time, where whoever has one to do can wait for its [turn]. What ends a reply cannot wait.

use std::{
    sync::{Condvar, LazyLock, Mutex, PoisonError},
    thread,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{Semaphore, SemaphorePermit},
};

/// From this many bytes on. Each piece of work goes over a body once or a few times, at about a byte a nanosecond, and an exchange
/// has about eight of them: below, handing the thread's other work on costs more than that work waits. At 64 kB it doubled what
/// a request costs.
const HEAVY: usize = 512 << 10;

static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(thread::available_parallelism().map_or(1, std::num::NonZero::get)));

/// Does work on so many bytes; where it is much, the thread's other work goes on elsewhere.
pub(super) fn apart<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_others = || Handle::try_current().is_ok_and(|own| own.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= HEAVY && has_others() { tokio::task::block_in_place(work) } else { work() }
}

/// As [`apart`], for what cannot wait for a turn because it ends a reply: its thread waits until few do such work. Many clients
/// may be cut off at once, and each end holds all that was said.
pub(super) fn at_end<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    apart(bytes, || {
        let _place = (bytes >= HEAVY).then(EndPlace::take);
        work()
    })
}

/// How many ends are written.
static ENDING: Mutex<usize> = Mutex::new(0);
/// One of them is.
static ENDED: Condvar = Condvar::new();

/// The place of one end among those that are written at a time. Given back when dropped.
struct EndPlace;

impl EndPlace {
    fn take() -> Self {
        let most = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ending = ENDED.wait_while(ending, |ending| *ending >= most).unwrap_or_else(PoisonError::into_inner);
        *ending += 1;
        Self
    }
}

impl Drop for EndPlace {
    fn drop(&mut self) {
        *ENDING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

/// As [`apart`], in its turn.
pub(super) async fn in_turn<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let _turn = turn(bytes).await;
    apart(bytes, work)
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
