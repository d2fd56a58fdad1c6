//! The late pass: when runs end, all their traffic is known, and identity is worked out once more. It never moves a
//! record; it says where it differs from what was said on arrival.
//!
//! Requests that quote an answer are of its run. What that leaves apart is joined by the opening question, unless both
//! parts went on from the same question: then they are two runs of one task. Agents are named anew within those runs
//! ([`late_names`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{
    RunSource,
    exchanges::{Exchange, Exchanges},
    fingerprint::Mark,
    instances::{InstanceEvidence, Instances},
    late_names,
    voices::Voices,
    votes::is_helper,
};
use crate::trajectory::{AgentName, RunId, Source, StepIndex};

/// Where the late pass sees a step otherwise than its record does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LateStep {
    /// Step of the run that recorded it.
    pub step: StepIndex,
    /// The run that it belongs to, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The agent, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The instance, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<u32>,
    /// Whether the wire cannot tell, where the record says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambiguous: Option<bool>,
    /// Whether the call overlapped another of its agent in the run whose beginning was given again. No late pass says so, but
    /// whoever executed the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlapping_in_reference: bool,
}

impl LateStep {
    /// A step of which only this is known: its call overlapped another of its agent in the reference.
    pub fn overlapping_in_reference(step: StepIndex) -> Self {
        Self { step, overlapping_in_reference: true, ..Self::default() }
    }
}

/// The late verdict on all that is known, by the run that recorded it; runs without a difference are left out.
pub(super) fn look_again(known: &Exchanges) -> BTreeMap<RunId, Vec<LateStep>> {
    let exchanges: Vec<&Exchange> = known.iter().collect();
    let runs = LateRuns::new(known, &exchanges);
    let agents = agents(known, &exchanges, &runs);
    let mut late: BTreeMap<RunId, Vec<LateStep>> = BTreeMap::new();
    for ((exchange, group), (agent, instance, ambiguous)) in exchanges.iter().zip(&runs.group).zip(agents) {
        let Some(told) = exchange.attribution.as_ref().filter(|_| exchange.attempt == 0) else { continue };
        let run = runs.names.get(group).filter(|run| **run != exchange.run).cloned();
        let step = LateStep {
            step: exchange.step,
            run,
            agent: (agent != told.agent).then_some(agent),
            instance: (instance != told.instance).then_some(instance),
            ambiguous: (ambiguous != told.ambiguous).then_some(ambiguous),
            overlapping_in_reference: false,
        };
        if step != (LateStep { step: exchange.step, ..LateStep::default() }) {
            late.entry(exchange.run.clone()).or_default().push(step);
        }
    }
    late
}

/// The runs as they are seen late: the group of each exchange, and its name.
struct LateRuns {
    group: Vec<usize>,
    names: HashMap<usize, RunId>,
}

impl LateRuns {
    fn new(known: &Exchanges, exchanges: &[&Exchange]) -> Self {
        let mut groups = Groups((0..exchanges.len()).collect());
        let mut failed: HashMap<u128, usize> = HashMap::new();
        let mut linked = vec![false; exchanges.len()];
        for (at, exchange) in exchanges.iter().enumerate() {
            let quoted = exchange.quotes.iter().filter_map(|quoted| known.place(*quoted));
            let retried = failed.get(&exchange.body).copied().filter(|_| exchange.source == RunSource::Retry);
            for other in quoted.chain(retried) {
                groups.join(at, other);
                for end in [at, other] {
                    if let Some(linked) = linked.get_mut(end) {
                        *linked = true;
                    }
                }
            }
            if exchange.failed {
                failed.insert(exchange.body, at);
            }
        }
        join_openings(exchanges, &linked, &mut groups);
        let group: Vec<usize> = (0..exchanges.len()).map(|at| groups.root(at)).collect();
        let names = name(exchanges, &group);
        Self { group, names }
    }
}

/// Joins what no quote links: by the opening question, and by where it was placed on arrival.
fn join_openings(exchanges: &[&Exchange], linked: &[bool], groups: &mut Groups) {
    let heads = join_parts(exchanges, linked, groups);
    join_single(exchanges, linked, &heads, groups);
    // What is still alone stays with the run where it was placed.
    let mut first: HashMap<&RunId, usize> = HashMap::new();
    for (at, exchange) in exchanges.iter().enumerate() {
        let earlier = *first.entry(&exchange.run).or_insert(at);
        let alone = !linked.get(at).copied().unwrap_or(true) && !linked.get(earlier).copied().unwrap_or(true);
        if alone && exchange.source != RunSource::New {
            groups.join(at, earlier);
        }
    }
}

