//! The making of chains: they run to their end one after another, as many side by side as there are jobs, here or on any
//! machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::task::JoinSet;

use super::{
    Progress,
    bench::CellBench,
    chain::Chain,
    conclusion::{ChainFacts, Unbelieved},
    error::CampaignError,
    funnel::ConcludedChain,
};

/// A chain that has ended: what came of it is kept.
#[derive(Debug)]
pub(super) struct ChainEnd {
    /// What is known of it.
    pub(super) facts: ChainFacts,
    /// Why it was concluded now; `None` where what was concluded before is believed.
    pub(super) anew: Option<Unbelieved>,
    /// Whether that came to something else than what lay there.
    pub(super) refuted: bool,
}

impl CellBench {
    /// Makes a chain and keeps what came of it, or believes what was kept of it before.
    pub(super) async fn chain(self: &Arc<Self>, chain: Chain) -> Result<ChainEnd, CampaignError> {
        let why = match self.believed(chain) {
            Ok(facts) => return Ok(ChainEnd { facts, anew: None, refuted: false }),
            Err(why) => why,
        };
        let mut concluded = ConcludedChain::default();
        let (reference, silence) = self.clean(chain, &mut concluded).await?;
        if let Some(reference) = reference {
            // Read once for all that begins like it.
            let _held = self.references.open(&self.state, &reference.run)?;
            let cells = self.inject(chain, &reference, &mut concluded).await?;
            self.prove(chain, &cells, &mut concluded).await?;
            self.note_learned(&mut concluded);
            concluded.set_decoys_apart();
        }
        self.trace_failures(chain, &mut concluded).await?;
        self.write_labels(&concluded)?;
        self.search_catches(chain, &mut concluded).await?;
        let (facts, refuted) = self.keep(chain, concluded, silence)?;
        Ok(ChainEnd { facts, anew: Some(why), refuted })
    }

    /// Makes chains side by side, so many at once, and hands each over as it ends, by its place in the list.
    ///
    /// # Errors
    /// What ends the whole campaign.
    pub(super) async fn make_chains(
        self: &Arc<Self>,
        chains: &[Chain],
        progress: &dyn Progress,
        mut ended: impl FnMut(usize, ChainEnd) -> Result<(), CampaignError>,
    ) -> Result<(), CampaignError> {
        progress.stage("chains", chains.len());
        let mut running = JoinSet::new();
        let mut begun = chains.iter().copied().enumerate();
        loop {
            while running.len() < self.jobs
                && let Some((number, chain)) = begun.next()
            {
                let bench = Arc::clone(self);
                running.spawn(async move { (number, bench.chain(chain).await) });
            }
            let Some(done) = running.join_next().await else { return Ok(()) };
            let (number, end) = done.map_err(|_| CampaignError::Lost)?;
            let end = end?;
            progress.advance(end.facts.verified);
            ended(number, end)?;
        }
    }

    /// Makes chains, and again those that stand on equal repeats of a system of which another was then seen to differ: one
    /// difference takes the declaration back for all of it. A chain may be handed over twice; the later one counts.
    pub(super) async fn make_and_revoke(
        self: &Arc<Self>,
        chains: &[Chain],
        progress: &dyn Progress,
        mut ended: impl FnMut(usize, ChainEnd) -> Result<(), CampaignError>,
    ) -> Result<(), CampaignError> {
        let mut repeats = BTreeSet::new();
        self.make_chains(chains, progress, |number, end| {
            if end.facts.repeats {
                repeats.insert(number);
            }
            ended(number, end)
        })
        .await?;
        let revoked = self.revoked();
        let of = |number: &usize| chains.get(*number).copied().filter(|chain| revoked.contains(&chain.system));
        let anew: BTreeMap<usize, Chain> = repeats.iter().filter_map(|number| Some((*number, of(number)?))).collect();
        if anew.is_empty() {
            return Ok(());
        }
        let (numbers, chains): (Vec<usize>, Vec<Chain>) = anew.into_iter().unzip();
        self.make_chains(&chains, progress, |place, end| match numbers.get(place) {
            Some(number) => ended(*number, end),
            None => Err(CampaignError::Lost),
        })
        .await
    }
}
