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
    impossible::ImpossiblePlan,
    treatment::TargetedPlan,
};
use crate::{
    mode::{self, CallFacts},
    plan::{self, DryRun, Plan, RecordedCall, Unresolvable},
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

/// A template in an agent of the reference run.
struct Placement<'a> {
    planting: &'a Planting,
    agent: &'a Candidate,
    /// The calls at which the edit can be made and be of the template's mode; or why the first call is none of them.
    calls: Result<Vec<CandidateCall>, String>,
}

/// The reference run of a task, as the sampler sees it.
struct SampledRun<'a> {
    called: Vec<RecordedCall>,
    /// Each template in each agent that it may hit, by template.
    placements: Vec<Vec<Placement<'a>>>,
    /// The agents in which something can be planted.
    agents: Vec<&'a Candidate>,
}

impl<'a> SampledRun<'a> {
    fn new(sample: &'a SampleSpace, candidates: &'a [Candidate], reference: &[Step]) -> Self {
        let (facts, dry_run, called) =
            (mode::of_run(reference, &[]), DryRun::new(reference).keeping_to_modes(), called(reference));
        let of_template = |planting: &'a Planting| {
            let placement = |agent: &'a Candidate| {
                let calls = possible(planting, agent, &called, &facts, &dry_run);
                Placement { planting, agent, calls }
            };
            candidates.iter().filter(|agent| sample.hits(planting, &agent.name)).map(placement).collect::<Vec<_>>()
        };
        let placements: Vec<Vec<Placement<'a>>> = sample.templates.iter().map(of_template).collect();
        let is_hit = |agent: &&Candidate| placements.iter().flatten().any(|one| one.is_of(agent) && one.calls.is_ok());
        let agents = candidates.iter().filter(is_hit).collect();
        Self { called, placements, agents }
    }

    /// What cannot be planted.
    fn impossible(&self) -> Vec<ImpossiblePlan> {
        let impossible = |one: &Placement<'_>| {
            let (agent, why) = (one.agent.name.clone(), one.calls.as_ref().err()?.clone());
            Some(ImpossiblePlan { plan: one.planting.name.clone(), agent, mode: one.planting.mode, why })
        };
        self.placements.iter().flatten().filter_map(impossible).collect()
    }
}

impl Placement<'_> {
    fn is_of(&self, agent: &Candidate) -> bool {
        self.agent.name == agent.name
    }
}

/// The calls of an agent at which an edit can be made and an error be of the template's mode; or why its first call is none of them.
fn possible(
    planting: &Planting,
    agent: &Candidate,
    called: &[RecordedCall],
    facts: &CallFacts,
    dry_run: &DryRun<'_>,
) -> Result<Vec<CandidateCall>, String> {
    let (mut calls, mut why) = (Vec::new(), None);
    // Most calls of an agent get the same edit.
    let mut read: Option<(toml::Table, Plan)> = None;
    for call in &agent.calls {
        let unmet = planting.mode.and_then(|mode| facts.unmet(call.step, mode, planting.side));
        let table = aimed_injection(planting, agent, toml::Table::from_iter([always()]), Some(call), called);
        let plan = match read.take().filter(|(known, _)| *known == table) {
            Some((_, plan)) => plan,
            None => written(&planting.name, vec![table.clone()], 0)?,
        };
        let edit = plan.injections.first();
        let obstacle = unmet.map(|unmet| unmet.missing().to_owned());
        match obstacle.or_else(|| dry_run.obstacle(edit?, call.step, 0)) {
            Some(obstacle) => drop(why.get_or_insert(obstacle)),
            None => calls.push(*call),
        }
        read = Some((table, plan));
    }
    if calls.is_empty() { Err(why.unwrap_or_default()) } else { Ok(calls) }
}

/// The plans of a task, and what cannot be planted in its reference run.
#[derive(Debug, Default)]
pub(super) struct DrawnPlans {
    pub(super) plans: Vec<TargetedPlan>,
    pub(super) impossible: Vec<ImpossiblePlan>,
}

