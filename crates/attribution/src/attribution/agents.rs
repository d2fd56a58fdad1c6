//! Agents as a whole: what if all that an agent said had been something else, or nothing?
//!
//! From the agent's first step on its replies are set, call by call, whatever it is asked; the others are live. The
//! control arm sets them to what was recorded. Calls beyond the recorded ones are live in both arms. This describes, with an
//! interval; it blames nobody.

use std::collections::BTreeMap;

use super::{
    AgentFinding,
    search::{SearchExecutions, Trial},
};
use crate::{
    execution::ExecutionError,
    proof,
    replay::{AtFork, ForkPoint, emptied},
    trajectory::{AgentName, Executions as Counted, Step, StepIndex, difference},
};

/// What an agent says instead, by step.
type RepliesByStep = Vec<(StepIndex, AtFork)>;

/// Tests every agent.
pub(super) async fn search(executions: &mut SearchExecutions<'_>) -> Result<Vec<AgentFinding>, ExecutionError> {
    let steps = executions.subject.cassette.recording().trajectory.steps.clone();
    let mut agents: BTreeMap<&AgentName, Vec<&Step>> = BTreeMap::new();
    for step in &steps {
        agents.entry(&step.attribution.agent).or_default().push(step);
    }
    let mut findings = Vec::new();
    for (agent, steps) in agents {
        let Some(from) = steps.first().map(|step| step.step) else { continue };
        let recorded: RepliesByStep = steps.iter().map(|step| (step.step, AtFork::Delivered)).collect();
        let control = arm(executions, agent, from, recorded, "agent as recorded").await?;
        for (replaced_by, words, says) in [
            ("corrections", "agent corrected", corrected(executions, &steps)),
            ("nothing", "agent emptied", nothing(&steps)),
        ] {
            let Some(says) = says else { continue };
            let treated = arm(executions, agent, from, says, words).await?;
            if executions.out_of_budget || control.tally().of == 0 || treated.tally().of == 0 {
                continue;
            }
            let (effect, interval) = difference(treated.tally(), control.tally());
            let (agent, control) = (agent.clone(), control.clone());
            findings.push(AgentFinding { agent, replaced_by, from, control, treated, effect, interval });
        }
    }
    Ok(findings)
}

/// Its corrections, where it has any; a fresh draw cannot be set.
fn corrected(executions: &SearchExecutions<'_>, steps: &[&Step]) -> Option<RepliesByStep> {
    let corrections = &executions.subject.corrections.by_step;
    let corrected = |step: &&Step| match corrections.get(&step.step).map(|correction| &correction.at) {
        Some(AtFork::Live | AtFork::LiveRequest(_)) => None,
        Some(at) => Some((step.step, at.clone())),
        None => Some((step.step, AtFork::Delivered)),
    };
    let any = steps.iter().any(|step| corrections.contains_key(&step.step));
    steps.iter().map(corrected).collect::<Option<RepliesByStep>>().filter(|_| any)
}

/// Empty replies, where they can be made.
fn nothing(steps: &[&Step]) -> Option<RepliesByStep> {
    steps.iter().map(|step| Some((step.step, AtFork::Instead(emptied(step).ok()?)))).collect()
}

async fn arm(
    executions: &mut SearchExecutions<'_>,
    agent: &AgentName,
    from: StepIndex,
    says: RepliesByStep,
    words: &'static str,
) -> Result<Counted, ExecutionError> {
    let (mut arm, settings) = (Counted::default(), executions.subject.settings.clone());
    while arm.all() < settings.agents {
        let left = (settings.agents - arm.all()).min(settings.jobs.max(1));
        let Some(batch) = executions.room(left as usize) else { break };
        let at = says.first().map_or(AtFork::Delivered, |(_, at)| at.clone());
        let trial = |number| Trial {
            fork: ForkPoint { step: from, at: at.clone() },
            says: Some((agent.clone(), says.clone())),
            words,
            arm: format!("{words} {agent}"),
            number,
            plain: false,
        };
        let trials: Vec<Trial> = (0..batch).map(|number| trial(arm.all() as usize + number)).collect();
        for outcome in executions.execute(&trials).await? {
            match outcome.sample {
                proof::ProofSample::Passed => arm.passed += 1,
                proof::ProofSample::Failed => arm.failed += 1,
                proof::ProofSample::Void(why) => *arm.void.entry(why).or_default() += 1,
            }
        }
    }
    Ok(arm)
}
