//! Work on many things at once: reading ten thousand steps back is what somebody waits for.

use std::{num::NonZero, thread};

/// Fewer things than this are done before a second thread has begun.
const WORTH: usize = 1024;
/// Most threads.
const MOST: usize = 4;

/// What comes of each thing, in order; of many, in as many threads as there are processors.
pub fn each_in_threads<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if things.len() < WORTH { things.iter().map(work).collect() } else { in_threads(things, work) }
}

/// The same of things that each take long enough for threads, however few they are.
pub fn in_threads<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST);
    if things.len() < 2 || threads == 1 {
        return things.iter().map(work).collect();
    }
    let part = things.len().div_ceil(threads);
    thread::scope(|scope| {
        let work = &work;
        let parts: Vec<_> =
            things.chunks(part).map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>())).collect();
        let mut done = Vec::with_capacity(things.len());
        for part in parts {
            match part.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_each_stands_in_its_place() {
        for many in [0, 1, WORTH - 1, WORTH, 10 * WORTH + 7] {
            let things: Vec<usize> = (0..many).collect();
            assert_eq!(
                each_in_threads(&things, |thing| thing * 2),
                (0..many).map(|thing| thing * 2).collect::<Vec<_>>()
            );
        }
    }
}
