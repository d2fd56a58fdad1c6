//! Runs that are put down: their files are closed and their memory is free, and the next request that names them goes on.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{ClosingRun, EndedRun, RunPlace, Runs};
use crate::{proxy::run::Run, recording::RecordingError, trajectory::RunId};

/// Who holds a run that nobody uses: its place, and whoever looks at it.
pub(super) const HOLDERS: usize = 2;

impl Runs {
    /// Takes out all runs; those that ask for them wait until they are [put down](Runs::put_down).
    pub fn close_all(&self) -> Vec<ClosingRun> {
        self.background.give_up(|_| true);
        self.under_way().into_iter().filter_map(|run| self.close_where(run, |_| true)).collect()
    }

    /// Takes out the named runs without traffic for that long, but never `kept`: a name that was given at the start is held
    /// until the end. Those that ask for them wait until they are [put down](Runs::put_down).
    pub fn close_idle(&self, idle: Duration, kept: Option<&RunId>) -> Vec<ClosingRun> {
        let is_idle = |run: &Arc<Run>| run.is_named() && run.idle_for() >= idle && run.is_quiet();
        // Whoever has found a run may not have arrived in it yet.
        let is_unused = |run: &Arc<Run>| is_idle(run) && Arc::strong_count(run) == HOLDERS;
        let under_way = self.under_way().into_iter().filter(|run| kept != Some(&run.id) && is_idle(run));
        under_way.filter_map(|run| self.close_where(run, is_unused)).collect()
    }

    /// The displaced runs that nobody has sealed yet. The caller seals them.
    pub fn retire_displaced(&self) -> Vec<Arc<Run>> {
        self.take_displaced().into()
    }

    /// Takes a run out if it is still in its place and this holds of it. No request can come in between: who asks for the run
    /// waits for the lock, and then for the end of this.
    fn close_where(&self, run: Arc<Run>, holds: impl FnOnce(&Arc<Run>) -> bool) -> Option<ClosingRun> {
        let mut places = self.write_places();
        let place = places.get_mut(&run.id)?;
        if !place.run().is_some_and(|own| Arc::ptr_eq(own, &run)) || !holds(&run) {
            return None;
        }
        let (closed, closing) = watch::channel(());
        *place = RunPlace::Closing(closing);
        Some(ClosingRun { run, closed })
    }

    /// Puts a run down that was taken out for that: what is recorded is safe, its files are closed, and it is not sealed.
    /// Waits for the disk. Gives which it was.
    ///
    /// # Errors
    /// The recording has failed before, or does so now. Even then its files are closed.
    pub fn put_down(&self, closing: ClosingRun) -> Result<EndedRun, RecordingError> {
        let ClosingRun { run, closed } = closing;
        let put_down = run.recorder.put_down();
        let left =
            EndedRun { id: run.id.clone(), dir: run.dir().to_owned(), steps: run.steps(), planned: run.plan.is_some() };
        // Its memory before somebody makes it anew.
        drop(run);
        let mut places = self.write_places();
        drop(closed);
        if places.get(&left.id).is_some_and(RunPlace::is_vacant) {
            places.remove(&left.id);
        }
        drop(places);
        put_down.map(|()| left)
    }
}
