//! A recorded run, watched afterwards: the same signs as while it was under way.

use std::{collections::HashMap, sync::Arc};

use super::{WatchSettings, Watching, WireExchange, wire::WireAnswer};
use crate::{
    recording::Recording,
    surface::{self, Surface, door},
    trajectory::{Attempt, CloseCause, Step, StepIndex, WatchSign},
};

/// What the rules see in a recorded run. `roster`: the names of the agents that it may have; without one, who never spoke is
/// not known.
pub fn read(recording: &Recording, settings: WatchSettings, roster: &[String]) -> Vec<WatchSign> {
    let steps: HashMap<StepIndex, &Step> = recording.trajectory.steps.iter().map(|step| (step.step, step)).collect();
    let mut ends: Vec<_> = recording.exchanges.iter().filter_map(|detail| Some((detail.closed?, detail))).collect();
    ends.sort_by_key(|(closed, _)| *closed);
    let mut watching = Watching::new(Arc::new(settings));
    let mut signs = Vec::new();
    for (_, detail) in ends {
        let Some(step) = steps.get(&detail.step) else { continue };
        let Some(attempt) = step.attempts.iter().find(|attempt| attempt.attempt == detail.attempt) else { continue };
        let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
        if let Some(surface) = surface {
            signs.extend(observe(&mut watching, step, attempt, surface));
        }
    }
    signs.extend(watching.end(roster));
    signs
}

fn observe(watching: &mut Watching, step: &Step, attempt: &Attempt, surface: &'static dyn Surface) -> Vec<WatchSign> {
    let body = attempt.delivered();
    let own = attempt.cause.is_none_or(CloseCause::is_own);
    match attempt.ending {
        Some(ending) if ending.is_error() && !own => {
            watching.observe(&exchange(step, surface, WireAnswer::Refused(body)))
        }
        _ if attempt.cause != Some(CloseCause::Complete) => Vec::new(),
        _ => {
            let reply = door::reply(surface, body, attempt.streamed);
            let Ok(reply) = reply else { return Vec::new() };
            watching.observe(&exchange(step, surface, WireAnswer::Reply(&reply)))
        }
    }
}

fn exchange<'a>(step: &'a Step, surface: &'static dyn Surface, answered: WireAnswer<'a>) -> WireExchange<'a> {
    WireExchange {
        step: step.step,
        agent: step.attribution.agent.as_str(),
        instance: step.attribution.instance,
        surface,
        request: step.request_sent.as_ref().unwrap_or(&step.request),
        answered,
    }
}
