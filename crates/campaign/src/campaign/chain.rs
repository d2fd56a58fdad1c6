//! Chains: all that is made of one task by one system, from its clean runs to what shows its claims. Nothing of a chain
//! depends on another, so it is the unit of work: chains run to their end one after another, as many side by side as there are
//! jobs, here or on any machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::{
    Progress,
    bench::CellBench,
    conclusion::{ChainFacts, Unbelieved},
    definition::Campaign,
    error::CampaignError,
    funnel::ConcludedChain,
};

/// One task of one system, by their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chain {
    pub(super) system: usize,
    pub(super) task: usize,
}

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

/// Whether a program called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Silence {
    /// It did.
    Broken,
    /// No clean run made a call.
    Kept {
        /// Whether all of them ran out of time.
        late: bool,
        /// What it last said on its standard error.
        said: String,
    },
}

impl Campaign {
    /// The chains of the campaign, in the order of its data: system by system, and each in the order of the tasks.
    pub(super) fn chains(&self, only: &[regex::Regex]) -> Vec<Chain> {
        let of_system = |(system, named): (usize, &super::CampaignSystem)| {
            self.chosen(&named.name, only).map(move |(task, _)| Chain { system, task }).collect::<Vec<_>>()
        };
        self.systems.iter().enumerate().flat_map(of_system).collect()
    }

    /// A chain's system and task.
    pub(super) fn names_of(&self, chain: Chain) -> (&str, &str) {
        let system = self.systems.get(chain.system).map_or("", |system| system.name.as_str());
        (system, self.tasks.get(chain.task).map_or("", |task| task.id.as_str()))
    }

    /// A chain as people name it: SYSTEM/TASK.
    pub(super) fn named(&self, chain: Chain) -> String {
        let (system, task) = self.names_of(chain);
        format!("{system}/{task}")
    }
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
            let _held = self.references.open(&self.state, &reference.cell.run)?;
            let cells = self.inject(chain, &reference, &mut concluded).await?;
            self.prove(chain, &cells, &mut concluded).await?;
            concluded.set_decoys_apart();
        }
        self.write_labels(&concluded)?;
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

/// A system whose programs never reach the proxy is set up wrongly: what it came to proves nothing.
#[derive(Debug, Default)]
pub(super) struct HeardSystems(BTreeMap<usize, Silence>);

impl HeardSystems {
    /// Hears of a chain. The first that was silent is told of, where none made a call.
    pub(super) fn add(&mut self, chain: Chain, silence: Option<&Silence>) {
        match silence {
            None => {}
            Some(Silence::Broken) => drop(self.0.insert(chain.system, Silence::Broken)),
            Some(Silence::Kept { late, said }) => {
                let known = self.0.entry(chain.system);
                let known = known.or_insert_with(|| Silence::Kept { late: true, said: said.clone() });
                if let Silence::Kept { late: all, .. } = known {
                    *all &= *late;
                }
            }
        }
    }

    /// # Errors
    /// A system none of whose clean runs made a call.
    pub(super) fn refuse_silence(&self, campaign: &Campaign) -> Result<(), CampaignError> {
        for (number, silence) in &self.0 {
            let (Silence::Kept { late, said }, Some(system)) = (silence, campaign.systems.get(*number)) else {
                continue;
            };
            let limit = system.timeout.as_secs_f64();
            let late =
                if *late { format!("all runs were ended after `timeout_s` = {limit} first; ") } else { String::new() };
            return Err(CampaignError::NoCall { system: system.name.clone(), said: format!("{late}{said}") });
        }
        Ok(())
    }
}
