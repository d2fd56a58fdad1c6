//! The claims of a campaign: which runs met the same treatment, what is executed for them, and where they stand.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::task::JoinSet;

use super::{
    bench::{CellBench, Slots},
    cell::{Cell, Fork},
    chain::Chain,
    claim::{Claimed, ConcludedClaim, MadeCells},
    ended::{Class, EndedCell, Ran},
    error::CampaignError,
    funnel::{self, InjectedRun},
    sitting::OlderControls,
    stages::count,
    treatment::planned_step,
};
use crate::{
    equality::{ComparedRun, Parting, parting_before},
    plan::Planted,
    proof::{ProofSample, is_chaotic},
    recording::{self, Recording},
    replay::compared_run,
    trajectory::{AgentName, Necessity, RunId, Standing, Step, StepIndex},
};

/// What was really altered in a run of a task, by the hashes of what it was and became: runs of which that is equal met
/// the same treatment.
pub(super) type Edits = Vec<(StepIndex, String, String)>;

impl CellBench {
    /// Executes what shows the claims of a chain, and says of each attempt where it stands.
    pub(super) async fn prove(
        self: &Arc<Self>,
        chain: Chain,
        cells: &[Cell],
        concluded: &mut funnel::ConcludedChain,
    ) -> Result<(), CampaignError> {
        self.leave_out_diverged(cells, concluded)?;
        let claims = self.claims(cells, concluded)?;
        let mut made = MadeCells::default();
        if concluded.tasks.iter().any(|task| !task.repeatable) {
            concluded.revokes = true;
            self.revoke(chain.system, None);
        }
        let declared = self.context.campaign.repeats_itself && !self.revoked().contains(&chain.system);
        let repeated = if declared { self.repeat(&claims, &mut made).await? } else { Some(BTreeMap::new()) };
        if repeated.is_none() {
            concluded.revokes = true;
            self.revoke(chain.system, None);
        }
        let mut proven = repeated.unwrap_or_default();
        concluded.repeats = !proven.is_empty();
        proven.extend(self.pursue_all(&claims, &proven, &mut made).await?);
        for ended in made.ended.values() {
            self.restore_label(ended)?;
            count(concluded, ended);
            concluded.without += usize::from(matches!(ended.kind, Ran::Without { .. }));
        }
        concluded.unfinished += made.unfinished.len();
        concluded.controls = control_counts(&made);
        let chaotic = is_chaotic(concluded.controls.passed, concluded.controls.failed, self.context.campaign.chaotic);
        concluded.tasks.iter_mut().for_each(|task| task.chaotic = chaotic);
        concluded.older = older_controls(&made);
        concluded.claims = claims.len();
        for (number, claimed) in claims.iter().enumerate() {
            if let Some(proven) = proven.remove(&number) {
                let proven = if chaotic { proven.without_weight() } else { proven };
                conclude(concluded, number, claimed, &proven);
            }
        }
        Ok(())
    }

    /// Looks at where each run left its reference: one that had asked or been answered something else before is evidence of
    /// nothing.
    fn leave_out_diverged(&self, cells: &[Cell], concluded: &mut funnel::ConcludedChain) -> Result<(), CampaignError> {
        let mut references: BTreeMap<RunId, ComparedRun> = BTreeMap::new();
        for (attempt, cell) in concluded.attempts.iter_mut().zip(cells) {
            let labelled =
                attempt.ended.as_ref().is_some_and(|ended| ended.label.is_some() && ended.defect().is_none());
            if !labelled {
                continue;
            }
            let (Some(planned), Some(reference)) = (self.planned(cell)?, cell.reference()) else { continue };
            let cassette = self.references.open(&self.state, reference)?;
            let known = references
                .entry(reference.clone())
                .or_insert_with(|| compared_run(cassette.recording(), cassette.rules()));
            let recording = recording::read(&self.state.run_dir(&cell.run))?;
            let own = compared_run(&recording, cassette.rules());
            let steps = &recording.trajectory.steps;
            let Some(planned) = planned_step(steps, &cassette, &planned) else { continue };
            let edited = edited(steps);
            // Of branches side by side, that of a later injection may come first.
            let fork = edited.iter().copied().min().map_or(planned, |first| first.min(planned));
            attempt.fork_step =
                left_at(attempt.ended.as_ref(), &recording, fork, |to| parting_before(known, &own, to, &edited));
            if let Some(parting) = parting_before(known, &own, fork, &edited) {
                attempt.class = Some(Class::Diverged);
                attempt.flipped = false;
                attempt.why = Some(parting.to_string());
            }
        }
        Ok(())
    }