/// Joins the parts that went on, except two from the same question: those are two runs. Gives their first exchanges.
fn join_parts(exchanges: &[&Exchange], linked: &[bool], groups: &mut Groups) -> Vec<usize> {
    let mut opened: HashMap<&RunId, Vec<usize>> = HashMap::new();
    let mut heads: Vec<usize> = Vec::new();
    let mut seen = HashSet::new();
    for at in 0..exchanges.len() {
        let root = groups.root(at);
        if linked.get(at).copied().unwrap_or_default() && seen.insert(root) {
            heads.push(at);
        }
    }
    for head in &heads {
        let Some(exchange) = exchanges.get(*head) else { continue };
        let same_run = opened.entry(&exchange.run).or_default();
        let asked = |at: &usize| exchanges.get(*at).map(|other| other.request_mark);
        let repeats = same_run.iter().any(|other| asked(other) == Some(exchange.request_mark));
        if let (false, Some(first), true) = (repeats, same_run.first(), exchange.source != RunSource::New) {
            groups.join(*head, *first);
        } else {
            same_run.push(*head);
        }
    }
    heads
}

/// Joins single exchanges to a part with their opening that lacks their body, the one that began first.
fn join_single(exchanges: &[&Exchange], linked: &[bool], heads: &[usize], groups: &mut Groups) {
    let opening = |exchange: &Exchange| exchange.begun.as_ref().map(|begun| begun.mark);
    let mut with_opening: HashMap<Mark, Vec<usize>> = HashMap::new();
    let mut of_run: HashMap<&RunId, Vec<usize>> = HashMap::new();
    for (head, exchange) in heads.iter().filter_map(|head| Some((*head, exchanges.get(*head)?))) {
        of_run.entry(&exchange.run).or_default().push(head);
        if let Some(opening) = opening(exchange) {
            with_opening.entry(opening).or_default().push(head);
        }
    }
    let mut bodies: HashMap<(usize, u128), u32> = HashMap::new();
    for (at, exchange) in exchanges.iter().enumerate() {
        if linked.get(at).copied().unwrap_or_default() {
            *bodies.entry((groups.root(at), exchange.body)).or_default() += 1;
        }
    }
    for (at, exchange) in exchanges.iter().enumerate() {
        if linked.get(at).copied().unwrap_or(true) {
            continue;
        }
        let begins = exchange.source == RunSource::New;
        let alike = opening(exchange).filter(|_| !begins).and_then(|opening| with_opening.get(&opening));
        let Some(candidates) = alike.or_else(|| of_run.get(&exchange.run)) else { continue };
        let mut best: Option<(u32, usize)> = None;
        for head in candidates {
            let root = groups.root(*head);
            let has = bodies.get(&(root, exchange.body)).copied().unwrap_or_default();
            if best.is_none_or(|(least, _)| has < least) {
                best = Some((has, root));
            }
            if has == 0 {
                break;
            }
        }
        let Some((_, best)) = best else { continue };
        *bodies.entry((best, exchange.body)).or_default() += 1;
        groups.join(at, best);
    }
}

/// Gives each group the name of a run that it began, or a new one.
fn name(exchanges: &[&Exchange], group: &[usize]) -> HashMap<usize, RunId> {
    let mut names: HashMap<usize, RunId> = HashMap::new();
    let mut taken: HashSet<RunId> = HashSet::new();
    let firsts = |names: &mut HashMap<usize, RunId>, taken: &mut HashSet<RunId>, opened: bool| {
        for (exchange, group) in exchanges.iter().zip(group) {
            let begins = !opened || exchange.source == RunSource::New;
            if begins && !names.contains_key(group) && taken.insert(exchange.run.clone()) {
                names.insert(*group, exchange.run.clone());
            }
        }
    };
    firsts(&mut names, &mut taken, true);
    firsts(&mut names, &mut taken, false);
    for (exchange, group) in exchanges.iter().zip(group) {
        let of = || RunId::hashed("r", format!("{}/{}", exchange.run, exchange.step).as_bytes());
        names.entry(*group).or_insert_with(of);
    }
    names
}