/// The plans of a task: `nth` is the task's place among those of its system, 0-based.
pub(super) fn draw(sample: &SampleSpace, seed: u64, nth: usize, reference: &[Step]) -> DrawnPlans {
    let candidates = candidates(sample, reference);
    let run = SampledRun::new(sample, &candidates, reference);
    let mut drawn = DrawnPlans { plans: Vec::new(), impossible: run.impossible() };
    if candidates.is_empty() {
        drawn.impossible.push(ImpossiblePlan::of_sample("no agent of the reference run may be hit".to_owned()));
    }
    let of_templates: Vec<_> = run.placements.iter().map(|of_template| leads(sample, of_template, &run)).collect();
    let of_templates: Vec<_> = of_templates.into_iter().filter(|leads| !leads.is_empty()).collect();
    let per_task = if of_templates.is_empty() { 0 } else { usize::try_from(sample.per_task).unwrap_or(usize::MAX) };
    for number in 0..per_task {
        let place = nth.saturating_mul(per_task).saturating_add(number);
        match aim(&of_templates, seed, place, &run) {
            Ok(aimed) => drawn.plans.push(aimed),
            Err(why) => drawn.impossible.push(ImpossiblePlan::of_sample(why)),
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
#[derive(Clone, Copy)]
struct DrawnLead<'a> {
    placement: &'a Placement<'a>,
    position: CallPosition,
    targets: usize,
}

/// The leads of a template, all of them: the full cross of counts of targets, positions, and agents in which it can be planted.
fn leads<'a>(sample: &'a SampleSpace, placements: &'a [Placement<'a>], run: &SampledRun<'_>) -> Vec<DrawnLead<'a>> {
    let most = run.agents.len();
    let counts: BTreeSet<usize> = sample.targets.iter().map(|count| (*count as usize).min(most)).collect();
    let of_agent = |placement: &'a Placement<'a>| {
        let counts = counts.clone();
        let of_position = move |position: &CallPosition| {
            let position = *position;
            counts.clone().into_iter().map(move |targets| DrawnLead { placement, position, targets })
        };
        sample.positions.iter().flat_map(of_position)
    };
    placements.iter().filter(|placement| placement.calls.is_ok()).flat_map(of_agent).collect()
}

/// The plan at a place of the sequence. Each round of templates is an order of its own; each template goes through its leads
/// in orders of their own, so no axis keeps step with another. Who else is hit and with what is drawn freely.
fn aim(
    of_templates: &[Vec<DrawnLead<'_>>],
    seed: u64,
    place: usize,
    run: &SampledRun<'_>,
) -> Result<TargetedPlan, String> {
    let round = place / of_templates.len().max(1);
    let template = nth_of_order(seed, "templates", round, of_templates.len(), place % of_templates.len().max(1));
    let leads = of_templates.get(template).map(Vec::as_slice).unwrap_or_default();
    let order = format!("leads of {template}");
    let nth_lead = nth_of_order(seed, &order, round / leads.len().max(1), leads.len(), round % leads.len().max(1));
    let Some(lead) = leads.get(nth_lead) else { return Err("nothing is left to draw".to_owned()) };
    let mut draws = draws(seed, &format!("plan {place}"));
    let mut aims = vec![lead.placement];
    let mut others: Vec<&Candidate> = run.agents.iter().copied().filter(|agent| !lead.placement.is_of(agent)).collect();
    others.shuffle(&mut draws);
    for agent in others {
        let fits = |one: &&Placement<'_>| one.is_of(agent) && one.calls.is_ok();
        let fitting: Vec<&Placement<'_>> = run.placements.iter().flatten().filter(fits).collect();
        if aims.len() < lead.targets
            && let Some(placement) = fitting.choose(&mut draws)
        {
            aims.push(placement);
        }
    }
    let name = aims.iter().map(|placement| placement.planting.name.as_str()).collect::<Vec<_>>().join("+");
    let planted = |placement: &Placement<'_>| injection(placement, lead.position, &mut draws, &run.called);
    let injections = aims.into_iter().map(planted).collect();
    // TOML has no integer above `i64::MAX`.
    let plan = written(&name, injections, draws.random::<u64>() >> 1)?;
    let plan = plan::resolve(&plan, &run.called).map_err(|Unresolvable { reason, .. }| reason)?;
    Ok(TargetedPlan { name, plan, position: Some(lead.position) })
}

/// The key that aims at a name, and how a plan writes it.
fn aimed_at(name: &str) -> (&'static str, &str) {
    let of_server = [("tool", TOOLS), ("peer", PEERS)];
    let aimed = of_server.into_iter().find_map(|(key, before)| Some((key, name.strip_prefix(before)?)));
    aimed.unwrap_or(("agent", name))
}

/// An injection of a template, aimed at a call at which it can be made.
fn injection(
    placement: &Placement<'_>,
    position: CallPosition,
    draws: &mut ChaCha8Rng,
    called: &[RecordedCall],
) -> toml::Table {
    let Placement { planting, agent, calls } = placement;
    let possible = calls.as_deref().unwrap_or_default();
    let chosen = match position {
        CallPosition::Every => None,
        CallPosition::First => possible.first(),
        CallPosition::Uniform => possible.choose(draws),
    };
    let when = match chosen {
        None => always(),
        // An agent's own count says more than the run's, but only the latter tells equal agents apart.
        Some(chosen) if agent.single => ("call".to_owned(), i64::from(chosen.call).into()),
        Some(chosen) => ("step".to_owned(), i64::from(chosen.step).into()),
    };
    // An edit of every call must find its source at the first.
    aimed_injection(planting, agent, toml::Table::from_iter([when]), chosen.or(possible.first()), called)
}

/// The condition that holds at every call.
fn always() -> (String, toml::Value) {
    ("always".to_owned(), true.into())
}

/// An injection of a template in an agent, with what it takes its words from at a call.
fn aimed_injection(
    planting: &Planting,
    agent: &Candidate,
    when: toml::Table,
    call: Option<&CandidateCall>,
    called: &[RecordedCall],
) -> toml::Table {
    let (key, name) = aimed_at(&agent.name);
    let aim = [(key.to_owned(), toml::Value::from(name)), ("when".to_owned(), when.into())];
    let mut injection = toml::Table::from_iter(aim);
    injection.extend(planting.injection.clone());
    if let Some(call) = call {
        aim_source(&mut injection, &agent.name, call.step, called);
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
fn written(name: &str, injections: Vec<toml::Table>, seed: u64) -> Result<Plan, String> {
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
