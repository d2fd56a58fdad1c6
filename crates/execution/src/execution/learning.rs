//! What executions show to be equal to the record that they begin like.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::{ExecutedRun, ExecutionArm, ReplySource};
use crate::{
    equality::EqualitySetting,
    recording::RecordingError,
    replay::{Cassette, rules_after_departure},
};

/// The record that a system's executions begin like, as it is compared with them. One that leaves it before anything is planted, by a
/// value alone that differs from run to run, shows that this value is equal.
#[derive(Default)]
pub struct LearningReference {
    /// Whether the user says how far results of tools may differ: then executions teach nothing of them.
    tool_results_given: bool,
    /// Is given what was learned each time that there is more, in words.
    learned: Option<fn(&[String])>,
    /// The record, as executions showed it is to be compared.
    shown: Mutex<Option<Arc<Cassette>>>,
    /// All that was learned, in words.
    words: Mutex<Vec<String>>,
}

impl LearningReference {
    /// Nothing is learned yet. With `tool_results_given` the user says how far results of tools may differ. `learned` is given what is
    /// learned, in words.
    pub fn new(tool_results_given: bool, learned: Option<fn(&[String])>) -> Self {
        Self { tool_results_given, learned, shown: Mutex::default(), words: Mutex::default() }
    }

    /// An arm that begins like the record as it is compared by now.
    pub(super) fn compared(&self, arm: &ExecutionArm) -> ExecutionArm {
        let mut arm = arm.clone();
        if let ReplySource::Forked(fork) = &mut arm.replies {
            fork.cassette = self.current(&fork.cassette);
        }
        arm
    }

    /// Whether an execution left the record in what only differs from run to run: by now it would not.
    ///
    /// # Errors
    /// The record cannot be read again.
    pub(super) fn learns_from(&self, arm: &ExecutionArm, executed: &ExecutedRun) -> Result<bool, RecordingError> {
        let departure = executed.replay.as_ref().and_then(|report| report.diverged.as_ref());
        let (Some(departure), ReplySource::Forked(fork)) = (departure, &arm.replies) else { return Ok(false) };
        let former = &fork.cassette;
        let learns_results = !self.tool_results_given;
        let shown =
            rules_after_departure(former.recording(), &executed.recording, departure, former.rules(), learns_results);
        loop {
            let known = self.current(former);
            let rules = known.rules().joined_with(&shown);
            let setting = rules.setting();
            if setting != known.rules().setting() {
                let learned = Arc::new(Cassette::open(former.dir())?.with_rules(rules));
                if !self.replace(former, &known, learned) {
                    // Another execution taught something meanwhile: both count.
                    continue;
                }
                self.say(&setting, &known.rules().setting());
            }
            return Ok(setting != former.rules().setting());
        }
    }

    /// Puts what was learned in the place of what was known, unless that has changed since.
    fn replace(&self, given: &Arc<Cassette>, known: &Arc<Cassette>, learned: Arc<Cassette>) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = Arc::ptr_eq(current_of(shown.as_ref(), given), known);
        if is_known {
            *shown = Some(learned);
        }
        is_known
    }

    fn current(&self, given: &Arc<Cassette>) -> Arc<Cassette> {
        Arc::clone(current_of(self.shown.lock().unwrap_or_else(PoisonError::into_inner).as_ref(), given))
    }

    /// All that executions showed to be equal so far, in words.
    pub fn words(&self) -> Vec<String> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn say(&self, setting: &EqualitySetting, before: &EqualitySetting) {
        let more = setting.learned_beyond(before);
        if let Some(learned) = self.learned {
            learned(&more);
        }
        self.words.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
    }
}

/// What was shown of a record, else the record as it was given.
fn current_of<'a>(shown: Option<&'a Arc<Cassette>>, given: &'a Arc<Cassette>) -> &'a Arc<Cassette> {
    shown.filter(|shown| shown.dir() == given.dir()).unwrap_or(given)
}

impl fmt::Debug for LearningReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LearningReference").field("shown", &self.shown).finish_non_exhaustive()
    }
}
