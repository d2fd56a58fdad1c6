//! Whether what a directory holds is of the campaign that is to go on in it. A run is named by all that it depends on, so a
//! start with another upstream or another file would find nothing of its own there, make and pay for all of it anew, and put
//! its data set in the place of the one that is there.

use std::fs;

use super::{cell::Cell, chain::Chain, definition::Campaign, error::CampaignError, state::CampaignState};
use crate::{proxy::Proxy, recording};

impl CampaignState {
    /// Looks for a finished clean run of the campaign, and where its calls went. `chains` are all that may lie there.
    ///
    /// # Errors
    /// [`CampaignError::OtherRuns`]: there are finished runs, and none is of this campaign, or they asked another upstream.
    pub(super) fn refuse_others(
        &self,
        campaign: &Campaign,
        chains: &[Chain],
        proxies: &[Proxy],
    ) -> Result<(), CampaignError> {
        let refuse = |what| Err(CampaignError::OtherRuns { path: self.root().to_owned(), what });
        let now = |system: usize| proxies.get(system).map(|proxy| proxy.upstream.name()).unwrap_or_default();
        let clean = chains.iter().flat_map(|chain| {
            (0..campaign.clean).map(|repeat| Cell::clean(campaign, chain.system, chain.task, repeat))
        });
        for cell in clean {
            if !self.cell_file(&cell.run).exists() {
                continue;
            }
            let recorded = recording::read_manifest(&self.run_dir(&cell.run));
            return match recorded.ok().filter(|run| run.upstream != now(cell.system)) {
                Some(run) => refuse(upstream_differs(&run.upstream, now(cell.system))),
                None => Ok(()),
            };
        }
        let Some(some) = self.any_finished() else { return Ok(()) };
        let mut upstreams = proxies.iter().map(|proxy| proxy.upstream.name());
        let recorded = recording::read_manifest(&self.logs().join(some)).map(|run| run.upstream);
        match recorded.ok().filter(|recorded| !upstreams.any(|now| now == recorded)) {
            Some(recorded) => refuse(upstream_differs(&recorded, now(0))),
            None => {
                refuse("its systems, `seed`, `verify`, tasks or how the upstream is written were others".to_owned())
            }
        }
    }

    /// The name of a finished run, whichever.
    fn any_finished(&self) -> Option<String> {
        let mut names = fs::read_dir(self.root().join("cells")).ok()?.flatten();
        names.find_map(|entry| entry.file_name().into_string().ok()?.strip_suffix(".json").map(str::to_owned))
    }
}

fn upstream_differs(then: &str, now: &str) -> String {
    format!("they asked `{then}`, and this start would ask `{now}`")
}
