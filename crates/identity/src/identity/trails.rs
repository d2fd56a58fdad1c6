//! The ways of the runs that requests without a name are placed in: bounded, and the one used longest ago is forgotten.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{RunSource, fingerprint::Mark, placed::RequestBeginning, recent::Recent};
use crate::trajectory::RunId;

/// Runs that are remembered.
pub(super) const RUNS_MAX: usize = 1024;
/// Different questions and bodies that are remembered of one run.
const ASKED_MAX: usize = 4096;
/// Unanswered tool calls that are remembered of one run.
const WAITING_MAX: usize = 256;

/// Runs that wait and are looked at, latest first, when a tool call is named.
const WAITING_LOOKED_AT: usize = 16;

/// A run's way so far.
#[derive(Debug)]
pub(super) struct Trail {
    /// What its first request begins with.
    pub(super) begun: Option<Arc<RequestBeginning>>,
    /// When it began: no other run did at this time.
    pub(super) began: u64,
    /// When a request of the run was last placed or ended.
    used: u64,
    /// How often each body was sent.
    pub(super) bodies: Recent<u128, u32>,
    /// The looks of who asked first.
    pub(super) opener: u32,
    /// What was asked first.
    pub(super) question: Mark,
    /// How often each question was asked.
    pub(super) questions: Recent<Mark, u32>,
    /// Whether anybody has gone on from an answer of the run.
    pub(super) advanced: bool,
    /// Tool calls that nobody has answered yet.
    awaited: Vec<Mark>,
}

impl Trail {
    /// A run that begins.
    pub(super) fn new(begun: Option<Arc<RequestBeginning>>, began: u64, opener: u32, question: Mark) -> Self {
        Self {
            begun,
            began,
            used: began,
            bodies: Recent::new(ASKED_MAX),
            opener,
            question,
            questions: Recent::new(ASKED_MAX),
            advanced: false,
            awaited: Vec::new(),
        }
    }

    /// A request of the run asks this. Gives how often the opening question was asked, where an answer is gone on from for
    /// the first time.
    pub(super) fn enter(&mut self, source: RunSource, question: Mark, body: u128) -> Option<u32> {
        if source != RunSource::Retry {
            *self.questions.entry(question, u32::default) += 1;
            *self.bodies.entry(body, u32::default) += 1;
        }
        let goes_on = matches!(source, RunSource::Ids | RunSource::Quotes);
        let first = goes_on && !std::mem::replace(&mut self.advanced, true);
        first.then(|| self.questions.get(&self.question).copied().unwrap_or(1))
    }
}

/// The ways of the runs, found by run, by age and by use without looking at all of them.
#[derive(Debug, Default)]
pub(super) struct Trails {
    by_run: HashMap<RunId, Trail>,
    /// By when they began.
    by_age: BTreeMap<u64, RunId>,
    /// When they were last used, and when they began.
    by_use: BTreeSet<(u64, u64)>,
    /// When those began that wait for the result of a tool.
    waiting: BTreeSet<u64>,
}

impl Trails {
    pub(super) fn len(&self) -> usize {
        self.by_run.len()
    }

    pub(super) fn contains(&self, run: &RunId) -> bool {
        self.by_run.contains_key(run)
    }

    pub(super) fn get(&self, run: &RunId) -> Option<&Trail> {
        self.by_run.get(run)
    }

    /// The runs that began last, latest first.
    pub(super) fn latest(&self) -> impl Iterator<Item = (&RunId, &Trail)> {
        self.by_age.values().rev().filter_map(|run| Some((run, self.by_run.get(run)?)))
    }

    /// The one run that waits for the result of a tool; none where several do, or where another was used after it: then
    /// somebody else has been at work since.
    pub(super) fn only_waiting(&self) -> Option<&RunId> {
        let mut waiting = self.waiting.iter();
        let one = waiting.next().filter(|_| waiting.next().is_none())?;
        let last_used = self.by_use.last().is_some_and(|(_, began)| began == one);
        self.by_age.get(one).filter(|_| last_used)
    }

    /// Whether requests that look like this have opened a run.
    pub(super) fn are_opened_by(&self, looks: u32) -> bool {
        self.by_run.values().any(|trail| trail.opener == looks)
    }

    /// Takes in a run that begins.
    pub(super) fn begin(&mut self, run: &RunId, trail: Trail) {
        self.by_age.insert(trail.began, run.clone());
        self.by_use.insert((trail.used, trail.began));
        self.by_run.insert(run.clone(), trail);
    }

    /// The run is used now.
    pub(super) fn used(&mut self, run: &RunId, now: u64) -> Option<&mut Trail> {
        let trail = self.by_run.get_mut(run)?;
        self.by_use.remove(&(trail.used, trail.began));
        trail.used = now;
        self.by_use.insert((now, trail.began));
        Some(trail)
    }

