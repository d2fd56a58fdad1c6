//! Whether the executions of a claim are draws of their own: what [`crate::proof::SeenArms`] asks, read from their recordings, and what
//! becomes of a claim where they are not.

use std::collections::BTreeSet;

use super::{
    bench::CellBench,
    claim::{Claimed, ConcludedClaim},
    error::CampaignError,
    sitting::{ArmExecution, PairedArms},
};
use crate::{
    proof::{Arm, ObservedExecution, SeenArms, SeenCall},
    recording,
    surface::{self, door},
    trajectory::{AgentName, Attempt, Dependence, Standing, Step},
};

/// Runs without the injection that all failed, from which on it is asked why.
const TELLING: u32 = 3;

impl ConcludedClaim {
    /// Takes all weight from executions that depend on each other: whatever they came to, they are void.
    /// Where the same may be so and is not shown, that is said.
    pub(super) fn weighed(mut self, dependence: Option<Dependence>) -> Self {
        let control = &self.executed.control;
        if let Some(dependence) = dependence {
            self.standing = Standing::Void;
            self.why = Some(format!("dependent: {}", dependence.words()));
            self.executed.dependent = Some(dependence);
        } else if self.standing != Standing::Verified && control.passed == 0 && control.failed >= TELLING {
            self.why = Some(format!(
                "without the injection none of {} runs passed, though the clean runs before them did: by chance, or because what one \
                 run leaves decides a later one (a memory, a file, a table): give each run a place of its own (`{{scratch}}`)",
                control.failed
            ));
        }
        self
    }
}

impl CellBench {
    /// What makes the executions of a claim depend on each other, if anything does.
    pub(super) fn dependence(&self, claimed: &Claimed, arms: &PairedArms) -> Result<Option<Dependence>, CampaignError> {
        let reference = self.references.open(&self.state, &claimed.fork.reference)?;
        let fork = &claimed.fork;
        // What ran beside the fork is answered from the record in every execution.
        let recorded = reference.recorded_until(fork.step).into_iter().flatten();
        let recorded = recorded.map(|(_, step)| step.step).collect::<BTreeSet<_>>();
        let is_live =
            |step: &&Step| if step.step == fork.step { !fork.replied } else { !recorded.contains(&step.step) };
        let asked = reference.recording().trajectory.steps.iter().filter(is_live);
        let asked: BTreeSet<AgentName> = asked.map(|step| step.attribution.agent.clone()).collect();
        let (control, treated) =
            (self.seen_arm(arms.executions(Arm::Control))?, self.seen_arm(arms.executions(Arm::Treated))?);
        Ok(SeenArms { control: &control, treated: &treated, reference: &asked }.dependence())
    }

    fn seen_arm(&self, arm: &[ArmExecution]) -> Result<Vec<ObservedExecution>, CampaignError> {
        let seen = arm.iter().map(|one| {
            let recording = recording::read(&self.state.run_dir(&one.run))?;
            let calls = recording.trajectory.steps.iter().filter_map(seen_call).collect();
            Ok(ObservedExecution { sample: one.sample, calls })
        });
        seen.collect()
    }
}

/// A call that the upstream answered while the run was under way.
fn seen_call(step: &Step) -> Option<SeenCall> {
    let attempt = step.last_attempt().filter(|attempt| attempt.origin.is_live() && attempt.is_answered())?;
    let request = step.request_sent.as_ref().unwrap_or(&step.request);
    let (words, id) = reply_digest(&step.surface, attempt);
    Some(SeenCall {
        agent: step.attribution.agent.clone(),
        request: digest([step.path.as_bytes(), request.as_ref()]),
        words,
        id: id.filter(|id| !id.is_empty()),
    })
}

/// A digest of what the upstream said, and what its reply calls itself.
fn reply_digest(name: &str, attempt: &Attempt) -> (u64, Option<String>) {
    let surface = surface::named(name);
    let Some(reply) = surface.and_then(|surface| door::reply(surface, &attempt.reply, attempt.streamed).ok()) else {
        return (digest([attempt.reply.as_ref()]), None);
    };
    let answers = reply.answers.iter().map(|answer| &answer.message);
    let words = answers.flat_map(|message| {
        let calls = message.tool_calls.iter().flat_map(|call| [call.name.clone(), call.arguments.clone()]);
        std::iter::once(message.text()).chain(calls)
    });
    (digest(words.collect::<Vec<_>>().iter().map(String::as_bytes)), Some(reply.id))
}

fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hash.finalize().as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}
