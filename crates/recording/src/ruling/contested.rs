//! Names that nobody declared and under which several agents of a run turned out to speak.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    identity::Speakers,
    surface::{self, door},
    trajectory::{AgentName, Trajectory},
};

/// These names of a run. Reads all its bodies.
pub(super) fn names(trajectory: &Trajectory) -> BTreeSet<AgentName> {
    let mut speakers = Speakers::default();
    for step in &trajectory.steps {
        let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
        let Some((surface, outline)) =
            surface.and_then(|known| Some((known, door::outline_at(known, &step.path, &step.request).ok()?)))
        else {
            continue;
        };
        let reply = step.last_attempt().and_then(|attempt| {
            let body = attempt.delivered();
            door::reply(surface, body, attempt.streamed).ok()
        });
        speakers.recall(&outline, &step.attribution, reply.as_ref());
    }
    speakers.contested().cloned().collect()
}

/// Names that the upstream gives to agents of several askers, or to one while another agent goes by it. Reads the bodies in which
/// the upstream may name agents.
pub(super) fn upstream(trajectory: &Trajectory) -> BTreeSet<AgentName> {
    let mut askers: BTreeMap<AgentName, BTreeSet<&AgentName>> = BTreeMap::new();
    for step in &trajectory.steps {
        let asker = &step.attribution.agent;
        askers.entry(asker.clone()).or_default().insert(asker);
        let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
        let reply = surface.zip(step.last_attempt());
        let reply = reply.and_then(|(surface, attempt)| surface::team_reply(surface, &attempt.reply, attempt.streamed));
        for name in reply.iter().flat_map(|reply| reply.named_agents()).filter_map(|name| AgentName::parse(name).ok()) {
            askers.entry(name).or_default().insert(asker);
        }
    }
    askers.into_iter().filter(|(_, askers)| askers.len() > 1).map(|(name, _)| name).collect()
}
