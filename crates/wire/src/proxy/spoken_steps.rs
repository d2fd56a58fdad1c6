//! The steps of a run in whose replies an agent speaks that the upstream names.

use std::collections::{BTreeSet, HashMap};

use crate::{
    surface::Reply,
    trajectory::{AgentName, Attribution, Call, Step, StepIndex},
};

/// By the agent that asks, and the agent that the upstream names: the steps in whose replies it speaks.
#[derive(Debug, Default)]
pub(super) struct SpokenSteps(HashMap<(AgentName, u32, AgentName), BTreeSet<StepIndex>>);

impl SpokenSteps {
    /// An agent speaks in the reply of a step: the number of that reply among those in which it does, 0-based.
    pub(super) fn number(&mut self, asker: &Attribution, speaker: &AgentName, step: StepIndex) -> Call {
        let steps = self.0.entry((asker.agent.clone(), asker.instance, speaker.clone())).or_default();
        steps.insert(step);
        Call::try_from(steps.range(..step).count()).unwrap_or(Call::MAX)
    }

    /// Takes note of a step of a run that goes on.
    pub(super) fn recall(&mut self, step: &Step, reply: &Reply) {
        for name in reply.named_agents().into_iter().filter_map(|name| AgentName::parse(name).ok()) {
            self.number(&step.attribution, &name, step.step);
        }
    }
}
