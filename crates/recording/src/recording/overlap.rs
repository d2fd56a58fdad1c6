//! Which steps overlapped another call of their agent instance. On arrival only the later of two is known to; that the
//! earlier one was overlapped too is told by the order of records, when the run is read.

use std::collections::HashMap;

use super::ExchangeDetail;
use crate::trajectory::{AgentName, Step, StepIndex};

/// Marks each step during which another call of its agent instance was under way, whichever of them came first: that it came
/// first is chance. A further attempt of one step is no other call. `exchanges` are in the order of their opening.
pub(super) fn mark(steps: &mut [Step], exchanges: &[ExchangeDetail]) {
    let places: HashMap<StepIndex, usize> = steps.iter().enumerate().map(|(at, step)| (step.step, at)).collect();
    let mut overlapped = Vec::new();
    let mut under_way: HashMap<(&AgentName, u32), Vec<(usize, &ExchangeDetail)>> = HashMap::new();
    for later in exchanges {
        let Some((at, step)) = places.get(&later.step).and_then(|at| Some((*at, steps.get(*at)?))) else { continue };
        let open = under_way.entry((&step.attribution.agent, step.attribution.instance)).or_default();
        open.retain(|(_, earlier)| earlier.closed.is_none_or(|closed| closed > later.opened));
        for (earlier_at, earlier) in open.iter().filter(|(_, earlier)| earlier.step != later.step) {
            // What never ended may have been cut off long ago: there, what was seen on arrival decides.
            if earlier.closed.is_some() || step.overlapping {
                overlapped.extend([*earlier_at, at]);
            }
        }
        open.push((at, later));
    }
    for at in overlapped {
        if let Some(step) = steps.get_mut(at) {
            step.overlapping = true;
        }
    }
}

/// The same once steps have other names than on arrival: what was seen then was about other agents, and counts only beside a call
/// of the same agent that never ended.
pub(super) fn mark_anew(steps: &mut [Step], exchanges: &[ExchangeDetail]) {
    let seen: Vec<bool> = steps.iter().map(|step| step.overlapping).collect();
    let unended = |step: &Step| exchanges.iter().any(|exchange| exchange.closed.is_none() && exchange.step < step.step);
    for (step, seen) in steps.iter_mut().zip(seen) {
        step.overlapping = seen && unended(step);
    }
    mark(steps, exchanges);
}
