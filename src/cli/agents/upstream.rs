//! Agents that the upstream names in replies of a team: they make no call of their own.

use std::collections::BTreeMap;

use super::LateRun;
use crate::{
    surface,
    trajectory::{AgentName, Step},
};

/// By the agent that asks and the agent that the upstream names: in how many replies it speaks.
pub(super) type NamedByUpstream = BTreeMap<(AgentName, String), usize>;

/// The agents that the upstream names in the runs.
pub(super) fn named(runs: &[LateRun<'_>]) -> NamedByUpstream {
    let mut named = NamedByUpstream::new();
    for step in runs.iter().flat_map(LateRun::steps).map(|(step, _)| step) {
        for agent in of_step(step) {
            *named.entry((step.attribution.agent.clone(), agent)).or_default() += 1;
        }
    }
    named
}

/// The agents that the upstream names in the reply of a step.
pub(super) fn of_step(step: &Step) -> Vec<String> {
    let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
    let reply = surface.zip(step.last_attempt());
    let reply =
        reply.and_then(|(surface, attempt)| surface::team_reply(surface, attempt.delivered(), attempt.streamed));
    reply.iter().flat_map(|reply| reply.named_agents()).map(str::to_owned).collect()
}
