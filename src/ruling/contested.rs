//! Names that nobody declared and under which several agents of a run turned out to speak.

use std::collections::BTreeSet;

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
            surface.and_then(|known| Some((known, door::outline(known, &step.request).ok()?)))
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
