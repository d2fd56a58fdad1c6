//! A worker: one part of a campaign, made into a directory of its own. It concludes nothing over its chains, and holds no
//! more of a chain that has ended than counts.

use std::sync::Arc;

use super::{
    digest::CampaignDigest,
    kept::KeptCampaign,
    manifest::{FILE, ShardManifest},
    part::ShardPart,
};
use crate::{
    campaign::{
        Progress,
        bench::CellBench,
        chain::{ChainEnd, HeardSystems},
        cost::Cost,
        definition::Campaign,
        error::CampaignError,
        funnel::{LeftOut, TaskState},
        start::{CampaignOptions, backend},
        state::CampaignState,
    },
    proxy::Proxy,
};

/// What a worker is told beside what every campaign is.
#[derive(Debug)]
pub struct ShardOptions {
    /// Its part.
    pub part: ShardPart,
    /// The campaign as text, to be kept beside what is made of it.
    pub kept: KeptCampaign,
    /// The model that manipulators ask, if flags name one.
    pub rewriting: String,
}

/// What came of a part.
#[derive(Debug, Clone, Default, serde::Serialize)]
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
    fn add(&mut self, end: &ChainEnd) {
        let concluded = &end.concluded;
        let unreachable = |task: &&TaskState| task.left_out == Some(LeftOut::InfraError);
        self.unfinished += usize::from(!end.is_whole());
        self.unreachable += concluded.tasks.iter().filter(unreachable).count();
        self.attempts += concluded.attempts.len();
        self.flipped += concluded.flipped();
        self.verified += concluded.verified();
        self.answered += concluded.prefix.calls;
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
    let ShardOptions { part, kept, rewriting } = shard;
    let backend = backend(&proxies);
    let state = CampaignState::open(&options.out, options.earlier)?;
    let chains = part.chains(&campaign);
    let mut manifest = ShardManifest {
        format: ShardManifest::FORMAT,
        index: part.index(),
        of: part.of(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        digest: CampaignDigest::of(&campaign, &backend, &rewriting),
        backend,
        chains: chains.len(),
        whole: false,
    };
    kept.write(state.root())?;
    drop(kept);
    write(&state, &manifest)?;
    campaign.forget_tasks_but(&chains.iter().map(|chain| chain.task).collect());
    let campaign = Arc::new(campaign);
    let bench = CellBench::served(&campaign, proxies, options, state, part).await?;
    let mut ended = ShardEnd { chains: chains.len(), ..ShardEnd::default() };
    let mut heard = HeardSystems::default();
    bench
        .make_and_revoke(&chains, progress, |number, end| {
            if let Some(chain) = chains.get(number) {
                heard.add(*chain, end.silence.as_ref());
            }
            ended.add(&end);
            Ok(())
        })
        .await?;
    heard.refuse_silence(&campaign)?;
    ended.spent = bench.house.ledger.spent();
    ended.exhausted = bench.house.ledger.is_exhausted();
    ended.stopped = *bench.stop.borrow();
    for system in bench.revoked_names(&bench.revoked()) {
        progress.done(&format!("          `{system}` does not repeat itself: its claims were shown by pairs instead"));
    }
    manifest.whole = ended.unfinished == 0;
    write(&bench.state, &manifest)?;
    Ok(ended)
}

fn write(state: &CampaignState, manifest: &ShardManifest) -> Result<(), CampaignError> {
    let unwritten =
        |error: serde_json::Error| CampaignError::Unwritten { path: state.root().join(FILE), why: error.to_string() };
    let mut text = serde_json::to_vec_pretty(manifest).map_err(unwritten)?;
    text.push(b'\n');
    state.replace(FILE, &text)
}
