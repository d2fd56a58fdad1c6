//! A run whose recording has failed for want of room goes on by itself once there is some, as after a restart.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::OnceCell, task::spawn_blocking};

use super::{RunPlace, Runs, place::RunCell};
use crate::{
    proxy::{error::ProxyError, run::Run, setup::RunSetup},
    recording,
    trajectory::RunId,
};

/// How long a full disk is left alone before it is tried again.
const ROOM_PACE: Duration = Duration::from_millis(250);

impl Runs {
    /// As [`Runs::get`]. On a disk that is full the call waits so long for room: a program whose SDK would try again twice, in a few
    /// seconds, does not end because somebody has to clear a disk.
    ///
    /// # Errors
    /// As [`Runs::get`].
    pub(in crate::proxy) async fn get_with_room(
        self: &Arc<Self>,
        id: &RunId,
        longest: Duration,
    ) -> Result<Arc<Run>, ProxyError> {
        let until = Instant::now() + longest;
        loop {
            match self.get(id).await {
                Err(ProxyError::Recording(error)) if error.is_lack_of_room() && Instant::now() < until => {
                    tokio::time::sleep(ROOM_PACE).await;
                }
                opened => return opened,
            }
        }
    }

    /// The run that takes the place of one whose recording has failed, if there is room by now. Exchanges that are under way in the
    /// failed one end as not recorded.
    ///
    /// # Errors
    /// There is no room: the failed one keeps its place, and the next request looks again.
    pub(super) async fn go_on(
        self: &Arc<Self>,
        cell: &Arc<RunCell>,
        failed: &Arc<Run>,
    ) -> Result<Arc<Run>, ProxyError> {
        let (runs, cell, failed) = (Arc::clone(self), Arc::clone(cell), Arc::clone(failed));
        // In a task of its own: whoever asked may leave.
        let going_on = tokio::spawn(async move {
            let _alone = failed.resuming.lock().await;
            if !runs.is_place_of(&failed.id, &cell) {
                // Somebody was quicker, or it was taken out.
                return runs.find(&failed.id).ok_or_else(|| ProxyError::Sealed(failed.id.clone()));
            }
            let (resuming, stopped) = (Arc::clone(&runs), Arc::clone(&failed));
            let resumed =
                spawn_blocking(move || resuming.resume(&stopped)).await.map_err(|_| ProxyError::Internal)??;
            let mut places = runs.write_places();
            match places.get_mut(&failed.id).filter(|place| place.is(&cell)) {
                Some(place) => *place = RunPlace::Open(Arc::new(OnceCell::new_with(Some(Arc::clone(&resumed))))),
                None => return Err(ProxyError::Sealed(failed.id.clone())),
            }
            drop(places);
            tracing::warn!(run = %failed.id, "there is room again: the recording goes on");
            Ok(resumed)
        });
        going_on.await.unwrap_or(Err(ProxyError::Internal))
    }

    fn resume(&self, failed: &Run) -> Result<Arc<Run>, ProxyError> {
        recording::check_room(&self.template.log_dir)?;
        failed.recorder.let_go();
        let setup = RunSetup {
            plan: failed.plan.clone(),
            upstream: failed.upstream.clone(),
            asking: failed.asking.clone(),
            watch: self.watch.clone(),
            ..RunSetup::default()
        };
        let resumed = self.create_here(failed.id.clone(), setup)?;
        if failed.is_named() {
            resumed.named();
        }
        Ok(resumed)
    }
}
