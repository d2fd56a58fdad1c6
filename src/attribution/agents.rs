//! Agents as a whole: what if all that an agent said had been something else, or nothing?
//!
//! From the agent's first step on its replies are set, call by call, whatever it is asked; the others are live. The
//! null arm sets them to what was recorded. Calls beyond the recorded ones are live in both arms.

use std::collections::BTreeMap;

use super::{AgentFinding, Arm, TrialError, difference, search::Search};
use crate::{
    replay::{AtFork, ForkPoint, emptied},
    trajectory::{AgentName, RunId, Step, StepIndex},
};

/// What an agent says instead, by step.
type Says = Vec<(StepIndex, AtFork)>;

/// Tests every agent.
pub(super) async fn search(search: &mut Search<'_>) -> Result<Vec<AgentFinding>, TrialError> {
    let steps = search.subject().cassette.recording().trajectory.steps.clone();
    let mut agents: BTreeMap<&AgentName, Vec<&Step>> = BTreeMap::new();
    for step in &steps {
        agents.entry(&step.attribution.agent).or_default().push(step);
    }
    let mut findings = Vec::new();
    for (agent, steps) in agents {
        let Some(from) = steps.first().map(|step| step.step) else { continue };
        let recorded: Says = steps.iter().map(|step| (step.step, AtFork::Delivered)).collect();
        let null = arm(search, agent, from, recorded, "recorded").await?;
        for (replaced_by, says) in [("corrections", corrected(search, &steps)), ("nothing", nothing(&steps))] {
            let Some(says) = says else { continue };
            let treated = arm(search, agent, from, says, replaced_by).await?;
            if search.out_of_budget || null.share.samples == 0 || treated.share.samples == 0 {
                continue;
            }
            let (effect, interval) = difference(treated.share, null.share);
            let (agent, null) = (agent.clone(), null.clone());
            findings.push(AgentFinding { agent, replaced_by, from, null, treated, effect, interval });
        }
    }
    Ok(findings)
}

/// Its corrections, where it has any; a fresh draw cannot be set.
fn corrected(search: &Search<'_>, steps: &[&Step]) -> Option<Says> {
    let corrections = &search.subject().corrections.by_step;
    let corrected = |step: &&Step| match corrections.get(&step.step).map(|correction| &correction.at) {
        Some(AtFork::Live) => None,
        Some(at) => Some((step.step, at.clone())),
        None => Some((step.step, AtFork::Delivered)),
    };
    let any = steps.iter().any(|step| corrections.contains_key(&step.step));
    steps.iter().map(corrected).collect::<Option<Says>>().filter(|_| any)
}

/// Empty replies, where they can be made.
fn nothing(steps: &[&Step]) -> Option<Says> {
    steps.iter().map(|step| Some((step.step, AtFork::Instead(emptied(step).ok()?)))).collect()
}

async fn arm(
    search: &mut Search<'_>,
    agent: &AgentName,
    from: StepIndex,
    says: Says,
    kind: &str,
) -> Result<Arm, TrialError> {
    let mut arm = Arm::default();
    let samples = search.subject().settings.samples;
    while arm.tried() < samples {
        let Some(batch) = search.may_execute(samples - arm.tried()) else { break };
        let first = says.first().map_or(AtFork::Delivered, |(_, at)| at.clone());
        let runs = (arm.tried()..arm.tried() + batch).map(|number| {
            let prefixed = search.subject().prefix(ForkPoint { step: from, at: first.clone() })?;
            let identity = format!("{} {agent} {kind} {number}", search.subject().settings.salt);
            Ok((RunId::hashed("t", identity.as_bytes()), prefixed.with_agent(agent.clone(), says.clone())))
        });
        let runs = runs.collect::<Result<Vec<_>, TrialError>>()?;
        for (sample, refused) in search.execute(runs).await? {
            arm.take(&sample, refused);
        }
    }
    Ok(arm)
}