    /// The claims, in the order of their first attempts.
    fn claims(&self, cells: &[Cell], concluded: &funnel::ConcludedChain) -> Result<Vec<Arc<Claimed>>, CampaignError> {
        let mut order: Vec<Vec<usize>> = Vec::new();
        let mut places: BTreeMap<(&str, &str, Edits), usize> = BTreeMap::new();
        for (number, attempt) in concluded.attempts.iter().enumerate() {
            let labelled = attempt.ended.as_ref().filter(|ended| ended.label.is_some());
            let Some(ended) = labelled.filter(|_| attempt.class != Some(Class::Diverged)) else { continue };
            let place = *places.entry((&attempt.system, &attempt.task, edits(ended))).or_insert_with(|| {
                order.push(Vec::new());
                order.len() - 1
            });
            order.get_mut(place).into_iter().for_each(|attempts| attempts.push(number));
        }
        let claimed = order.into_iter().map(|attempts| self.claimed(attempts, cells, concluded));
        Ok(claimed.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(Arc::new).collect())
    }

    fn claimed(
        &self,
        attempts: Vec<usize>,
        cells: &[Cell],
        concluded: &funnel::ConcludedChain,
    ) -> Result<Option<Claimed>, CampaignError> {
        let of = |number: &usize| concluded.attempts.get(*number);
        let lead = attempts.iter().find(|number| of(number).is_some_and(|attempt| attempt.flipped));
        let flipped = lead.is_some();
        let Some(lead) = lead.or(attempts.first()).copied() else { return Ok(None) };
        let (Some(cell), Some(attempt)) = (cells.get(lead), of(&lead)) else { return Ok(None) };
        let Some(planned) = self.planned(cell)? else { return Ok(None) };
        let Some(reference) = cell.reference() else { return Ok(None) };
        let ended = || attempts.iter().filter_map(of).filter_map(|attempt| attempt.ended.as_ref());
        Ok(Some(Claimed {
            runs: ended().map(|ended| ended.run.clone()).collect(),
            first: ended().map(EndedCell::execution).collect(),
            fork: Fork::at_point(reference, &planned),
            treatment: if flipped { self.treatment_of(cell, &planned)? } else { None },
            cell: cell.clone(),
            planted: planted(attempt),
            flipped,
            planned,
            attempts,
        }))
    }

    /// The names of systems that were declared to repeat themselves and do not.
    pub(super) fn revoked_names(&self, revoked: &BTreeSet<usize>) -> Vec<String> {
        if !self.context.campaign.repeats_itself {
            return Vec::new();
        }
        let systems = &self.context.campaign.systems;
        revoked.iter().filter_map(|number| systems.get(*number)).map(|system| system.name.clone()).collect()
    }