/// Agent, instance and whether the wire cannot tell, of each exchange within its late run.
fn agents(known: &Exchanges, exchanges: &[&Exchange], runs: &LateRuns) -> Vec<(AgentName, u32, bool)> {
    let names = late_names::names(known, exchanges, &runs.group);
    let mut told: Vec<(AgentName, u32, bool)> = names.iter().map(|name| (name.clone(), 0, false)).collect();
    let mut numbers: HashMap<&AgentName, u32> = HashMap::new();
    for name in &names {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        numbers.entry(name).or_insert(next);
    }
    // Of agents that the user declared, those that were told to be several.
    let online = exchanges.iter().filter_map(|exchange| exchange.attribution.as_ref());
    let declared = online.filter(|told| told.source == Source::Roster && told.ambiguous);
    let several: HashSet<&AgentName> = declared.map(|told| &told.agent).collect();
    // Questions and ends, in the order in which they were seen.
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (at, exchange) in exchanges.iter().enumerate() {
        events.push((exchange.opened_at, true, at));
        events.push((exchange.closed_at, false, at));
    }
    events.sort_unstable();
    let mut instances: HashMap<usize, Instances> = HashMap::new();
    let mut contested: HashSet<(usize, &AgentName)> = HashSet::new();
    let mut voices: HashMap<usize, Voices> = HashMap::new();
    for (_, opens, at) in events {
        let (Some(exchange), Some(group), Some(name)) = (exchanges.get(at), runs.group.get(at), names.get(at)) else {
            continue;
        };
        let of_run = instances.entry(*group).or_default();
        let agent = numbers.get(name).copied().unwrap_or_default();
        if !opens {
            let instance = told.get(at).map_or(0, |told| told.1);
            of_run.end(agent, exchange.request_mark, instance, exchange.failed);
            continue;
        }
        let own = exchange.said.iter().filter_map(|said| known.place(*said));
        let own = own.filter(|said| names.get(*said) == Some(name)).find_map(|said| told.get(said).map(|told| told.1));
        let Some(place) = told.get_mut(at) else { continue };
        let online = exchange.attribution.as_ref();
        if online.is_none_or(|online| !splits(online.source) && !several.contains(&online.agent)) {
            (place.1, place.2) = online.map(|online| (online.instance, online.ambiguous)).unwrap_or_default();
            continue;
        }
        let is_retry = exchange.attempt > 0 || exchange.source == RunSource::Retry;
        let retried = of_run.earliest_failed(agent, exchange.request_mark).filter(|_| is_retry);
        let instance = of_run.ask(agent, exchange.request_mark, InstanceEvidence { own, retried, order: None });
        (place.1, place.2) = (instance.number, instance.ambiguous);
        let source = online.map(|online| online.source);
        let written = source == Some(Source::Dialect);
        let of_looks = written && !is_helper(name) || matches!(source, Some(Source::Fingerprint | Source::Frame));
        let heard = voices.entry(*group).or_default();
        if of_looks && heard.observe(agent, &exchange.looks, written, own.is_some()).is_some() {
            contested.insert((*group, name));
        }
    }
    // Who else spoke under the name is known only now: what came before is as doubtful.
    for ((place, name), group) in told.iter_mut().zip(&names).zip(&runs.group) {
        place.2 |= contested.contains(&(*group, name));
    }
    told
}

fn splits(source: Source) -> bool {
    matches!(source, Source::Dialect | Source::Fingerprint | Source::Continuation | Source::Frame | Source::Fallback)
}

/// Disjoint groups of positions.
struct Groups(Vec<usize>);

impl Groups {
    fn root(&mut self, mut at: usize) -> usize {
        while let Some(parent) = self.0.get(at).copied().filter(|parent| *parent != at) {
            let above = self.0.get(parent).copied().unwrap_or(parent);
            if let Some(place) = self.0.get_mut(at) {
                *place = above;
            }
            at = parent;
        }
        at
    }

    /// Joins two groups; the earlier root stays.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if let Some(place) = self.0.get_mut(a.max(b)) {
            *place = a.min(b);
        }
    }
}
