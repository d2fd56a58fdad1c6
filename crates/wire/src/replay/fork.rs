//! Where a run leaves its record: a step, and what is given there.

use bytes::Bytes;

use super::Cassette;
use crate::{
    plan::{self, Facts, Plan},
    surface::{self, door},
    trajectory::{RunId, Step, StepIndex},
};

/// The step at which a run leaves its record. Calls that the record opened before that step closed come from the
/// record; later ones are live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoint {
    /// Step of the record.
    pub step: StepIndex,
    /// What its call gets.
    pub at: AtFork,
}

/// What the call at the fork point gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtFork {
    /// The recorded reply as the upstream sent it, before any edit: an injection into the reply acts on it.
    Recorded,
    /// The recorded reply as the client got it, edits included.
    Delivered,
    /// A live reply: the request itself is what changed, or the step is to be drawn anew.
    Live,
    /// This body in place of the reply, with the recorded reply's head. A request that continues from it sends it to an upstream that
    /// stores replies, or is refused.
    Instead(Bytes),
    /// This body, which an injection made of the reply, with the recorded reply's head. A request that continues from it sends it to
    /// an upstream that stores replies only if the injection has `retell`.
    AlteredAgain(Bytes),
    /// This body, the reply with a neutral change, with the recorded reply's head. A request that continues from it sends it to an
    /// upstream that stores replies if that is possible.
    Perturbed(Bytes),
    /// A live reply to this request instead of the client's: an edited one, sent again as it was.
    LiveRequest(Bytes),
}

impl ForkPoint {
    /// The first step of the record that a plan applies to in the run of that name (draws depend on it); `None` when
    /// it applies to none. A plan that counts in a recorded run must be resolved before.
    pub fn of_plan(cassette: &Cassette, plan: &Plan, run: &RunId) -> Option<Self> {
        let hit = |step: &Step| {
            let path = step.path.split('?').next().unwrap_or_default();
            let read = surface::for_path(&step.method, path);
            let conversation = read.and_then(|surface| door::request(surface, &step.request).ok());
            let decision = plan::decide(
                plan,
                &Facts {
                    run: run.as_str(),
                    agent: step.attribution.agent.as_str(),
                    instance: step.attribution.instance,
                    call: step.call,
                    step: step.step,
                    conversation: conversation.as_ref(),
                    delivered: &|_| 0,
                    ambiguous: step.attribution.ambiguous,
                },
            );
            let at = if decision.request.is_empty() { AtFork::Recorded } else { AtFork::Live };
            (!decision.is_empty()).then_some(Self { step: step.step, at })
        };
        cassette.recording().trajectory.steps.iter().find_map(hit)
    }
}
