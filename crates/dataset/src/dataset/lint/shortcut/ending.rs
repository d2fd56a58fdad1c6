//! Logs that end where the error is, though the clean run goes on: then the last step is the answer.

use std::collections::BTreeSet;

use crate::{dataset::statistics::TwinPair, trajectory::Interval};

/// The share of failures from which on that tells.
const TELLS: f64 = 0.8;

/// Failures whose twins go on behind the labelled step, and those of them that end there.
#[derive(Default)]
pub(super) struct LogEnds {
    goes_on: BTreeSet<String>,
    ends: BTreeSet<String>,
    tasks: BTreeSet<String>,
}

impl LogEnds {
    pub(super) fn add(&mut self, pair: &TwinPair<'_>) {
        let follows = |steps: &[crate::dataset::SampleStep], at: u32| steps.iter().any(|step| step.step > at);
        if !follows(&pair.twin.steps, pair.other.step) {
            return;
        }
        self.goes_on.insert(pair.failure.id.clone());
        if !follows(&pair.failure.steps, pair.step.step) {
            self.ends.insert(pair.failure.id.clone());
            self.tasks.insert(pair.failure.task.id.clone());
        }
    }

    /// In words, where most end there.
    pub(super) fn finding(&self) -> Option<String> {
        let count = |ids: &BTreeSet<String>| f64::from(u32::try_from(ids.len()).unwrap_or(u32::MAX));
        let (ends, of, tasks) = (count(&self.ends), count(&self.goes_on), count(&self.tasks));
        let share = ends / of.max(1.0);
        let sure = Interval::wilson(share * tasks, tasks).low > 0.5;
        (share >= TELLS && sure).then(|| {
            format!("{ends:.0} of {of:.0} failures end at the labelled step, and their clean twins go on behind it")
        })
    }
}
