//! What agents are called late: user texts are compared over runs ([`templates`](super::templates)), tool sets of one
//! prompt too; what prompts told apart stays apart.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    exchanges::{Exchange, Exchanges},
    fingerprint::{Mark, RequestLooks, fold, frame},
    templates::AgentTemplates,
};
use crate::trajectory::{AgentName, RunId, Source};

/// The agent of each exchange: what was declared or written on the wire stands, and so does what prompts told apart;
/// what is known by a user text alone is worked out again.
pub(super) fn names(known: &Exchanges, exchanges: &[&Exchange], group: &[usize]) -> Vec<AgentName> {
    let learned = learned(exchanges, group);
    let templates = templates(exchanges, group, &learned);
    let apart = names_side_by_side(exchanges, group);
    let grown = grown(exchanges, &apart);
    let mut named: Vec<AgentName> = Vec::with_capacity(exchanges.len());
    // What those are called late who were called something on arrival, run by run.
    let mut renamed: HashMap<(&RunId, &AgentName), AgentName> = HashMap::new();
    for ((exchange, learned), group) in exchanges.iter().zip(&learned).zip(group) {
        let online = exchange.attribution.as_ref();
        let embeds = online.and_then(|told| told.agent.as_str().strip_suffix("/embedding"));
        let name = match online.map(|told| told.source) {
            _ if embeds.is_some() => embedding(exchange, &renamed),
            Some(Source::Frame) => templates.name(&exchange.looks).unwrap_or_else(|| learned.clone()),
            // Tools that changed in one history, or were taken away for a last word.
            Some(Source::Fingerprint) => match online {
                Some(told) if told.agent != *learned => {
                    let stands = || (!apart.contains(&(*group, &told.agent))).then(|| told.agent.clone());
                    let name = owner(known, exchange, &named).or_else(stands).unwrap_or_else(|| learned.clone());
                    grown.get(&exchange.looks.key).map_or(name, |key| AgentName::unnamed(*key))
                }
                _ => grown.get(&exchange.looks.key).map_or_else(|| learned.clone(), |key| AgentName::unnamed(*key)),
            },
            Some(Source::Continuation) => owner(known, exchange, &named).unwrap_or_else(|| learned.clone()),
            _ => online.map_or_else(|| learned.clone(), |told| told.agent.clone()),
        };
        if let Some(told) = online {
            renamed.insert((&exchange.run, &told.agent), name.clone());
        }
        named.push(name);
    }
    named
}

/// What each exchange is called by its looks within its late run.
fn learned(exchanges: &[&Exchange], group: &[usize]) -> Vec<AgentName> {
    let mut openings: HashMap<usize, HashSet<Mark>> = HashMap::new();
    let mut learned: Vec<AgentName> = Vec::with_capacity(exchanges.len());
    for (exchange, group) in exchanges.iter().zip(group) {
        let opening = openings
            .entry(*group)
            .or_insert_with(|| exchange.begun.iter().flat_map(|begun| begun.user.iter().copied()).collect());
        let looks = &exchange.looks;
        let framed = || AgentName::unnamed(fold(frame(looks.family, &looks.sentences, opening)));
        learned.push(if looks.framed && looks.whole { framed() } else { AgentName::unnamed(looks.key) });
    }
    learned
}

/// What stays of user texts without a prompt, run by run, so that what stays between runs is told from what lives side
/// by side in one. Prompts are never joined: what they share is as likely a house's boilerplate.
fn templates(exchanges: &[&Exchange], group: &[usize], learned: &[AgentName]) -> AgentTemplates {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut seen: Vec<Vec<(&RequestLooks, AgentName)>> = Vec::new();
    for ((exchange, group), name) in exchanges.iter().zip(group).zip(learned) {
        let place = *places.entry(*group).or_insert(seen.len());
        if place == seen.len() {
            seen.push(Vec::new());
        }
        let framed = exchange.attribution.as_ref().is_some_and(|told| told.source == Source::Frame);
        if let (true, Some(run)) = (framed && exchange.looks.framed, seen.get_mut(place)) {
            run.push((&*exchange.looks, name.clone()));
        }
    }
    let mut templates = AgentTemplates::default();
    for run in seen {
        templates.learn(run);
    }
    templates
}

