//! The sampler: which error is planted in which agent at which call. Each plan is a function of the campaign's seed,
//! the task's place in the file and the reference run, so every process draws the same; and whatever the count, each
//! template, agent and position comes as often as any other, one more at most.

use std::collections::BTreeMap;

use super::{
    definition::{Planting, SampleSpace},
    file::CallPosition,
    treatment::Aimed,
};
use crate::{
    plan::{self, RecordedCall, Unresolvable},
    trajectory::{Call, Step},
};

/// How sure an agent's name must be for it to be hit.
const CONFIDENCE: f32 = 0.5;

/// Manipulators whose `from` names another agent.
const QUOTING: [&str; 3] = ["withhold_message", "repeat_step", "echo_peer"];

/// An agent of the reference run that may be hit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    name: String,
    /// Its calls, with the run's step of each.
    calls: Vec<(Call, u32)>,
    /// Whether there is one agent of that name only.
    single: bool,
}

/// The plans of a task: `nth` is the task's place among those of its system, 0-based.
pub(super) fn draw(sample: &SampleSpace, seed: u64, nth: usize, reference: &[Step]) -> Vec<Result<Aimed, String>> {
    let candidates = candidates(sample, reference);
    let called = called(reference);
    let per_task = usize::try_from(sample.per_task).unwrap_or(usize::MAX);
    let mut drawn: Vec<Result<Aimed, String>> = Vec::new();
    for number in 0..per_task {
        let place = nth.saturating_mul(per_task).saturating_add(number);
        match aim(sample, seed, place, &candidates, &called) {
            // Small spaces are exhausted before `per_task` is: the same plan twice would be no second draw.
            Ok(aimed) if drawn.iter().flatten().any(|known| known.plan.digest == aimed.plan.digest) => {}
            outcome => drawn.push(outcome),
        }
    }
    drawn
}

/// The calls of a run, as plans count them.
pub(super) fn called(reference: &[Step]) -> Vec<RecordedCall> {
    let called = |step: &Step| RecordedCall {
        agent: step.attribution.agent.as_str().to_owned(),
        instance: step.attribution.instance,
        call: step.call,
        step: step.step,
    };
    reference.iter().map(called).collect()
}

/// The agents that may be hit, in the order in which they first speak. A helper is one only where it is named exactly.
fn candidates(sample: &SampleSpace, reference: &[Step]) -> Vec<Candidate> {
    let mut order: Vec<&str> = Vec::new();
    let mut calls: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    for step in reference {
        let who = step.attribution.agent.as_str();
        if !order.contains(&who) {
            order.push(who);
        }
        calls.entry(who).or_default().push(step);
    }
    let wanted = |name: &str| {
        let any = sample.agents.is_empty() && !name.contains('/');
        any || sample.agents.iter().any(|pattern| pattern.matches(name))
    };
    let sure =
        |step: &&Step| !step.attribution.ambiguous && step.attribution.confidence >= CONFIDENCE && !step.overlapping;
    let candidate = |name: &&str| {
        let steps = calls.get(name)?;
        let single = steps.iter().all(|step| step.attribution.instance == 0);
        let calls: Vec<_> = steps.iter().copied().filter(sure).map(|step| (step.call, step.step)).collect();
        (!calls.is_empty()).then(|| Candidate { name: (*name).to_owned(), calls, single })
    };
    order.iter().filter(|name| wanted(name)).filter_map(candidate).collect()
}

/// The plan at a place of the stratified sequence.
fn aim(
    sample: &SampleSpace,
    seed: u64,
    place: usize,
    candidates: &[Candidate],
    called: &[RecordedCall],
) -> Result<Aimed, String> {
    if candidates.is_empty() {
        return Err("no agent of the reference run may be hit".to_owned());
    }
    let (templates, agents, positions) = (sample.templates.len(), candidates.len(), sample.positions.len());
    // One template after the other; each round of them moves the agents and, more slowly, the positions on.
    let round = place / templates.max(1);
    let template = place % templates.max(1);
    let agent = (round + template) % agents;
    let position = (round / agents + template) % positions.max(1);
    let targets = sample.targets.get(place % sample.targets.len().max(1)).copied().unwrap_or(1);
    let targets = usize::try_from(targets).unwrap_or(1).min(agents);
    let shuffled = |name: &str, length: usize, at: usize| shuffle(seed, name, length).get(at).copied();
    let position = sample.positions.get(position).copied().unwrap_or(CallPosition::First);
    let mut injections = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for target in 0..targets {
        let template = shuffled("template", templates, (template + target) % templates.max(1));
        let agent = shuffled("agent", agents, (agent + target) % agents);
        let (Some(planting), Some(agent)) =
            (template.and_then(|at| sample.templates.get(at)), agent.and_then(|at| candidates.get(at)))
        else {
            return Err("nothing is left to draw".to_owned());
        };
        injections.push(injection(planting, agent, position, draw_of(seed, place, target), called));
        names.push(&planting.name);
    }
    let name = names.join("+");
    let plan = written(&name, injections, draw_of(seed, place, usize::MAX) >> 1)?;
    let plan = plan::resolve(&plan, called).map_err(|Unresolvable { reason, .. }| reason)?;
    Ok(Aimed { name, plan, position: Some(position) })
}

