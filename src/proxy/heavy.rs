//! Work on a large body: it keeps a thread for long enough to be felt by the exchanges that share it.

use tokio::runtime::{Handle, RuntimeFlavor};

/// From this many bytes on. Below, handing the thread's other work on costs more than it saves.
const HEAVY: usize = 128 << 10;

/// Does work on so many bytes; where it is much, the thread's other work goes on elsewhere.
pub(super) fn apart<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_others = || Handle::try_current().is_ok_and(|own| own.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= HEAVY && has_others() { tokio::task::block_in_place(work) } else { work() }
}
