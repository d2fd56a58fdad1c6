//! Which steps overlapped another call of their agent instance. On arrival only the later of two is known to; that the
//! earlier one was overlapped too is told by the order of records, when the run is read.

use std::collections::{BTreeMap, HashMap};

use super::ExchangeDetail;
use crate::trajectory::{AgentName, Step, StepIndex};

/// Marks each step during which another call of its agent instance was under way, whichever of them came first: that it came
/// first is chance. A further attempt of one step is no other call. `exchanges` are in the order of their opening.
pub(super) fn mark(steps: &mut BTreeMap<StepIndex, Step>, exchanges: &[ExchangeDetail]) {
    let mut overlapped = Vec::new();
    let mut under_way: HashMap<(&AgentName, u32), Vec<&ExchangeDetail>> = HashMap::new();
    for later in exchanges {
        let Some(step) = steps.get(&later.step) else { continue };
        let open = under_way.entry((&step.attribution.agent, step.attribution.instance)).or_default();
        open.retain(|earlier| earlier.closed.is_none_or(|closed| closed > later.opened));
        for earlier in open.iter().filter(|earlier| earlier.step != later.step) {
            // What never ended may have been cut off long ago: there, what was seen on arrival decides.
            if earlier.closed.is_some() || step.overlapping {
                overlapped.extend([earlier.step, later.step]);
            }
        }
        open.push(later);
    }
    for number in overlapped {
        if let Some(step) = steps.get_mut(&number) {
            step.overlapping = true;
        }
    }
}
