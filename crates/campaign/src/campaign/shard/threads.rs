//! Work on many runs, on all cores.

use std::thread;

use crate::campaign::error::CampaignError;

/// Does something for each, on as many threads as there are cores, and returns it in their order.
pub(super) fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    each: impl Fn(&T) -> Result<R, CampaignError> + Sync,
) -> Result<Vec<R>, CampaignError> {
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part = all.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let each = &each;
        let parts: Vec<_> = all
            .chunks(part)
            .map(|part| scope.spawn(move || part.iter().map(each).collect::<Result<Vec<_>, _>>()))
            .collect();
        let mut done = Vec::with_capacity(all.len());
        for part in parts {
            done.append(&mut part.join().map_err(|_| CampaignError::Lost)??);
        }
        Ok(done)
    })
}