/// An injection of a template, aimed.
fn injection(
    planting: &Planting,
    agent: &Candidate,
    position: CallPosition,
    draw: u64,
    called: &[RecordedCall],
) -> toml::Table {
    let mut when = toml::Table::new();
    let chosen = match position {
        CallPosition::Every => None,
        CallPosition::First => agent.calls.first(),
        CallPosition::Uniform => {
            let count = u64::try_from(agent.calls.len()).unwrap_or(1).max(1);
            agent.calls.get(usize::try_from(draw % count).unwrap_or_default())
        }
    };
    match chosen {
        None => when.insert("always".to_owned(), true.into()),
        // An agent's own count says more than the run's, but only the latter tells equal agents apart.
        Some((call, _)) if agent.single => when.insert("call".to_owned(), i64::from(*call).into()),
        Some((_, step)) => when.insert("step".to_owned(), i64::from(*step).into()),
    };
    let mut injection = toml::Table::new();
    injection.insert("agent".to_owned(), agent.name.clone().into());
    injection.insert("when".to_owned(), when.into());
    injection.extend(planting.injection.clone());
    // An edit of every call must find its source at the first.
    if let Some((_, step)) = chosen.or(agent.calls.first()) {
        aim_source(&mut injection, &agent.name, *step, called);
    }
    injection
}

/// Where a template's edit takes words from an agent that the reference does not have (a `planner`, say), it takes them
/// from who spoke last before the call that is hit.
fn aim_source(injection: &mut toml::Table, agent: &str, step: u32, called: &[RecordedCall]) {
    let earlier = called.iter().filter(|call| call.step < step && call.agent != agent && !call.agent.contains('/'));
    let Some(latest) = earlier.max_by_key(|call| call.step) else { return };
    let manipulator = injection.get_mut("manipulator").and_then(toml::Value::as_table_mut);
    for (_, edit) in manipulator.into_iter().flatten().filter(|(name, _)| QUOTING.contains(&name.as_str())) {
        let Some(toml::Value::String(source)) = edit.get_mut("from") else { continue };
        if called.iter().all(|call| call.agent != *source) {
            source.clone_from(&latest.agent);
        }
    }
}

/// A plan as its own text, so that what is recorded can be read and applied again.
fn written(name: &str, injections: Vec<toml::Table>, seed: u64) -> Result<plan::Plan, String> {
    let mut table = toml::Table::new();
    table.insert("format".to_owned(), 1.into());
    table.insert("seed".to_owned(), i64::try_from(seed).unwrap_or_default().into());
    let injections = injections.into_iter().map(toml::Value::Table).collect();
    table.insert("injection".to_owned(), toml::Value::Array(injections));
    let text = toml::to_string(&table).map_err(|error| error.to_string())?;
    plan::parse(&text, name).map_err(|error| error.to_string())
}

/// A permutation of `0..length` that depends on the seed and the name alone.
fn shuffle(seed: u64, name: &str, length: usize) -> Vec<usize> {
    let key = |at: &usize| *blake3::hash(format!("aegis sample 1 {seed} {name} {at}").as_bytes()).as_bytes();
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by_cached_key(key);
    order
}

fn draw_of(seed: u64, place: usize, target: usize) -> u64 {
    let hash = blake3::hash(format!("aegis sample draw 1 {seed} {place} {target}").as_bytes());
    hash.as_bytes().iter().take(8).fold(0, |draw, byte| (draw << 8) | u64::from(*byte))
}

#[cfg(test)]
#[path = "sample_tests.rs"]
mod tests;