/// Names told on arrival under which several tool sets of one prompt live side by side: one comes again after another.
fn names_side_by_side<'a>(exchanges: &[&'a Exchange], group: &[usize]) -> HashSet<(usize, &'a AgentName)> {
    let mut heard: HashMap<(usize, &AgentName), Vec<u32>> = HashMap::new();
    let mut apart = HashSet::new();
    for (exchange, group) in exchanges.iter().zip(group) {
        let told = exchange.attribution.as_ref().filter(|told| told.source == Source::Fingerprint);
        let Some(told) = told.filter(|_| exchange.said.is_empty()) else { continue };
        let keys = heard.entry((*group, &told.agent)).or_default();
        match keys.iter().position(|key| *key == exchange.looks.key) {
            Some(at) if at + 1 < keys.len() => drop(apart.insert((*group, &told.agent))),
            Some(_) => {}
            None => keys.push(exchange.looks.key),
        }
    }
    apart
}

/// Tool sets of one prompt that hold each other, each more, and never live side by side in a run: those of one agent,
/// by the key of the smallest.
fn grown(exchanges: &[&Exchange], apart: &HashSet<(usize, &AgentName)>) -> HashMap<u32, u32> {
    let mut sets: HashMap<Mark, BTreeMap<usize, &RequestLooks>> = HashMap::new();
    let mut several: HashSet<Mark> = HashSet::new();
    let apart: HashSet<&AgentName> = apart.iter().map(|(_, name)| *name).collect();
    for exchange in exchanges {
        let looks = &exchange.looks;
        let told = exchange.attribution.as_ref().filter(|told| told.source == Source::Fingerprint);
        let Some(told) = told.filter(|_| looks.prompted && !looks.tools.is_empty()) else { continue };
        let known = sets.entry(looks.prompt).or_default().entry(looks.tools.len()).or_insert(looks);
        if known.tools != looks.tools || apart.contains(&told.agent) {
            several.insert(looks.prompt);
        }
    }
    let mut grown = HashMap::new();
    for (_, sets) in sets.into_iter().filter(|(prompt, sets)| sets.len() > 1 && !several.contains(prompt)) {
        let sets: Vec<&RequestLooks> = sets.into_values().collect();
        let holds =
            |pair: &[&RequestLooks]| pair.first().zip(pair.last()).is_some_and(|(less, more)| more.holds_tools(less));
        if let (Some(first), true) = (sets.first(), sets.windows(2).all(holds)) {
            grown.extend(sets.iter().map(|looks| (looks.key, first.key)));
        }
    }
    grown
}

/// Vectors stay those of the agent they were asked for, whatever that agent is called late.
fn embedding(exchange: &Exchange, renamed: &HashMap<(&RunId, &AgentName), AgentName>) -> AgentName {
    let Some(told) = &exchange.attribution else { return AgentName::unnamed(exchange.looks.key) };
    let base = told.agent.as_str().strip_suffix("/embedding").and_then(|base| AgentName::parse(base).ok());
    let owner = base.and_then(|base| renamed.get(&(&exchange.run, &base)).cloned());
    owner.and_then(|owner| AgentName::parse(&format!("{owner}/embedding")).ok()).unwrap_or_else(|| told.agent.clone())
}

/// Who gave the answer that the exchange goes on from.
fn owner(known: &Exchanges, exchange: &Exchange, named: &[AgentName]) -> Option<AgentName> {
    let looks = &exchange.looks;
    exchange.said.iter().find_map(|said| {
        let other = &known.get(*said)?.looks;
        let alike = if looks.prompted { other.prompt == looks.prompt } else { other.family == looks.family };
        let at = known.place(*said)?;
        named.get(at).filter(|_| alike && other.prompted == looks.prompted).cloned()
    })
}
