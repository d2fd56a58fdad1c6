//! A worker: one part of a campaign, made into a directory of its own. It keeps what each chain came to beside its runs,
//! concludes nothing over them, and holds nothing of a chain that has ended.

use std::sync::Arc;

use super::{
    digest::CampaignDigest,
    manifest::{FILE, ShardManifest},
    part::ShardPart,
    snapshot::CampaignSnapshot,
};
use crate::{
    budget::Cost,
    campaign::{
        Progress,
        bench::CellBench,
        chain::SystemSilences,
        conclusion::ChainFacts,
        definition::Campaign,
        error::CampaignError,
        start::{CampaignOptions, backend},
        state::CampaignState,
    },
    proxy::Proxy,
    recording::Masked,
};

/// What a worker is told beside what every campaign is.
#[derive(Debug)]
pub struct ShardOptions {
    /// Its part.
    pub part: ShardPart,
    /// The campaign as text, to be kept beside what is made of it.
    pub snapshot: CampaignSnapshot,
}

/// What came of a part.
#[derive(Debug, Clone, Default, serde::Serialize, schemars::JsonSchema)]
pub struct ShardEnd {
    /// Its chains.
    pub chains: usize,
    /// Those that were not made to their end.
    pub unfinished: usize,
    /// Those whose clean runs an upstream's failure ended.
    pub unreachable: usize,
    /// Injected runs.
    pub attempts: usize,
    /// Those that failed for it.
    pub flipped: usize,
    /// Failures that are shown, as far as this part can tell.
    pub verified: usize,
    /// What was charged in all, earlier starts included.
    pub spent: Cost,
    /// Calls that recordings answered.
    pub answered: u64,
    /// Whether its part of the budget ended it.
    pub exhausted: bool,
    /// Whether somebody ended it.
    pub stopped: bool,
}

impl ShardEnd {
    fn add(&mut self, facts: &ChainFacts) {
        self.unfinished += usize::from(!facts.whole);
        self.unreachable += usize::from(facts.unreachable);
        self.attempts += facts.attempts;
        self.flipped += facts.flipped;
        self.verified += facts.verified;
        self.answered += facts.answered;
    }

    /// A line: what came of it.
    pub fn line(&self, part: ShardPart) -> String {
        let Self { chains, verified, attempts, spent, answered, .. } = self;
        let ended = match (self.exhausted, self.stopped, self.unfinished) {
            (true, ..) => ", ended by its part of the budget".to_owned(),
            (_, true, _) => ", stopped".to_owned(),
            (.., 0) => String::new(),
            (.., more) => format!(", {more} chains unfinished"),
        };
        format!(
            "shard {part}: {chains} chains, {verified} failures shown in {attempts} injected runs, {} model calls made and \
             {answered} answered from recordings{ended}",
            spent.calls
        )
    }
}

/// Makes a part of a campaign. What lies in its directory is gone on with. `proxies` are one a system, in order, and record
/// under `out/logs`.
///
/// # Errors
/// [`CampaignError`]; what a cell comes to is no error.
pub async fn run_shard(
    mut campaign: Campaign,
    proxies: Vec<Proxy>,
    options: CampaignOptions,
    shard: ShardOptions,
    progress: &dyn Progress,
) -> Result<ShardEnd, CampaignError> {
    let ShardOptions { part, snapshot: kept } = shard;
    let backend = backend(&proxies);
    let state = CampaignState::open(&options.out, options.earlier)?;
    let chains = part.chains(&campaign);
    if options.earlier.must_fit() {
        state.refuse_others(&campaign, &chains, &proxies)?;
    }
    let manifest = ShardManifest {
        format: ShardManifest::FORMAT,
        index: part.index(),
        of: part.total(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        digest: CampaignDigest::compute(&campaign, &backend, &options.rewriting, &options.equality),
        backend,
        chains: chains.len(),
    };
    kept.write(state.root())?;
    drop(kept);
    write(&state, &manifest)?;
    campaign.forget_tasks_but(&chains.iter().map(|chain| chain.task).collect());
    let campaign = Arc::new(campaign);
    let bench = CellBench::served(&campaign, proxies, options, state, part, manifest.digest.hash()).await?;
    let mut heard = SystemSilences::default();
    bench
        .make_and_revoke(&chains, progress, |number, end| {
            if let Some(chain) = chains.get(number) {
                heard.add(*chain, end.facts.silence.as_ref());
            }
            Ok(())
        })
        .await?;
    heard.refuse_silence(&campaign)?;
    let mut ended = ShardEnd { chains: chains.len(), ..ShardEnd::default() };
    for chain in &chains {
        ended.add(&bench.read_facts(*chain)?);
    }
    ended.spent = bench.context.meter.spent();
    ended.exhausted = bench.context.meter.is_exhausted();
    ended.stopped = bench.stop.borrow().is_some();
    for system in bench.revoked_names(&bench.revoked()) {
        progress.done(&format!("          `{system}` does not repeat itself: its claims were shown by pairs instead"));
    }
    Ok(ended)
}

fn write(state: &CampaignState, manifest: &ShardManifest) -> Result<(), CampaignError> {
    let unwritten =
        |error: serde_json::Error| CampaignError::Unwritten { path: state.root().join(FILE), why: error.to_string() };
    let mut text = serde_json::to_vec_pretty(manifest).map_err(unwritten)?;
    text.push(b'\n');
    state.replace(FILE, &Masked::new(text))
}
