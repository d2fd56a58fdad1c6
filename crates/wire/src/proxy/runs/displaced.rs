//! Runs that lineage has forgotten: they end, beside the traffic.

use std::{collections::VecDeque, sync::Arc};

use super::Runs;
use crate::{
    proxy::{lock::locked, run::Run},
    trajectory::RunId,
};

/// Runs that lineage has forgotten and that are sealed at once. Each holds descriptors until it is: whoever displaces one
/// more than this opens its own run when one of them is sealed.
pub(super) const SEALED_AT_ONCE: usize = 16;

/// Runs that lineage has forgotten.
#[derive(Debug, Default)]
pub(super) struct ForgottenRuns {
    /// With an exchange under way when they were forgotten.
    busy: Vec<RunId>,
    /// Taken out, to be sealed by whoever opens a run next.
    retired: VecDeque<Arc<Run>>,
}

impl Runs {
    /// Takes out a run that lineage has forgotten: no request is placed there any more. One that has an exchange under way
    /// is taken out when the next one is forgotten after that.
    ///
    /// Each run holds descriptors, so runs must not be opened faster than they end. To be called by whoever opens a run in
    /// its place, before it does: the thread that opens that run [ends](Runs::seal_displaced) this one, beside the traffic.
    /// Only that opening waits, and only where [`SEALED_AT_ONCE`] others are being sealed.
    pub(in crate::proxy) async fn displace(&self, id: RunId) {
        self.retire_quiet(id);
        drop(self.sealers.acquire().await);
    }

    /// Seals the runs that were displaced. Waits for the disk.
    pub(super) fn seal_displaced(&self) {
        // Where there is no place, somebody is at it who looks for more.
        while let Ok(place) = self.sealers.try_acquire() {
            let Some(run) = locked(&self.displaced).retired.pop_front() else { return };
            if let Err(error) = self.seal(&run) {
                tracing::error!(run = %run.id, %error, "cannot seal");
            }
            // Its descriptors first.
            drop(run);
            drop(place);
        }
    }

    /// Takes out a displaced run, and those that were displaced before it, as soon as no exchange is under way in them.
    pub(super) fn retire_quiet(&self, id: RunId) {
        let mut displaced = locked(&self.displaced);
        let mut ids = std::mem::take(&mut displaced.busy);
        ids.push(id);
        for id in ids {
            match self.find(&id) {
                Some(run) if self.retire_where(&run, |run| run.is_quiet()) => displaced.retired.push_back(run),
                Some(_) => displaced.busy.push(id),
                None => {}
            }
        }
    }

    pub(super) fn take_displaced(&self) -> VecDeque<Arc<Run>> {
        std::mem::take(&mut locked(&self.displaced).retired)
    }
}
