//! What the plan wants of one step: decided once, before anything is done.

use std::sync::Arc;

use super::{open_step::OpenStep, stored::retell};
use crate::{
    fault::Disturbance,
    plan::{self, Decision, Facts, Injection, Operator},
    surface::Conversation,
};

/// What the plan wants of a step, with the faults of this attempt worked out.
#[derive(Debug, Default)]
pub(super) struct Decided {
    pub(super) edits: Arc<Decision>,
    pub(super) faults: Vec<Planned>,
    /// Whether agents that the upstream names may speak in the reply: what the plan wants of those is decided when it is there.
    pub(super) names_speakers: bool,
}

impl Decided {
    /// Whether it may make the reply another.
    pub(super) fn alters_reply(&self) -> bool {
        self.may_edit_reply() || !self.faults.is_empty()
    }

    /// Whether all that it changes in the request is neutral.
    pub(super) fn is_request_neutral(&self, step: &OpenStep) -> bool {
        self.edits.request.iter().all(|hit| step.injection(hit.injection).is_some_and(Injection::is_neutral))
    }

    /// Whether it may edit the reply.
    pub(super) fn may_edit_reply(&self) -> bool {
        self.names_speakers || !self.edits.response.is_empty()
    }
}

/// A fault that this attempt meets.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) injection: u32,
    pub(super) draw: u64,
    pub(super) disturbance: Disturbance,
}

/// What the plan wants of a step. A retry meets the decision of its first attempt.
pub(super) fn decide(
    step: &mut OpenStep,
    conversation: Option<&Conversation>,
    earlier: Option<Arc<Decision>>,
) -> Decided {
    retell::note_divergence(step, conversation);
    step.planted_before = step.run.has_planted();
    let Some(plan) = &step.run.plan else { return Decided::default() };
    let edits = earlier.unwrap_or_else(|| {
        let delivered = |injection| step.run.delivered(&step.attribution, injection);
        let facts = Facts {
            run: step.run.id.as_str(),
            agent: step.attribution.agent.as_str(),
            instance: step.attribution.instance,
            call: step.numbers.call,
            step: step.numbers.step,
            conversation,
            delivered: &delivered,
            ambiguous: step.attribution.ambiguous,
        };
        let mut decision = plan::decide(plan, &facts);
        if !step.attribution.is_certain() {
            // An edit is ground truth about an agent: one that is only believed to be the target is not hit.
            let edits = decision.request.len() + decision.response.len();
            decision.request.retain(|hit| step.injection(hit.injection).is_some_and(Injection::is_neutral));
            decision.response.clear();
            if decision.request.len() < edits {
                step.run.refuse(&step.attribution);
            }
        }
        let decision = Arc::new(decision);
        step.run.decided(step.number, &decision);
        decision
    });
    let planned = edits.faults.iter().filter_map(|hit| {
        let Operator::Fault(fault) = &step.injection(hit.injection)?.operator else { return None };
        let disturbance = fault.disturb(hit.draw, step.numbers.attempt)?;
        Some(Planned { injection: hit.injection, draw: hit.draw, disturbance })
    });
    let mut faults: Vec<Planned> = planned.collect();
    // Of those that end the exchange or break its reply, the first one does.
    let mut ended = false;
    faults.retain(|fault| !fault.disturbance.is_final() || !std::mem::replace(&mut ended, true));
    Decided { edits, faults, names_speakers: step.names_speakers }
}