    /// The run waits for the result of a tool call.
    pub(super) fn await_result(&mut self, run: &RunId, call: Option<Mark>) {
        let (Some(trail), Some(call)) = (self.by_run.get_mut(run), call) else { return };
        trail.awaited.push(call);
        if trail.awaited.len() > WAITING_MAX {
            trail.awaited.remove(0);
        }
        self.waiting.insert(trail.began);
    }

    /// Somebody names these tool calls: the run that he is placed in, and others whose calls have the same ids, as equal
    /// runs of a model that repeats itself do, wait for them no more.
    pub(super) fn answered(&mut self, run: &RunId, calls: &[Mark]) {
        if calls.is_empty() || self.waiting.is_empty() {
            return;
        }
        let latest = self.waiting.iter().rev().take(WAITING_LOOKED_AT).filter_map(|began| self.by_age.get(began));
        let runs: Vec<RunId> = [run].into_iter().chain(latest).cloned().collect();
        for run in runs {
            let Some(trail) = self.by_run.get_mut(&run) else { continue };
            trail.awaited.retain(|call| !calls.contains(call));
            if trail.awaited.is_empty() {
                self.waiting.remove(&trail.began);
            }
        }
    }

    /// Somebody has gone on in the run: it waits for nothing more.
    pub(super) fn await_nothing(&mut self, run: &RunId) {
        if let Some(trail) = self.by_run.get_mut(run) {
            trail.awaited.clear();
            self.waiting.remove(&trail.began);
        }
    }

    /// Where there is no room for another run, forgets the one that was used longest ago.
    pub(super) fn make_room(&mut self) -> Option<RunId> {
        if self.by_run.len() < RUNS_MAX {
            return None;
        }
        let (_, began) = self.by_use.first()?;
        let oldest = self.by_age.get(began)?.clone();
        self.forget(&oldest);
        Some(oldest)
    }

    /// Forgets a run.
    pub(super) fn forget(&mut self, run: &RunId) {
        if let Some(trail) = self.by_run.remove(run) {
            self.by_age.remove(&trail.began);
            self.by_use.remove(&(trail.used, trail.began));
            self.waiting.remove(&trail.began);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u64) -> RunId {
        RunId::parse(&format!("r-{number}")).expect("an id")
    }

    /// So many runs, begun one after the other.
    fn begun(many: u64) -> Trails {
        let mut trails = Trails::default();
        for began in 0..many {
            trails.begin(&run(began), Trail::new(None, began, 0, 0));
        }
        trails
    }

    #[test]
    fn the_run_used_longest_ago_makes_room() {
        let mut trails = begun(RUNS_MAX as u64);
        trails.used(&run(0), 5000).expect("it is known");
        trails.forget(&run(1));
        assert_eq!(trails.make_room(), None, "there is room again");
        trails.begin(&run(9999), Trail::new(None, 6000, 0, 0));
        assert_eq!(trails.make_room(), Some(run(2)));
        assert_eq!(trails.latest().next().map(|(run, _)| run.clone()), Some(run(9999)));
        assert!(trails.contains(&run(0)) && !trails.contains(&run(2)));
        for known in [0, 9999].into_iter().chain(3..RUNS_MAX as u64).map(run) {
            trails.forget(&known);
        }
        let held = (trails.by_run.len(), trails.by_age.len(), trails.by_use.len(), trails.waiting.len());
        assert_eq!(held, (0, 0, 0, 0), "nothing stays of what is forgotten");
    }

    #[test]
    fn one_run_that_waits_is_known_until_somebody_goes_on() {
        let mut trails = begun(3);
        assert_eq!(trails.only_waiting(), None);
        trails.await_result(&run(1), None);
        assert_eq!(trails.only_waiting(), None, "a call without an id cannot be answered");
        trails.await_result(&run(1), Some(7));
        assert_eq!(trails.only_waiting(), None, "run 2 is at work");
        trails.used(&run(1), 10).expect("it is known");
        assert_eq!(trails.only_waiting(), Some(&run(1)));
        trails.await_result(&run(2), Some(7));
        trails.await_result(&run(2), Some(8));
        assert_eq!(trails.only_waiting(), None, "either could be meant");
        trails.answered(&run(0), &[7]);
        assert_eq!(trails.only_waiting(), None, "the other was used last");
        trails.used(&run(2), 11).expect("it is known");
        assert_eq!(trails.only_waiting(), Some(&run(2)));
        trails.forget(&run(2));
        assert_eq!(trails.only_waiting(), None);
    }
}
