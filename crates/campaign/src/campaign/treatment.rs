//! What was done to a run, so that it can be done again: the bytes where it left its reference, delivered once and given
//! again as they were, and the first run's draws for what the plan does later.

use std::sync::Arc;

use super::file::CallPosition;
use crate::{
    plan::{Plan, Settled},
    replay::{AtFork, Cassette, ForkPoint},
    trajectory::{RunId, Side, Step, Trajectory},
};

/// A plan that knows which calls of the reference it aims at.
#[derive(Debug, Clone)]
pub(super) struct TargetedPlan {
    /// What it is called: its file, or the templates that it was drawn from.
    pub(super) name: String,
    /// The plan, resolved.
    pub(super) plan: Plan,
    /// Where a drawn one hits; `None` for a plan as it stands.
    pub(super) position: Option<CallPosition>,
}

/// A treatment as a later execution meets it.
#[derive(Debug, Clone)]
pub(super) struct Treatment {
    /// The plan with the draws of the first execution, less what `fork` gives and its faults.
    pub(super) aimed: Arc<TargetedPlan>,
    /// Where runs leave the reference, and what they get there.
    pub(super) fork: ForkPoint,
}

impl Treatment {
    /// The treatment that a finished run met. `planned` is where its plan made it leave the reference. `None` where the
    /// record does not hold the very bytes: secrets in them were masked.
    pub(super) fn from_run(
        run: &RunId,
        met: &Trajectory,
        aimed: &TargetedPlan,
        reference: &Cassette,
        planned: &ForkPoint,
    ) -> Option<Self> {
        let step = met.steps.get(planned_step(&met.steps, reference, planned)?)?;
        let attempt = step.last_attempt()?;
        let (side, at) = if planned.at == AtFork::Recorded {
            let edited = attempt.reply_delivered.clone();
            (Side::Response, edited.map_or(AtFork::Recorded, AtFork::AlteredAgain))
        } else {
            (Side::Request, step.request_sent.clone().map_or(AtFork::Live, AtFork::LiveRequest))
        };
        if !attempt.exact {
            return None;
        }
        let mut again = TargetedPlan::clone(aimed);
        again.plan.draws_of.get_or_insert_with(|| run.as_str().to_owned());
        again.plan.without_faults = true;
        let made = step.injected.iter().filter(|error| error.delivered && !error.is_fault() && error.side == side);
        again.plan.settled = Some(Settled {
            agent: step.attribution.agent.to_string(),
            instance: step.attribution.instance,
            call: step.call,
            injections: made.map(|error| error.injection).collect(),
        });
        Some(Self { aimed: Arc::new(again), fork: ForkPoint { step: planned.step, at } })
    }
}

/// Where a run has the step at which its plan made it leave its reference.
pub(super) fn planned_step(steps: &[Step], reference: &Cassette, planned: &ForkPoint) -> Option<usize> {
    let left = reference.bare_steps().iter().find(|step| step.step == planned.step)?;
    steps.iter().position(|step| is_same_call(step, left))
}

/// Whether two steps of different runs are the same call of the same agent.
fn is_same_call(one: &Step, other: &Step) -> bool {
    let who = |step: &Step| (step.attribution.agent.clone(), step.attribution.instance, step.call);
    who(one) == who(other)
}
