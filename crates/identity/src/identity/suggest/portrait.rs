//! What an agent's calls have in common: one portrait a name and, where a name stands for several, a prompt.

use std::collections::{BTreeMap, BTreeSet};

use super::called::{self, CalledAgent};
use crate::{
    identity::{ObservedRun, ObservedStep, RequestLooks, fingerprint::mark_sentences, helper_role, observed},
    trajectory::{AgentName, Attribution, Source},
};

/// What one agent's requests have in common.
#[derive(Debug)]
pub(super) struct Portrait<'a> {
    /// The name on the record; for one of several of that name, its looks'.
    pub(super) agent: AgentName,
    /// The name that it shares with others.
    pub(super) shared: Option<AgentName>,
    /// What its user text calls it, where the looks are several agents'.
    pub(super) called: Option<CalledAgent>,
    /// Which of those.
    number: usize,
    /// Run and step of each call.
    pub(super) places: Vec<(usize, usize)>,
    pub(super) steps: Vec<&'a ObservedStep<'a>>,
    pub(super) keys: BTreeSet<u32>,
    pub(super) looks: RequestLooks,
    pub(super) source: Source,
    /// Whether a roster named it that is not at hand, so that its rule is to be found anew, under its name.
    pub(super) renewed: bool,
    pub(super) evidence: &'a str,
    pub(super) ambiguous: usize,
    pub(super) instances: u32,
    pub(super) models: BTreeSet<String>,
    pub(super) schemas: BTreeSet<String>,
}

impl Portrait<'_> {
    /// Whether only a rule can name it.
    pub(super) fn needs_rule(&self) -> bool {
        let learned =
            matches!(self.source, Source::Fingerprint | Source::Frame | Source::Continuation | Source::Fallback);
        (learned || self.renewed || self.shared.is_some()) && helper_role(&self.agent).is_none()
    }

    /// What it is called as long as nobody has named it.
    pub(super) fn id(&self) -> String {
        if self.called.is_some() { format!("{}.{}", self.agent, self.number) } else { self.agent.to_string() }
    }

    /// The agent whose proposed name is its own.
    pub(super) fn proposed_as(&self) -> Option<&AgentName> {
        let unnamed = self.agent.hash_of_unnamed().is_some();
        Some(&self.agent).filter(|_| unnamed && self.shared.is_none() && self.called.is_none())
    }

    /// The runs in which it speaks.
    pub(super) fn runs(&self) -> BTreeSet<usize> {
        self.places.iter().map(|(run, _)| *run).collect()
    }

    /// What it is told, in each call: its prompt, or without one its first user text; each text once.
    pub(super) fn texts(&self) -> Vec<String> {
        self.texts_but(None)
    }

    /// The same of all runs but one.
    pub(super) fn texts_but(&self, left_out: Option<usize>) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        let steps = self.places.iter().zip(&self.steps).filter(|((run, _), _)| Some(*run) != left_out);
        for (_, step) in steps {
            let text = instruction_text(step, self.looks.prompted);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }
}

/// What a step's agent is told.
pub(super) fn instruction_text(step: &ObservedStep<'_>, prompted: bool) -> String {
    if prompted {
        step.outline.prompt().into_owned()
    } else {
        step.outline.first_user().unwrap_or_default().into_owned()
    }
}

type PortraitKey = (AgentName, Option<CalledAgent>);

/// The agents of all runs.
pub(super) fn portraits<'a>(runs: &'a [ObservedRun<'a>]) -> Vec<Portrait<'a>> {
    let mut portraits: BTreeMap<PortraitKey, Portrait<'a>> = BTreeMap::new();
    let lasting = called::lasting(runs);
    for (number, run) in runs.iter().enumerate() {
        let contested = observed::contested(run);
        for (at, ((step, told), looks)) in run.steps.iter().zip(&run.recorded).zip(run.all_looks()).enumerate() {
            let shared = (told.source == Source::Dialect && contested.contains(step.agent)).then(|| step.agent.clone());
            let called =
                CalledAgent::read(step).filter(|called| lasting.contains(called) && may_be_called(told, &looks));
            let agent = match &called {
                _ if shared.is_some() => AgentName::unnamed(looks.key),
                // Without a prompt each user text has looks of its own: what it calls the agent is what stays.
                Some(called) if looks.framed => AgentName::unnamed(looks_of(&called.text)),
                _ => step.agent.clone(),
            };
            let portrait = portraits.entry((agent.clone(), called.clone())).or_insert_with(|| Portrait {
                agent,
                shared,
                called,
                number: 0,
                places: Vec::new(),
                steps: Vec::new(),
                keys: BTreeSet::new(),
                looks: looks.clone(),
                source: told.source,
                renewed: false,
                evidence: &told.evidence,
                ambiguous: 0,
                instances: 0,
                models: BTreeSet::new(),
                schemas: BTreeSet::new(),
            });
            portrait.places.push((number, at));
            portrait.steps.push(step);
            portrait.keys.insert(looks.key);
            portrait.ambiguous += usize::from(told.ambiguous);
            portrait.instances = portrait.instances.max(told.instance + 1);
            let outline = &step.outline;
            let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            portrait.models.extend(some(&outline.model));
            portrait.schemas.extend(some(&outline.format));
        }
    }
    split_by_name(portraits)
}

/// Where user texts call an agent several things, each is a portrait; where all call it one, that says nothing.
fn split_by_name(portraits: BTreeMap<PortraitKey, Portrait<'_>>) -> Vec<Portrait<'_>> {
    let mut all: Vec<Portrait<'_>> = Vec::new();
    for (_, mut portrait) in portraits {
        let same = |other: &&mut Portrait<'_>| other.agent == portrait.agent;
        let before = all.iter().filter(|other| other.agent == portrait.agent).count();
        match all.iter_mut().rev().find(same) {
            Some(other) if portrait.called.is_some() && other.called.is_some() => {
                portrait.number = before;
                all.push(portrait);
            }
            // Calls that say nothing are whose they were.
            Some(other) if other.called.is_none() && before == 1 && portrait.called.is_none() => other.take(portrait),
            _ => all.push(portrait),
        }
    }
    let agents: Vec<AgentName> = all.iter().map(|portrait| portrait.agent.clone()).collect();
    for portrait in &mut all {
        if agents.iter().filter(|agent| **agent == portrait.agent).count() == 1 {
            portrait.called = None;
        }
    }
    all
}

impl<'a> Portrait<'a> {
    fn take(&mut self, other: Portrait<'a>) {
        self.places.extend(other.places);
        self.steps.extend(other.steps);
        self.keys.extend(other.keys);
        self.ambiguous += other.ambiguous;
        self.instances = self.instances.max(other.instances);
        self.models.extend(other.models);
        self.schemas.extend(other.schemas);
    }
}

/// Whether user texts may name an agent: where neither the user nor the wire does, and a prompt is shared or missing.
fn may_be_called(told: &Attribution, looks: &RequestLooks) -> bool {
    match told.source {
        Source::Fingerprint => looks.prompted,
        Source::Frame | Source::Continuation => looks.framed,
        _ => false,
    }
}

/// A key of looks for what a user text calls an agent.
fn looks_of(called: &str) -> u32 {
    let mut marks = Vec::new();
    mark_sentences(called, &mut marks);
    // The lower half is as good a key as the whole.
    marks.first().map_or(0, |mark| u32::try_from(mark & u64::from(u32::MAX)).unwrap_or_default())
}
