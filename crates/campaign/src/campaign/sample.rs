//! The sampler: which error is planted in which agent at which call. Each plan is a function of the campaign's seed,
//! the task's place in the file and the reference run, so every process draws the same. What is drawn is one full cross of templates,
//! agents, positions and counts of targets: each template comes as often as any other, one more at most, and so does each
//! combination of a template.

use std::collections::{BTreeMap, BTreeSet};

use rand::{
    RngExt, SeedableRng,
    rngs::ChaCha8Rng,
    seq::{IndexedRandom, SliceRandom},
};

use super::{
    definition::{Planting, SampleSpace},
    file::CallPosition,
    treatment::Aimed,
};
use crate::{
    mode::{self, CallFacts},
    plan::{self, RecordedCall, Unresolvable},
    trajectory::{Call, PEERS, Step, StepIndex, TOOLS},
};

/// How sure an agent's name must be for it to be hit.
const CONFIDENCE: f32 = 0.5;

/// Manipulators whose `from` names another agent.
const QUOTING: [&str; 3] = ["withhold_message", "repeat_step", "echo_peer"];

/// An agent of the reference run that may be hit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    name: String,
    /// Its calls.
    calls: Vec<CandidateCall>,
    /// Whether there is one agent of that name only.
    single: bool,
}

/// A call that may be hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CandidateCall {
    /// Its number among its agent's.
    call: Call,
    /// The run's step.
    step: StepIndex,
}

/// The reference run of a task, as the sampler sees it.
struct SampledRun {
    candidates: Vec<Candidate>,
    called: Vec<RecordedCall>,
    facts: CallFacts,
}

impl SampledRun {
    fn new(sample: &SampleSpace, reference: &[Step]) -> Self {
        Self {
            candidates: candidates(sample, reference),
            called: called(reference),
            facts: mode::of_run(reference, &[]),
        }
    }

    /// The calls of an agent at which an error can be of the template's mode, if it has one.
    fn possible(&self, planting: &Planting, agent: &Candidate) -> Vec<CandidateCall> {
        let can_be = |call: &&CandidateCall| {
            planting.mode.is_none_or(|mode| self.facts.unmet(call.step, mode, planting.side).is_none())
        };
        agent.calls.iter().filter(can_be).copied().collect()
    }
}

/// The plans of a task: `nth` is the task's place among those of its system, 0-based.
pub(super) fn draw(sample: &SampleSpace, seed: u64, nth: usize, reference: &[Step]) -> Vec<Result<Aimed, String>> {
    let run = SampledRun::new(sample, reference);
    let per_task = usize::try_from(sample.per_task).unwrap_or(usize::MAX);
    let mut drawn: Vec<Result<Aimed, String>> = Vec::new();
    for number in 0..per_task {
        let place = nth.saturating_mul(per_task).saturating_add(number);
        match aim(sample, seed, place, &run) {
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

impl SampleSpace {
    /// Whether a template may be planted in the agent of this name. A helper is hit only where it is named; a tool or a peer by the
    /// template's own words.
    fn hits(&self, planting: &Planting, agent: &str) -> bool {
        if let Some(servers) = &planting.servers {
            return servers.matches(agent);
        }
        let named = planting.mode.and_then(|mode| self.mode_agents.get(&mode)).unwrap_or(&self.agents);
        (named.is_empty() && !agent.contains('/')) || named.iter().any(|pattern| pattern.matches(agent))
    }
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
    let sure =
        |step: &&Step| !step.attribution.ambiguous && step.attribution.confidence >= CONFIDENCE && !step.overlapping;
    let candidate = |name: &&str| {
        let steps = calls.get(name)?;
        let single = steps.iter().all(|step| step.attribution.instance == 0);
        let calls = steps.iter().copied().filter(sure);
        let calls: Vec<_> = calls.map(|step| CandidateCall { call: step.call, step: step.step }).collect();
        (!calls.is_empty()).then(|| Candidate { name: (*name).to_owned(), calls, single })
    };
    let is_hit = |name: &&&str| sample.templates.iter().any(|planting| sample.hits(planting, name));
    order.iter().filter(is_hit).filter_map(candidate).collect()
}

/// The lead of a drawn plan: which template is planted in whom at which call, and in how many agents something is planted.
#[derive(Debug, Clone, Copy)]
struct DrawnLead<'a> {
    planting: &'a Planting,
    agent: &'a Candidate,
    position: CallPosition,
    targets: usize,
}

/// The leads of a template, all of them: the full cross of counts of targets, positions, and agents at whose calls an error can be
/// of the template's mode.
fn leads<'a>(sample: &'a SampleSpace, planting: &'a Planting, run: &'a SampledRun) -> Vec<DrawnLead<'a>> {
    let most = run.candidates.len();
    let counts: BTreeSet<usize> = sample.targets.iter().map(|count| (*count as usize).min(most)).collect();
    let agents = run.candidates.iter().filter(|agent| sample.hits(planting, &agent.name));
    let agents = agents.filter(|agent| !run.possible(planting, agent).is_empty());
    let of_agent = |agent: &'a Candidate| {
        let counts = counts.clone();
        let of_position = move |position: &CallPosition| {
            let position = *position;
            counts.clone().into_iter().map(move |targets| DrawnLead { planting, agent, position, targets })
        };
        sample.positions.iter().flat_map(of_position)
    };
    agents.flat_map(of_agent).collect()
}