    /// Executes what is not settled yet, claims side by side, each by itself one after another.
    async fn pursue_all(
        self: &Arc<Self>,
        claims: &[Arc<Claimed>],
        settled: &BTreeMap<usize, ConcludedClaim>,
        made: &mut MadeCells,
    ) -> Result<BTreeMap<usize, ConcludedClaim>, CampaignError> {
        let slots = Arc::<Slots>::default();
        let mut running = JoinSet::new();
        for (number, claimed) in claims.iter().enumerate().filter(|(number, _)| !settled.contains_key(number)) {
            let (bench, claimed, slots) = (Arc::clone(self), Arc::clone(claimed), Arc::clone(&slots));
            running.spawn(async move {
                let mut own = MadeCells::default();
                let pursued = bench.pursue(&claimed, &slots, &mut own).await;
                (number, own, pursued)
            });
        }
        let mut concluded = BTreeMap::new();
        while let Some(done) = running.join_next().await {
            let (number, own, pursued) = done.map_err(|_| CampaignError::Lost)?;
            made.add(own);
            concluded.insert(number, pursued?);
        }
        Ok(concluded)
    }
}

/// The positions of the steps in which something was planted.
fn edited(steps: &[Step]) -> Vec<usize> {
    let is_edited = |step: &Step| step.injected.iter().any(|error| error.delivered);
    steps.iter().enumerate().filter(|(_, step)| is_edited(step)).map(|(at, _)| at).collect()
}

/// The step at which a run left its reference: where it was to be altered, if it was altered there; else the first that differs,
/// for an edit that could not be made leaves nothing behind.
fn left_at(
    ended: Option<&EndedCell>,
    recording: &Recording,
    fork: usize,
    parting: impl Fn(usize) -> Option<Parting>,
) -> Option<StepIndex> {
    let steps = &recording.trajectory.steps;
    let planned = steps.get(fork)?.step;
    let entries = ended.and_then(|ended| ended.label.as_ref()).into_iter().flat_map(|label| &label.errors);
    if entries.into_iter().any(|entry| entry.error.step == planned) {
        return Some(planned);
    }
    match parting(steps.len())? {
        Parting::Request(at) | Parting::Answered(at) => steps.get(at).map(|step| step.step),
        Parting::Missing(_) => None,
    }
}

/// Says of each run of a claim where it stands. Runs that did not flip stay what they are, with what was executed.
fn conclude(concluded: &mut funnel::ConcludedChain, number: usize, claimed: &Claimed, proven: &ConcludedClaim) {
    for attempt in &claimed.attempts {
        let Some(attempt) = concluded.attempts.get_mut(*attempt) else { continue };
        attempt.claim = Some(number);
        attempt.executed = Some(proven.executed.clone());
        attempt.necessity = as_numbered(&proven.necessity, &claimed.planted, &planted(attempt));
        if attempt.flipped {
            attempt.standing = Some(proven.standing);
            attempt.class = Some(class(proven.standing));
            attempt.why = attempt.why.take().or_else(|| proven.why.clone());
        }
    }
}

fn class(standing: Standing) -> Class {
    match standing {
        Standing::Verified => Class::Verified,
        Standing::Contradicted => Class::FlakyTask,
        Standing::Void => Class::Void,
        Standing::Unproven => Class::Unproven,
    }
}

/// What was really altered, by the hashes of what it was and became.
pub(super) fn edits(ended: &EndedCell) -> Edits {
    let errors = ended.label.iter().flat_map(|label| &label.errors);
    errors.map(|entry| (entry.error.step, entry.error.before.clone(), entry.error.after.clone())).collect()
}

/// Control executions, and how many of them passed, failed, or say nothing.
fn control_counts(made: &MadeCells) -> funnel::ControlCounts {
    let mut controls = funnel::ControlCounts::default();
    let is_control = |(_, ended): &(&RunId, &EndedCell)| matches!(ended.kind, Ran::Control { .. });
    for (_, ended) in made.ended.iter().filter(is_control) {
        match ended.proof_sample() {
            ProofSample::Passed => controls.passed += 1,
            ProofSample::Failed => controls.failed += 1,
            ProofSample::Void(_) => controls.void += 1,
        }
    }
    controls
}

