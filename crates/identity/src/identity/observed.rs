//! Recorded runs as identity hears them, and what a roster or a whole run says of their steps.

use std::collections::{BTreeSet, HashSet};

use super::{
    RequestLooks, Roster, Speakers,
    fingerprint::{Mark, mark_sentences},
    votes::ObservedStep,
};
use crate::trajectory::{AgentName, Attribution};

/// The steps of one run, in order.
#[derive(Debug, Clone, Default)]
pub struct ObservedRun<'a> {
    /// What was heard.
    pub steps: Vec<ObservedStep<'a>>,
    /// The record's word on each step.
    pub recorded: Vec<&'a Attribution>,
}

impl ObservedRun<'_> {
    /// Sentences of the run's first user text.
    pub(super) fn opening(&self) -> HashSet<Mark> {
        let mut marks = Vec::new();
        let first = self.steps.first().and_then(|step| step.outline.first_user());
        mark_sentences(&first.unwrap_or_default(), &mut marks);
        marks.into_iter().collect()
    }

    /// What each step looks like.
    pub(super) fn all_looks(&self) -> impl Iterator<Item = RequestLooks> {
        let opening = self.opening();
        self.steps.iter().map(move |step| RequestLooks::read(&step.outline, &opening))
    }
}

/// What each step looks like, as a roster's `looks` takes it.
pub fn looks(run: &ObservedRun<'_>) -> Vec<AgentName> {
    run.all_looks().map(|looks| AgentName::unnamed(looks.key)).collect()
}

/// What a roster would say of each step: the agent and whether rules contradict each other; `None` where no rule fits.
pub fn try_roster(run: &ObservedRun<'_>, roster: &Roster) -> Vec<Option<Attribution>> {
    run.steps.iter().zip(run.all_looks()).map(|(step, looks)| roster.identify(&step.outline, looks.key)).collect()
}

/// The rules, counted from 1, that fit at least one step of a run.
pub fn fitting_rules(run: &ObservedRun<'_>, roster: &Roster) -> BTreeSet<usize> {
    run.steps.iter().zip(run.all_looks()).flat_map(|(step, looks)| roster.fitting(&step.outline, looks.key)).collect()
}

/// Names of a run that nobody declared and under which several agents turned out to speak.
pub fn contested(run: &ObservedRun<'_>) -> BTreeSet<AgentName> {
    let mut speakers = Speakers::default();
    for (step, told) in run.steps.iter().zip(&run.recorded) {
        speakers.recall(&step.outline, told, step.reply.as_ref());
    }
    speakers.contested().cloned().collect()
}