/// The plan at a place of the sequence. Each round of templates is an order of its own; each template goes through its leads
/// in orders of their own, so no axis keeps step with another. Who else is hit and with what is drawn freely.
fn aim(sample: &SampleSpace, seed: u64, place: usize, run: &SampledRun) -> Result<Aimed, String> {
    let of_templates = sample.templates.iter().map(|planting| leads(sample, planting, run));
    let of_templates: Vec<_> = of_templates.filter(|leads| !leads.is_empty()).collect();
    if of_templates.is_empty() {
        let why = match run.candidates.as_slice() {
            [] => "no agent of the reference run may be hit",
            _ => "no call of the reference run can be of a mode that the templates plant",
        };
        return Err(why.to_owned());
    }
    let round = place / of_templates.len();
    let template = nth_of_order(seed, "templates", round, of_templates.len(), place % of_templates.len());
    let leads = of_templates.get(template).map(Vec::as_slice).unwrap_or_default();
    let order = format!("leads of {template}");
    let nth_lead = nth_of_order(seed, &order, round / leads.len().max(1), leads.len(), round % leads.len().max(1));
    let Some(lead) = leads.get(nth_lead) else { return Err("nothing is left to draw".to_owned()) };
    let mut draws = draws(seed, &format!("plan {place}"));
    let mut aims = vec![(lead.planting, lead.agent)];
    let mut others: Vec<&Candidate> = run.candidates.iter().filter(|agent| agent.name != lead.agent.name).collect();
    others.shuffle(&mut draws);
    for agent in others {
        let fits =
            |planting: &&Planting| sample.hits(planting, &agent.name) && !run.possible(planting, agent).is_empty();
        let fitting: Vec<&Planting> = sample.templates.iter().filter(fits).collect();
        if aims.len() < lead.targets
            && let Some(planting) = fitting.choose(&mut draws)
        {
            aims.push((planting, agent));
        }
    }
    let name = aims.iter().map(|(planting, _)| planting.name.as_str()).collect::<Vec<_>>().join("+");
    let planted =
        |(planting, agent): (&Planting, &Candidate)| injection(planting, agent, lead.position, &mut draws, run);
    let injections = aims.into_iter().map(planted).collect();
    // TOML has no integer above `i64::MAX`.
    let plan = written(&name, injections, draws.random::<u64>() >> 1)?;
    let plan = plan::resolve(&plan, &run.called).map_err(|Unresolvable { reason, .. }| reason)?;
    Ok(Aimed { name, plan, position: Some(lead.position) })
}

/// The key that aims at a name, and how a plan writes it.
fn aimed_at(name: &str) -> (&'static str, &str) {
    let of_server = [("tool", TOOLS), ("peer", PEERS)];
    let aimed = of_server.into_iter().find_map(|(key, before)| Some((key, name.strip_prefix(before)?)));
    aimed.unwrap_or(("agent", name))
}

/// An injection of a template, aimed at a call at which its mode can be.
fn injection(
    planting: &Planting,
    agent: &Candidate,
    position: CallPosition,
    draws: &mut ChaCha8Rng,
    run: &SampledRun,
) -> toml::Table {
    let mut when = toml::Table::new();
    let possible = run.possible(planting, agent);
    let chosen = match position {
        CallPosition::Every => None,
        CallPosition::First => possible.first(),
        CallPosition::Uniform => possible.choose(draws),
    };
    match chosen {
        None => when.insert("always".to_owned(), true.into()),
        // An agent's own count says more than the run's, but only the latter tells equal agents apart.
        Some(chosen) if agent.single => when.insert("call".to_owned(), i64::from(chosen.call).into()),
        Some(chosen) => when.insert("step".to_owned(), i64::from(chosen.step).into()),
    };
    let mut injection = toml::Table::new();
    let (key, name) = aimed_at(&agent.name);
    injection.insert(key.to_owned(), name.into());
    injection.insert("when".to_owned(), when.into());
    injection.extend(planting.injection.clone());
    // An edit of every call must find its source at the first.
    if let Some(hit) = chosen.or(possible.first()) {
        aim_source(&mut injection, &agent.name, hit.step, &run.called);
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

/// What stands at this place of a drawn order of `0..length`; each round has an order of its own.
fn nth_of_order(seed: u64, name: &str, round: usize, length: usize, place: usize) -> usize {
    let mut order: Vec<usize> = (0..length).collect();
    order.shuffle(&mut draws(seed, &format!("order {round} of {length} {name}")));
    order.get(place).copied().unwrap_or_default()
}

/// Draws that depend on the campaign's seed and a name alone.
fn draws(seed: u64, name: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(blake3::derive_key("aegis sample 2", format!("{seed} {name}").as_bytes()))
}

#[cfg(test)]
#[path = "sample_tests.rs"]
mod tests;
