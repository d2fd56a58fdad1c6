//! Work that goes on beside: started at any time, waited for at the end.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::task::{AbortHandle, JoinSet};

/// Tasks that nobody waits for before the end.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Starts one.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work)
    }

    /// Waits until those that were started have ended, so long at most. Those that have not go on.
    pub(super) async fn finish(&self, limit: Duration) {
        let mut tasks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = tokio::time::timeout(limit, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.detach_all();
    }
}