/// The runs without the injection that are left out, and those that were made at the last start.
fn older_controls(made: &MadeCells) -> OlderControls {
    let controls = || made.ended.values().filter(|ended| matches!(ended.kind, Ran::Control { .. }));
    let last = controls().map(|ended| &ended.sitting).max();
    let older: Vec<_> = controls().filter(|ended| made.older.contains(&ended.run)).collect();
    let later: Vec<_> =
        controls().filter(|ended| !made.older.contains(&ended.run) && Some(&ended.sitting) == last).collect();
    let passed = |of: &[&EndedCell]| of.iter().filter(|ended| ended.proof_sample() == ProofSample::Passed).count();
    let told = OlderControls {
        runs: older.len(),
        passed: passed(&older),
        later_runs: later.len(),
        later_passed: passed(&later),
    };
    if told.is_empty() { OlderControls::default() } else { told }
}

/// What was delivered in a run: each injection, for each agent that it hit.
fn planted(attempt: &InjectedRun) -> Vec<Planted> {
    let label = attempt.ended.as_ref().and_then(|ended| ended.label.as_ref());
    let planted = label.iter().flat_map(|label| &label.errors).map(|entry| Planted {
        injection: entry.error.injection,
        agent: entry.error.agent.clone(),
        instance: entry.error.instance,
    });
    planted.collect::<BTreeSet<_>>().into_iter().collect()
}

/// What is needed, by the numbers that another plan gives the same edits: its own, in order, of the same agent. Plans that
/// group the edits otherwise say nothing of one another.
fn as_numbered(necessity: &[Necessity], executed: &[Planted], own: &[Planted]) -> Vec<Necessity> {
    let by_agent = |planted: &[Planted]| {
        let mut numbers: BTreeMap<(AgentName, u32), Vec<u32>> = BTreeMap::new();
        for Planted { injection, agent, instance } in planted {
            numbers.entry((agent.clone(), *instance)).or_default().push(*injection);
        }
        numbers
    };
    let (executed, own) = (by_agent(executed), by_agent(own));
    let renumbered = |one: &Necessity| {
        let whose = (one.agent.clone(), one.instance);
        let (before, now) = (executed.get(&whose)?, own.get(&whose)?);
        let place = before.iter().position(|number| *number == one.injection)?;
        let injection = *now.get(place).filter(|_| before.len() == now.len())?;
        Some(Necessity { injection, ..one.clone() })
    };
    necessity.iter().filter_map(renumbered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::{Executed, Need};

    fn planted(all: &[(u32, &str)]) -> Vec<Planted> {
        let named = |(injection, agent): &(u32, &str)| Planted {
            injection: *injection,
            agent: AgentName::parse(agent).expect("a name"),
            instance: 0,
        };
        all.iter().map(named).collect()
    }

    #[test]
    fn what_is_needed_is_told_in_the_numbers_of_the_plan_that_made_the_run() {
        let lead = planted(&[(0, "critic"), (1, "solver"), (2, "solver")]);
        let told: Vec<_> = lead
            .iter()
            .map(|Planted { injection, agent, instance }| Necessity {
                injection: *injection,
                agent: agent.clone(),
                instance: *instance,
                state: if *injection == 2 { Need::Necessary } else { Need::NotNeeded },
                executed: Executed::default(),
                exclusion: None,
            })
            .collect();
        for (own, expected) in [
            (planted(&[(0, "critic"), (1, "solver"), (2, "solver")]), vec![(0, false), (1, false), (2, true)]),
            (planted(&[(0, "solver"), (3, "solver"), (4, "critic")]), vec![(4, false), (0, false), (3, true)]),
            (planted(&[(0, "critic"), (1, "solver")]), vec![(0, false)]),
            (planted(&[]), vec![]),
        ] {
            let numbers: Vec<_> = as_numbered(&told, &lead, &own)
                .iter()
                .map(|one| (one.injection, one.state == Need::Necessary))
                .collect();
            assert_eq!(numbers, expected, "{own:?}");
        }
    }
}
