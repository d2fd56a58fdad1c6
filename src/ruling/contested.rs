//! Names that nobody declared and under which several agents of a run turned out to speak.

use std::collections::BTreeSet;

use crate::{
    identity::Speakers,
    surface,
    trajectory::{AgentName, Trajectory},
};

/// These names of a run. Reads all its bodies.
pub(super) fn names(trajectory: &Trajectory) -> BTreeSet<AgentName> {
    let mut speakers = Speakers::default();
    for step in &trajectory.steps {
        let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
        let Some((surface, outline)) = surface.and_then(|known| Some((known, known.outline(&step.request).ok()?)))
        else {
            continue;
        };
        let reply = step.last_attempt().and_then(|attempt| {
            let body = attempt.delivered();
            if attempt.streamed { surface.read_stream(body).ok() } else { surface.read_reply(body).ok() }
        });
        speakers.recall(&outline, &step.attribution, reply.as_ref());
    }
    speakers.contested().cloned().collect()
}
